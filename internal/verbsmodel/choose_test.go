package verbsmodel_test

import (
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// The choice of work requests: most are valid, some name memory that they must not.

// A lane is a part of every arena. What happens at the same time as something
// else keeps to a lane of its own.
type lane struct{ from, to int }

var (
	anywhere = lane{0, 10 * pageSize}
	lanes    = [2]lane{{0, 5 * pageSize}, {5 * pageSize, 10 * pageSize}}
)

// receives of a queue pair, or of an S-RQ, go to a page of their own.
func (w *world) inbox(q *queuePair) lane {
	for i := range w.qps {
		if w.qps[i] == q {
			return lane{(10 + i) * pageSize, (11 + i) * pageSize}
		}
	}
	return lane{14 * pageSize, 15 * pageSize}
}

// offsetOf is where n octets of the arena lie in the region, if they do.
func (r *region) offsetOf(at, n int) (off uint64, ok bool) {
	if r.frames == nil {
		if at < r.start || uint64(at+n-r.start) > r.length {
			return 0, false
		}
		return uint64(at - r.start), true
	}
	if at/pageSize != (at+n-1)/pageSize {
		return 0, false
	}
	for i, f := range r.frames {
		if f == at/pageSize {
			o := i*pageSize + at%pageSize - r.start
			return uint64(o), o >= 0 && uint64(o+n) <= r.length
		}
	}
	return 0, false
}

// reachable names n octets of h's memory in l that the access a may use; ok is false if
// chance found none.
func (w *world) reachable(h *host, a access, n int, l lane) (stag memory.STag, to uint64, ok bool) {
	if n == 0 {
		return memory.STag(w.rng.Uint32()), w.rng.Uint64(), true
	}
	for range 8 {
		at := l.from + w.rng.IntN(l.to-l.from-n+1)
		if a.need == verbs.RemoteAtomic {
			at &^= 7
		}
		r := h.regions[w.rng.IntN(len(h.regions))]
		if w.chance(30) {
			r = h.regions[a.pd] // the one that everybody uses
		}
		off, in := r.offsetOf(at, n)
		if in && r.ok && r.pd == a.pd && r.access&a.need == a.need {
			return r.stag, r.base + off, true
		}
		if a.need&(verbs.LocalRead|verbs.LocalWrite) != 0 || len(h.windows) == 0 {
			continue
		}
		x := h.windows[w.rng.IntN(len(h.windows))]
		if !x.ok || x.qp != a.q || x.access&a.need != a.need {
			continue
		}
		off, in = x.region.offsetOf(at, n)
		if in && off >= x.off && off+uint64(n) <= x.off+x.length {
			return x.stag, x.base + off - x.off, true
		}
	}
	return 0, 0, false
}

// spoil makes a name one that is refused, most of the time.
func (w *world) spoil(h *host, stag memory.STag, to uint64) (memory.STag, uint64) {
	switch w.rng.IntN(6) {
	case 0:
		return stag ^ 1, to
	case 1:
		return stag, to + arena
	case 2:
		return stag, ^uint64(0) - uint64(w.rng.IntN(4))
	case 3:
		return memory.STag(w.rng.Uint32()), to
	case 4:
		if len(h.windows) > 0 {
			x := h.windows[w.rng.IntN(len(h.windows))]
			return x.stag, x.base
		}
	}
	r := h.regions[w.rng.IntN(len(h.regions))]
	return r.stag, r.base + uint64(w.rng.IntN(64))
}

// list is a scatter/gather list of up to most elements and n octets.
func (w *world) list(h *host, a access, n, most int, l lane) (sgl []verbs.SGE, total int) {
	for range w.rng.IntN(most + 1) {
		part := w.rng.IntN(n + 1)
		if stag, to, ok := w.reachable(h, a, part, l); ok {
			sgl = append(sgl, verbs.SGE{STag: stag, TO: to, Length: uint32(part)})
			total += part
		}
	}
	return sgl, total
}

// wildLength bounds what may be refused: one segment, all or nothing.
const wildLength = 400

// request chooses a work request for q, in l. wild lets it be one that fails.
func (w *world) request(q *queuePair, l lane, wild bool) verbs.SendWR {
	w.ids++
	wr := verbs.SendWR{ID: w.ids}
	if w.chance(60) {
		wr.Flags = verbs.Signaled
	}
	if q.state != verbs.RTS || q.fenced {
		// It has to wait, for an unknown time: so it has no payload.
		wr.Op, wr.Flags = pick(w, verbs.OpSend, verbs.OpSendSE, verbs.OpImmediate), verbs.Signaled
		return wr
	}
	p := q.peer
	size := 3000
	if wild {
		size = wildLength
	}
	mine := access{q, q.pd, verbs.LocalRead}
	theirs := func(need memory.Access) access { return access{p, p.pd, need} }
	wr.Op = pick(w, verbs.OpSend, verbs.OpSend, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate,
		verbs.OpWrite, verbs.OpWrite, verbs.OpWrite, verbs.OpRead, verbs.OpRead, verbs.OpReadInvalidate,
		verbs.OpImmediate, verbs.OpImmediateSE, verbs.OpFetchAdd, verbs.OpCmpSwap)
	var n int
	switch wr.Op {
	case verbs.OpSend, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate, verbs.OpWrite:
		wr.SGL, n = w.list(q.host, mine, size/4, 4, l)
	case verbs.OpRead, verbs.OpReadInvalidate:
		n = w.rng.IntN(size)
		stag, to, ok := w.reachable(q.host, access{q, q.pd, verbs.RemoteWrite}, n, l)
		if !ok {
			n = 0
		}
		wr.SGL = []verbs.SGE{{STag: stag, TO: to, Length: uint32(n)}}
	case verbs.OpFetchAdd, verbs.OpCmpSwap:
		n = 8
		stag, to, _ := w.reachable(q.host, access{q, q.pd, verbs.LocalWrite}, n, l)
		wr.SGL = []verbs.SGE{{STag: stag, TO: to, Length: 8}}
		wr.Atomic = verbs.Atomic{Data: w.rng.Uint64()}
		if wr.Op == verbs.OpCmpSwap {
			wr.Atomic.Mask, wr.Atomic.CompareMask = w.rng.Uint64(), pick(w, 0, 1, ^uint64(0))
			wr.Atomic.Compare = w.rng.Uint64()
		}
	case verbs.OpImmediate, verbs.OpImmediateSE:
		octets := w.rng.Uint64()
		for i := range wr.Immediate {
			wr.Immediate[i] = byte(octets >> (8 * i))
		}
	}
	switch wr.Op {
	case verbs.OpWrite:
		wr.Remote.STag, wr.Remote.TO, _ = w.reachable(p.host, theirs(verbs.RemoteWrite), n, l)
	case verbs.OpRead, verbs.OpReadInvalidate:
		wr.Remote.STag, wr.Remote.TO, _ = w.reachable(p.host, theirs(verbs.RemoteRead), n, l)
	case verbs.OpFetchAdd, verbs.OpCmpSwap:
		wr.Remote.STag, wr.Remote.TO, _ = w.reachable(p.host, theirs(verbs.RemoteAtomic), n, l)
	case verbs.OpSendInvalidate, verbs.OpSendSEInvalidate:
		wr.Invalidate = w.invalidable(p, wild)
	}
	if wild && w.chance(5) {
		if len(wr.SGL) > 0 && w.chance(50) {
			e := &wr.SGL[w.rng.IntN(len(wr.SGL))]
			e.STag, e.TO = w.spoil(q.host, e.STag, e.TO)
		} else {
			wr.Remote.STag, wr.Remote.TO = w.spoil(p.host, wr.Remote.STag, wr.Remote.TO)
		}
	}
	if wr.Op == verbs.OpReadInvalidate && q.host.kept(wr.SGL[0].STag) {
		wr.Op = verbs.OpRead
	}
	return wr
}

// kept reports that a STag is of a region that stays.
func (h *host) kept(stag memory.STag) bool {
	r, ok := h.byIndex[stag.Index()].(*region)
	return ok && r.keep
}

// invalidable is the STag of something that q may invalidate, or, if wild, of
// anything.
func (w *world) invalidable(q *queuePair, wild bool) memory.STag {
	h := q.host
	if wild && w.chance(10) {
		stag, _ := w.spoil(h, h.regions[0].stag, 0)
		if !h.kept(stag) {
			return stag
		}
	}
	for range 8 {
		if len(h.windows) > 0 && w.chance(50) {
			if x := h.windows[w.rng.IntN(len(h.windows))]; x.ok && x.qp == q {
				return x.stag
			}
		}
		// The first regions are everybody's: they stay.
		if r := h.regions[w.rng.IntN(len(h.regions))]; !r.keep && r.pd == q.pd && !r.shared && r.bound == 0 && (r.access.Remote() || !r.ok) && r.flag {
			return r.stag
		}
	}
	return h.regions[0].stag ^ 1
}

// fits reports that a request will succeed as things are, after receives Sends
// to the same peer; one that has to wait does.
func (q *queuePair) fits(wr *verbs.SendWR, receives int) bool {
	if q.state != verbs.RTS || q.fenced {
		return true
	}
	p := q.peer
	var n uint64
	for _, e := range wr.SGL {
		n += uint64(e.Length)
	}
	can := func(h *host, a access, stag memory.STag, to, n uint64) bool {
		_, status := h.resolve(a, stag, to, n)
		return status == verbs.Success
	}
	switch wr.Op {
	case verbs.OpRead, verbs.OpReadInvalidate:
		e := wr.SGL[0]
		if wr.Op == verbs.OpReadInvalidate && q.host.mayInvalidate(q, e.STag, false) != verbs.Success {
			return false
		}
		return n > 0 && e.STag != 0 && wr.Remote.STag != 0 && !q.cfg.NoRemoteWrite &&
			can(q.host, access{q, q.pd, verbs.RemoteWrite}, e.STag, e.TO, n) && can(p.host, access{p, p.pd, verbs.RemoteRead}, wr.Remote.STag, wr.Remote.TO, n)
	case verbs.OpFetchAdd, verbs.OpCmpSwap:
		e := wr.SGL[0]
		if e.STag == 0 || wr.Remote.STag == 0 {
			return false
		}
		r, status := p.host.resolve(access{p, p.pd, verbs.RemoteAtomic}, wr.Remote.STag, wr.Remote.TO, n)
		return status == verbs.Success && r.aligned() && !p.cfg.NoRemoteWrite && can(q.host, access{q, q.pd, verbs.LocalWrite}, e.STag, e.TO, n)
	}
	if _, status := q.gather(wr.SGL, q.pd, verbs.LocalRead); status != verbs.Success {
		return false
	}
	if wr.Op == verbs.OpWrite {
		return n == 0 || wr.Remote.STag != 0 && !p.cfg.NoRemoteWrite && can(p.host, access{p, p.pd, verbs.RemoteWrite}, wr.Remote.STag, wr.Remote.TO, n)
	}
	if wr.Op == verbs.OpSendInvalidate || wr.Op == verbs.OpSendSEInvalidate {
		if p.host.mayInvalidate(p, wr.Invalidate, true) != verbs.Success {
			return false
		}
	}
	// The receive that it will find.
	pd := p.pd
	var queue []*slot
	if p.cfg.SRQ != nil {
		pd = p.host.srq.pd
		for _, s := range p.host.srq.slots {
			if s.took == nil {
				queue = append(queue, s)
			}
		}
	} else {
		for _, s := range p.recvs {
			if !s.done {
				queue = append(queue, s)
			}
		}
	}
	if len(queue) <= receives {
		return false
	}
	into := queue[receives]
	if wr.Op == verbs.OpImmediate || wr.Op == verbs.OpImmediateSE {
		return true
	}
	if into.length() < n {
		return false
	}
	_, status := p.gather(into.sgl, pd, verbs.LocalWrite)
	return status == verbs.Success
}
