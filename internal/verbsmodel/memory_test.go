package verbsmodel_test

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// The model of memory: what an STag allows to whom, octet by octet.

const (
	pageSize = 4096
	pages    = 16
	arena    = pages * pageSize
)

// A host is an RNIC with its memory, twice: mem is what the RNIC works on,
// shadow what the model expects there.
type host struct {
	number  int
	rnic    *verbs.RNIC
	pds     [2]*verbs.PD
	mem     []byte
	shadow  []byte
	perhaps []place // what may have been placed since the last check
	regions []*region
	windows []*window
	byIndex map[uint32]object
	srq     *sharedQueue // nil unless the run has them
}

// An object is a region or a window of the model.
type object interface{ valid() bool }

// alignedArena is memory that begins at a page.
func alignedArena() []byte {
	b := make([]byte, arena+pageSize)
	skip := -uintptr(unsafe.Pointer(&b[0])) % pageSize
	return b[skip : skip+arena : skip+arena]
}

// A region of the model.
type region struct {
	host    *host
	mr      *verbs.MR
	pd      int
	stag    memory.STag
	ok      bool // Valid
	shared  bool
	flag    bool // remote rights may be had
	entries int  // of the longest list
	base    uint64
	zero    bool
	length  uint64
	access  memory.Access
	frames  []int // the pages that it covers, in its order; nil is a run of memory
	start   int   // offset of the first octet in the first page, or in the arena
	bound   int   // windows
	keep    bool  // everybody uses it
}

func (r *region) valid() bool { return r.ok }

// at is where octet off of the region lies in the arena.
func (r *region) at(off uint64) int {
	if r.frames == nil {
		return r.start + int(off)
	}
	off += uint64(r.start)
	return r.frames[off/pageSize]*pageSize + int(off%pageSize)
}

// A window of the model.
type window struct {
	host   *host
	mw     *verbs.MW
	pd     int
	stag   memory.STag
	ok     bool // Valid: bound
	qp     *queuePair
	region *region
	off    uint64 // of its first octet in the region
	base   uint64
	length uint64
	access memory.Access
}

func (w *window) valid() bool { return w.ok }

// A reach is a range of octets that an access was granted.
type reach struct {
	region *region
	off, n uint64
}

// An access says what is to be done, and by which side: q's own work requests, or its
// peer's.
type access struct {
	q    *queuePair
	pd   int // that regions have to be of
	need memory.Access
}

// resolve makes the checks of Verbs §7.6.3 and §7.10.6.2 in their order.
func (h *host) resolve(a access, stag memory.STag, to, n uint64) (reach, verbs.Status) {
	if n == 0 {
		return reach{}, verbs.Success
	}
	var r *region
	var base, length, shift uint64
	var rights memory.Access
	switch o := h.byIndex[stag.Index()].(type) {
	case *region:
		if !o.ok || o.stag != stag {
			return reach{}, verbs.InvalidSTag
		}
		if o.pd != a.pd {
			return reach{}, verbs.InvalidPD
		}
		r, base, length, rights = o, o.base, o.length, o.access
	case *window:
		if !o.ok || o.stag != stag {
			return reach{}, verbs.InvalidSTag
		}
		if o.qp != a.q {
			return reach{}, verbs.InvalidPD
		}
		if a.need&(verbs.LocalRead|verbs.LocalWrite) != 0 {
			return reach{}, verbs.InvalidSTag // Verbs §8.1.3.2
		}
		r, base, length, shift, rights = o.region, o.base, o.length, o.off, o.access
	default:
		return reach{}, verbs.InvalidSTag
	}
	switch {
	case rights&a.need != a.need:
		return reach{}, verbs.AccessViolation
	case to+(n-1) < to:
		return reach{}, verbs.WrapError
	case to < base, to-base >= length, n > length-(to-base):
		return reach{}, verbs.BaseBounds
	}
	return reach{r, shift + to - base, n}, verbs.Success
}

// get copies the octets that the model expects in there.
func (r reach) get() []byte {
	b := make([]byte, r.n)
	for i := range b {
		b[i] = r.region.host.shadow[r.region.at(r.off+uint64(i))]
	}
	return b
}

// put is a write of the model's.
func (r reach) put(b []byte) {
	for i := range b {
		r.region.host.shadow[r.region.at(r.off+uint64(i))] = b[i]
	}
}

// A place is octets and where they go.
type place struct {
	reach
	octets []byte
}

// adoptPlaced makes the model expect the octets that were placed, where it allows both.
func (h *host) adoptPlaced() {
	for _, p := range h.perhaps {
		for i, b := range p.octets {
			if at := p.region.at(p.off + uint64(i)); h.mem[at] == b {
				h.shadow[at] = b
			}
		}
	}
	h.perhaps = nil
}

// aligned reports that an atomic can work there.
func (r reach) aligned() bool { return r.region.at(r.off)%8 == 0 }

// mayInvalidate makes the checks of Verbs §7.8 and §7.10.4, for a queue pair of
// the host.
func (h *host) mayInvalidate(q *queuePair, stag memory.STag, remote bool) verbs.Status {
	switch o := h.byIndex[stag.Index()].(type) {
	case *region:
		switch {
		case o.ok && o.stag != stag:
			return verbs.InvalidSTag
		case o.pd != q.pd:
			return verbs.InvalidPD
		case o.shared, o.bound > 0:
			return verbs.InvalidSTag
		case remote && (o.ok && !o.access.Remote() || !o.flag):
			return verbs.AccessViolation
		}
	case *window:
		switch {
		case o.ok && o.stag != stag:
			return verbs.InvalidSTag
		case o.ok && o.qp != q, !o.ok && o.pd != q.pd:
			return verbs.InvalidPD
		}
	default:
		return verbs.InvalidSTag
	}
	return verbs.Success
}

// invalidate takes an STag back, if q may do that.
func (h *host) invalidate(q *queuePair, stag memory.STag, remote bool) verbs.Status {
	status := h.mayInvalidate(q, stag, remote)
	if status != verbs.Success {
		return status
	}
	switch o := h.byIndex[stag.Index()].(type) {
	case *region:
		o.ok = false
	case *window:
		o.release()
		o.pd = q.pd
	}
	return verbs.Success
}

// release ends the binding of a window, if it is bound.
func (w *window) release() {
	if w.ok {
		w.ok = false
		w.region.bound--
		w.region, w.qp = nil, nil
	}
}

// drop forgets a region or window that was deallocated.
func (h *host) drop(index uint32) {
	delete(h.byIndex, index)
	h.regions = slices.DeleteFunc(h.regions, func(r *region) bool { return r.stag.Index() == index })
	h.windows = slices.DeleteFunc(h.windows, func(w *window) bool { return w.stag.Index() == index })
}

// bound counts the windows bound to a queue pair.
func (q *queuePair) bound() (n int) {
	for _, w := range q.host.windows {
		if w.ok && w.qp == q {
			n++
		}
	}
	return n
}

func value(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }

func octets(v uint64) []byte { return binary.NativeEndian.AppendUint64(nil, v) }
