package verbsmodel_test

import (
	"slices"
	"unsafe"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// The verbs of memory and their model.

// everything is all rights that a region can have.
const everything = verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic | verbs.BindWindow

// A someMemory is what can be registered: a run of the arena, or a list of its
// pages.
type someMemory struct {
	buf  []byte
	list *verbs.BufferList
	va   uint64
}

func (w *world) someMemory(h *host) someMemory {
	if w.chance(50) {
		start := w.rng.IntN(arena - 1)
		return someMemory{buf: h.mem[start : start+1+w.rng.IntN(arena-start)], va: w.rng.Uint64() >> 8}
	}
	n := 1 + w.rng.IntN(6)
	l := &verbs.BufferList{Size: pageSize, FBO: w.rng.IntN(pageSize)}
	for _, f := range w.rng.Perm(pages)[:n] {
		l.Buffers = append(l.Buffers, h.mem[f*pageSize:(f+1)*pageSize])
	}
	l.Length = 1 + w.rng.Uint64N(uint64(n*pageSize-l.FBO))
	// VA modulo the page size is the FBO (Verbs §7.6.1.1).
	return someMemory{list: l, va: (w.rng.Uint64()>>8)&^(pageSize-1) | uint64(l.FBO)}
}

func (w *world) someRights() (a memory.Access) {
	for !a.Valid() {
		a = memory.Access(w.rng.Uint32()) & everything
	}
	return a
}

// become makes a region of the model Valid.
func (r *region) become(m someMemory, stag memory.STag, rights memory.Access, zero bool) {
	r.ok, r.stag, r.access, r.zero = true, stag, rights, zero
	r.base = m.va
	if zero {
		r.base = 0
	}
	arenaAt := func(b []byte) int {
		return int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) - uintptr(unsafe.Pointer(unsafe.SliceData(r.host.mem))))
	}
	if m.list == nil {
		r.frames, r.start, r.length = nil, arenaAt(m.buf), uint64(len(m.buf))
		return
	}
	r.frames, r.start, r.length = nil, m.list.FBO, m.list.Length
	for _, b := range m.list.Buffers {
		r.frames = append(r.frames, arenaAt(b)/pageSize)
	}
}

// add adds a region to the model.
func (h *host) add(r *region) {
	h.regions = append(h.regions, r)
	h.byIndex[r.stag.Index()] = r
}

// register registers a region of the host. The first of each domain is the
// whole arena, with all rights, and stays.
func (w *world) register(h *host) {
	r := &region{host: h, pd: w.rng.IntN(2)}
	m, rights, zero := w.someMemory(h), w.someRights(), w.chance(40)
	if n := len(h.regions); n < 2 {
		r.keep, r.pd = true, n
		m, rights, zero = someMemory{buf: h.mem, va: 1 << 32}, everything, false
	}
	r.flag, r.entries = rights.Remote(), 1
	if m.list != nil {
		r.entries = len(m.list.Buffers)
	}
	mr, err := h.pds[r.pd].RegisterMR(verbs.MRConfig{
		Buf: m.buf, List: m.list, VA: m.va, ZeroBased: zero, Access: rights, Key: uint8(w.rng.Uint32()),
	})
	w.must(err)
	r.mr = mr
	r.become(m, mr.STag(), rights, zero)
	h.add(r)
}

// manage does something to the memory of a host.
func (w *world) manage(h *host) {
	r := h.regions[w.rng.IntN(len(h.regions))]
	switch n := w.rng.IntN(9); {
	case n == 0 && len(h.regions) < 16:
		w.register(h)
	case n == 1 && len(h.regions) < 16:
		w.allocate(h)
	case n == 2 && len(h.windows) < 8:
		pd := w.rng.IntN(2)
		mw, err := h.pds[pd].AllocMW()
		w.must(err)
		x := &window{host: h, mw: mw, pd: pd, stag: mw.STag()}
		h.windows = append(h.windows, x)
		h.byIndex[x.stag.Index()] = x
	case n == 3 && !r.keep:
		if r.bound > 0 {
			w.wantError(r.mr.Deallocate(), verbs.ErrMRWindows)
			return
		}
		w.wantError(r.mr.Deallocate(), nil)
		w.wantError(r.mr.Deallocate(), verbs.ErrSTag)
		h.drop(r.stag.Index())
	case n == 4 && len(h.windows) > 0:
		x := h.windows[w.rng.IntN(len(h.windows))]
		w.wantError(x.mw.Deallocate(), nil)
		w.wantError(x.mw.Deallocate(), verbs.ErrSTag)
		x.release()
		h.drop(x.stag.Index())
	case n == 5 && !r.keep:
		w.reregister(h, r)
	case n == 6 && !r.keep && len(h.regions) < 16:
		w.registerShared(h, r)
	case n == 7:
		w.query(h)
	default:
		pd := w.rng.IntN(2)
		w.wantError(h.pds[pd].Dealloc(), verbs.ErrPDInUse) // the regions that stay
	}
}

