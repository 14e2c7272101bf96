package verbsmodel_test

import (
	"math"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// Bind, Fast-Register and Invalidate Local STag: their choice and their model.

// localRequest chooses a request that only changes memory, now and then. Unless it is
// to be sure it may be one that fails.
func (w *world) localRequest(q *queuePair, reads, sure bool) (verbs.SendWR, bool) {
	if q.state != verbs.RTS || q.fenced || reads || !w.chance(20) {
		return verbs.SendWR{}, false
	}
	w.ids++
	wr := verbs.SendWR{ID: w.ids}
	if w.chance(50) {
		wr.Flags = verbs.Signaled
	}
	var status verbs.Status
	for range 8 {
		switch w.rng.IntN(3) {
		case 0:
			wr.Op, wr.Invalidate = verbs.OpInvalidate, w.invalidable(q, true)
			status = q.host.mayInvalidate(q, wr.Invalidate, false)
			if wr.Invalidate.Index() == 0 {
				continue // Immediate Error
			}
		case 1:
			b := w.binding(q)
			wr.Op, wr.Bind = verbs.OpBind, &b
			status = q.mayBind(&b)
		default:
			f := w.fast(q)
			wr.Op, wr.FastRegister = verbs.OpFastRegister, &f
			status = q.mayFastRegister(&f)
		}
		if status == verbs.Success || !sure && w.chance(5) {
			return wr, true
		}
	}
	return verbs.SendWR{}, false
}

// binding chooses a window, a region and a part of it.
func (w *world) binding(q *queuePair) verbs.Binding {
	h := q.host
	r := h.regions[w.rng.IntN(len(h.regions))]
	if w.chance(40) {
		r = h.regions[q.pd]
	}
	b := verbs.Binding{
		Window: memory.STag(w.rng.Uint32() | 0x100), Region: r.stag, ZeroBased: w.chance(40),
		Access: memory.Access(w.rng.Uint32()) & (verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic),
	}
	if len(h.windows) > 0 {
		x := h.windows[w.rng.IntN(len(h.windows))]
		for range 4 {
			if !x.ok && x.pd == q.pd {
				break
			}
			x = h.windows[w.rng.IntN(len(h.windows))]
		}
		b.Window = x.stag&^0xFF | memory.STag(w.rng.IntN(256))
	}
	off := w.rng.Uint64N(max(1, r.length)) // a region that was never Valid has none
	b.VA, b.Length = r.base+off, 1+w.rng.Uint64N(max(1, r.length)-off)
	switch w.rng.IntN(60) {
	case 0:
		b.Length += r.length
	case 1:
		b.VA, b.Length = math.MaxUint64, 2
	case 2:
		b.Length = 0
	case 3:
		b.Region ^= 1
	}
	return b
}

// mayBind makes the checks of Verbs §7.10.6.1, in their order.
func (q *queuePair) mayBind(b *verbs.Binding) verbs.Status {
	x, isWindow := q.host.byIndex[b.Window.Index()].(*window)
	r, isRegion := q.host.byIndex[b.Region.Index()].(*region)
	switch {
	case !isWindow:
		return verbs.InvalidWindow
	case x.ok:
		return verbs.STagNotInvalid
	case !isRegion, !r.ok, r.stag != b.Region:
		return verbs.InvalidRegion
	case x.pd != q.pd, r.pd != q.pd:
		return verbs.InvalidPD
	case r.access&verbs.BindWindow == 0, r.zero, !bindable(b.Access, r.access):
		return verbs.AccessViolation
	case b.Length > 0 && b.VA > math.MaxUint64-(b.Length-1):
		return verbs.WrapError
	case b.Length == 0, b.VA < r.base, b.VA-r.base >= r.length, b.Length > r.length-(b.VA-r.base):
		return verbs.BaseBounds
	}
	return verbs.Success
}

// bindable is figure 20 of the Verbs, and the atomics of RFC 7306.
func bindable(want, region memory.Access) bool {
	switch {
	case want == 0:
		return false
	case want&verbs.RemoteRead != 0 && region&verbs.LocalRead == 0, want&verbs.RemoteWrite != 0 && region&verbs.LocalWrite == 0:
		return false
	case want&verbs.RemoteAtomic != 0 && region&(verbs.LocalRead|verbs.LocalWrite) != verbs.LocalRead|verbs.LocalWrite:
		return false
	}
	return true
}

func (q *queuePair) bind(wr *verbs.SendWR) verbs.Status {
	b := wr.Bind
	status := q.mayBind(b)
	if status != verbs.Success {
		return status
	}
	x, r := q.host.byIndex[b.Window.Index()].(*window), q.host.byIndex[b.Region.Index()].(*region)
	x.ok, x.qp, x.region, x.stag = true, q, r, b.Window
	x.off, x.length, x.access, x.base = b.VA-r.base, b.Length, b.Access, b.VA
	if b.ZeroBased {
		x.base = 0
	}
	r.bound++
	return verbs.Success
}

// fast chooses a region, most of the time one that can be fast-registered, and
// memory for it.
func (w *world) fast(q *queuePair) verbs.FastRegister {
	h := q.host
	r := h.regions[w.rng.IntN(len(h.regions))]
	for range 8 {
		if !r.ok && r.pd == q.pd {
			break
		}
		r = h.regions[w.rng.IntN(len(h.regions))]
	}
	f := verbs.FastRegister{STag: r.stag&^0xFF | memory.STag(w.rng.IntN(256)), ZeroBased: w.chance(40)}
	m := w.someMemory(h)
	f.Buf, f.VA, f.Access = m.buf, m.va, w.someRights()
	if m.list != nil {
		f.List = *m.list
	}
	return f
}

// mayFastRegister makes the checks of Verbs §7.3.2.5.
func (q *queuePair) mayFastRegister(f *verbs.FastRegister) verbs.Status {
	r, ok := q.host.byIndex[f.STag.Index()].(*region)
	switch {
	case !ok, r.shared:
		return verbs.InvalidSTag
	case r.pd != q.pd:
		return verbs.InvalidPD
	case r.ok:
		return verbs.STagNotInvalid
	case max(1, len(f.List.Buffers)) > r.entries:
		return verbs.BufferListTooLong
	case f.Access.Remote() && !r.flag:
		return verbs.InvalidFRAccess
	}
	return verbs.Success
}

func (q *queuePair) fastRegister(wr *verbs.SendWR) verbs.Status {
	f := wr.FastRegister
	status := q.mayFastRegister(f)
	if status != verbs.Success {
		return status
	}
	r := q.host.byIndex[f.STag.Index()].(*region)
	m := someMemory{buf: f.Buf, va: f.VA}
	if f.List.Buffers != nil {
		m.list = &f.List
	}
	r.become(m, f.STag, f.Access, f.ZeroBased)
	return verbs.Success
}
