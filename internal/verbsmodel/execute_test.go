package verbsmodel_test

import (
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// The model of work requests: the effect of one on both ends.

// execute executes the oldest request of a send queue whose stream can carry it.
func (q *queuePair) execute(s *slot) {
	wr := &s.send
	switch wr.Op {
	case verbs.OpBind:
		q.local(s, q.bind(wr))
	case verbs.OpFastRegister:
		q.local(s, q.fastRegister(wr))
	case verbs.OpInvalidate:
		q.local(s, q.host.invalidate(q, wr.Invalidate, false))
	case verbs.OpWrite:
		q.write(s)
	case verbs.OpRead, verbs.OpReadInvalidate, verbs.OpFetchAdd, verbs.OpCmpSwap:
		q.ask(s)
	default:
		q.sendMessage(s)
	}
	if q.peer != nil && wr.Op != verbs.OpBind && wr.Op != verbs.OpFastRegister && wr.Op != verbs.OpInvalidate {
		p := q.peer
		p.fenced = false
		p.run()
	}
}

// local ends a request that has nothing to do with the wire.
func (q *queuePair) local(s *slot, status verbs.Status) {
	s.finish(status)
	if status != verbs.Success {
		q.fail(0)
	}
}

// gather finds the octets of a scatter/gather list.
func (q *queuePair) gather(sgl []verbs.SGE, pd int, need memory.Access) ([]reach, verbs.Status) {
	var all []reach
	for _, e := range sgl {
		r, status := q.host.resolve(access{q, pd, need}, e.STag, e.TO, uint64(e.Length))
		if status != verbs.Success {
			return nil, status
		}
		if r.n > 0 {
			all = append(all, r)
		}
	}
	return all, verbs.Success
}

// payload is what a Send or Write carries; ok is false if it failed.
func (q *queuePair) payload(s *slot) (b []byte, ok bool) {
	from, status := q.gather(s.sgl, q.pd, verbs.LocalRead)
	if status != verbs.Success {
		q.local(s, status)
		return nil, false
	}
	for _, r := range from {
		b = append(b, r.get()...)
	}
	return b, true
}

func (q *queuePair) write(s *slot) {
	if s.length() > 0 && s.send.Remote.STag == 0 {
		q.local(s, verbs.InvalidSTag) // Verbs §8.1.3.2.1
		return
	}
	b, ok := q.payload(s)
	if !ok {
		return
	}
	p := q.peer
	s.finish(verbs.Success)
	if len(b) == 0 {
		return
	}
	if p.cfg.NoRemoteWrite {
		p.fail(verbs.EventWriteDisabled)
		return
	}
	to, status := p.host.resolve(access{p, p.pd, verbs.RemoteWrite}, s.send.Remote.STag, s.send.Remote.TO, uint64(len(b)))
	if status != verbs.Success {
		p.fail(protection[status])
		return
	}
	to.put(b)
}

// The events for a peer's tagged message and for its request that were refused
// (Verbs figure 37).
var (
	protection = map[verbs.Status]verbs.EventID{
		verbs.InvalidSTag: verbs.EventProtectionSTag, verbs.BaseBounds: verbs.EventProtectionBounds,
		verbs.AccessViolation: verbs.EventProtectionAccess, verbs.InvalidPD: verbs.EventProtectionPD,
		verbs.WrapError: verbs.EventProtectionWrap,
	}
	requests = map[verbs.Status]verbs.EventID{
		verbs.InvalidSTag: verbs.EventIRRQSTag, verbs.BaseBounds: verbs.EventIRRQBounds,
		verbs.AccessViolation: verbs.EventIRRQAccess, verbs.InvalidPD: verbs.EventIRRQPD,
		verbs.WrapError: verbs.EventIRRQWrap,
	}
)

// ask is a Read or an atomic.
func (q *queuePair) ask(s *slot) {
	wr, p := &s.send, q.peer
	atomic := wr.Op == verbs.OpFetchAdd || wr.Op == verbs.OpCmpSwap
	sinkRight, sourceRight := verbs.RemoteWrite, verbs.RemoteRead
	if atomic {
		sinkRight, sourceRight = verbs.LocalWrite, verbs.RemoteAtomic
	}
	e := s.sgl[0]
	n := uint64(e.Length)
	if q.ord == 0 {
		q.local(s, verbs.ZeroReadResources)
		return
	}
	if n > 0 && (wr.Remote.STag == 0 || !atomic && e.STag == 0) {
		q.local(s, verbs.InvalidSTag) // Verbs §8.1.3.2.1
		return
	}
	var sink reach
	var status verbs.Status
	if atomic {
		if sink, status = q.host.resolve(access{q, q.pd, sinkRight}, e.STag, e.TO, n); status != verbs.Success {
			q.local(s, status)
			return
		}
	}
	if atomic && p.cfg.NoRemoteWrite {
		s.finish(verbs.RemoteTermination)
		p.fail(verbs.EventIRRQAccess)
		return
	}
	source, status := p.host.resolve(access{p, p.pd, sourceRight}, wr.Remote.STag, wr.Remote.TO, n)
	if status != verbs.Success {
		s.finish(verbs.RemoteTermination)
		p.fail(requests[status])
		return
	}
	if !atomic {
		// The answer is a remote access (Verbs §7.4.2); a window will do, too.
		if n > 0 && q.cfg.NoRemoteWrite {
			s.finish(verbs.Flushed)
			q.fail(verbs.EventWriteDisabled)
			return
		}
		if sink, status = q.host.resolve(access{q, q.pd, sinkRight}, e.STag, e.TO, n); status != verbs.Success {
			s.finish(verbs.Flushed)
			q.fail(protection[status])
			return
		}
	}
	if atomic {
		if !source.aligned() {
			s.finish(verbs.RemoteTermination)
			p.fail(verbs.EventNoLastBit) // 0/2/7
			return
		}
		found := value(source.get())
		sink.put(octets(found))
		source.put(octets(result(wr, found)))
	} else if n > 0 {
		sink.put(source.get())
	}
	status = verbs.Success
	if wr.Op == verbs.OpReadInvalidate {
		status = q.host.invalidate(q, e.STag, false)
	}
	q.local(s, status)
}

// result is what an atomic leaves (RFC 7306 §5.1, with masks of all ones or,
// for FetchAdd, none).
func result(wr *verbs.SendWR, found uint64) uint64 {
	a := &wr.Atomic
	if wr.Op == verbs.OpFetchAdd {
		return found + a.Data
	}
	if (found^a.Compare)&a.CompareMask != 0 {
		return found
	}
	return found&^a.Mask | a.Data&a.Mask
}

// sendMessage is a Send of any kind or Immediate Data.
func (q *queuePair) sendMessage(s *slot) {
	wr, p := &s.send, q.peer
	immediate := wr.Op == verbs.OpImmediate || wr.Op == verbs.OpImmediateSE
	b, ok := q.payload(s)
	if !ok {
		return
	}
	s.finish(verbs.Success)
	into := p.receive()
	switch {
	case into == nil:
		p.fail(verbs.EventRQMSNRange)
		return
	case immediate:
		into.finishRecv(verbs.OpRecvImmediate, verbs.Success)
		into.bytes, into.imm, into.se = 8, wr.Immediate, wr.Op == verbs.OpImmediateSE
		return
	case uint64(len(b)) > into.length():
		into.finishRecv(verbs.OpRecv, verbs.BaseBounds)
		p.fail(0)
		return
	}
	if status := p.scatter(into, b); status != verbs.Success {
		into.finishRecv(verbs.OpRecv, status)
		p.fail(0)
		return
	}
	if wr.Op == verbs.OpSendInvalidate || wr.Op == verbs.OpSendSEInvalidate {
		if p.host.invalidate(p, wr.Invalidate, true) != verbs.Success {
			into.finishRecv(verbs.OpRecv, verbs.InvalidateRefused)
			p.fail(0)
			return
		}
		stag := wr.Invalidate
		into.inv = &stag
	}
	into.finishRecv(verbs.OpRecv, verbs.Success)
	into.bytes, into.se = uint32(len(b)), wr.Op == verbs.OpSendSE || wr.Op == verbs.OpSendSEInvalidate
}

// scatter places a message: of an S-RQ it is the queue's domain that counts
// (Verbs §7.6.3). What of it there is a place for, if there is none for the rest, may be
// placed or not: that goes by where its segments end.
func (q *queuePair) scatter(into *slot, b []byte) verbs.Status {
	pd := q.pd
	if q.cfg.SRQ != nil {
		pd = q.host.srq.pd
	}
	var places []place
	for _, e := range into.sgl {
		if len(b) == 0 {
			break
		}
		n := min(uint64(e.Length), uint64(len(b)))
		r, status := q.host.resolve(access{q, pd, verbs.LocalWrite}, e.STag, e.TO, n)
		if status != verbs.Success {
			q.host.perhaps = append(q.host.perhaps, places...)
			return status
		}
		if n > 0 {
			places = append(places, place{r, b[:n]})
		}
		b = b[n:]
	}
	for _, p := range places {
		p.put(p.octets)
	}
	return verbs.Success
}