// allocate is Allocate STag.
func (w *world) allocate(h *host) {
	r := &region{host: h, pd: w.rng.IntN(2), flag: w.chance(80), entries: 1 + w.rng.IntN(8)}
	mr, err := h.pds[r.pd].AllocMR(r.entries, r.flag)
	w.must(err)
	a, err := mr.Query()
	w.must(err)
	r.mr, r.stag, r.entries = mr, mr.STag(), a.Entries
	h.add(r)
}

// reregister gives a region other memory, or takes it away by asking for what
// cannot be.
func (w *world) reregister(h *host, r *region) {
	m, rights, zero, pd := w.someMemory(h), w.someRights(), w.chance(40), w.rng.IntN(2)
	cfg := verbs.MRConfig{Buf: m.buf, List: m.list, VA: m.va, ZeroBased: zero, Access: rights, Key: uint8(w.rng.Uint32())}
	var want error
	switch {
	case r.shared:
		want = verbs.ErrSTag
	case r.bound > 0:
		want = verbs.ErrMRWindows
	case w.chance(20):
		cfg.Access, want = verbs.RemoteRead, verbs.ErrAccess
	}
	w.wantError(r.mr.Reregister(h.pds[pd], cfg), want)
	switch want {
	case nil:
		delete(h.byIndex, r.stag.Index())
		r.pd, r.flag = pd, rights.Remote()
		if n := 1; m.list == nil {
			r.entries = max(r.entries, n)
		} else {
			r.entries = max(r.entries, len(m.list.Buffers))
		}
		r.become(m, r.mr.STag(), rights, zero)
		h.byIndex[r.stag.Index()] = r
	case verbs.ErrAccess:
		h.drop(r.stag.Index()) // Verbs §7.3.2.3
	}
}

// registerShared registers the memory of a region once more.
func (w *world) registerShared(h *host, r *region) {
	rights, zero, pd := w.someRights(), w.chance(40), w.rng.IntN(2)
	cfg := verbs.SharedConfig{ExistingKey: r.stag.Key(), Access: rights, Key: uint8(w.rng.Uint32()), ZeroBased: zero}
	cfg.VA = w.rng.Uint64() >> 8
	if r.frames != nil {
		cfg.VA = cfg.VA&^(pageSize-1) | uint64(r.start)
	}
	if !r.ok || w.chance(10) {
		cfg.ExistingKey ^= 1
		_, err := r.mr.RegisterShared(h.pds[pd], cfg)
		w.wantError(err, verbs.ErrSTag)
		return
	}
	mr, err := r.mr.RegisterShared(h.pds[pd], cfg)
	w.must(err)
	s := *r
	s.mr, s.stag, s.pd, s.access, s.zero, s.flag, s.bound = mr, mr.STag(), pd, rights, zero, rights.Remote(), 0
	s.base = cfg.VA
	if zero {
		s.base = 0
	}
	s.shared, r.shared = true, true
	h.add(&s)
}

// query compares what the RNIC says of its regions and windows with the model.
func (w *world) query(h *host) {
	for _, r := range h.regions {
		a, err := r.mr.Query()
		w.must(err)
		if a.Valid != r.ok || a.Shared != r.shared || a.RemoteAccess != r.flag || a.PD != h.pds[r.pd] || a.Windows != r.bound ||
			a.Index != r.stag.Index() || a.Entries < r.entries || r.ok && (a.Key != r.stag.Key() || a.Access != r.access) {
			w.fail("region %v of host %d is %+v, expected %+v", r.stag, h.number, a, *r)
		}
	}
	for _, x := range h.windows {
		a, err := x.mw.Query()
		w.must(err)
		if a.Valid != x.ok || a.Index != x.stag.Index() || !x.ok && a.PD != h.pds[x.pd] ||
			x.ok && (a.Key != x.stag.Key() || a.Access != x.access || a.QP != x.qp.qp.Num() || a.Base != x.base || a.Length != x.length || a.Region != x.region.stag.Index()) {
			w.fail("window %v of host %d is %+v, expected %+v", x.stag, h.number, a, *x)
		}
	}
	u := h.rnic.Usage()
	if bound := slices.Collect(func(yield func(*window) bool) {
		for _, x := range h.windows {
			if x.ok && !yield(x) {
				return
			}
		}
	}); u.Regions != len(h.regions) || u.Windows != len(h.windows) {
		w.fail("host %d: %+v, expected %d regions and %d windows, %d bound", h.number, u, len(h.regions), len(h.windows), len(bound))
	}
}
