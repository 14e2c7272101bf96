// This file takes messages that are like the one before: Writes, Read Responses and Read Requests
// that have arrived together. What is the same for all of them is not looked at again.

package rdmap

import "github.com/weft-rdma/weft/ddp"

// PlaceAlike is AdmitTagged and PlaceTagged for a Write behind a Write, and a Read Response behind
// a Read Response (see [ddp.RepeatingULP]).
func (in *inbound) PlaceAlike(stag uint32, to uint64, n int) []byte {
	s := in.s
	switch {
	case in.targets == nil, s.term.Load() != nil, s.closing.Load():
		return nil
	case in.op == OpWrite:
		return in.targets.AnotherTarget(stag, to, n)
	}
	// AdmitTagged was called for a Read Response: the Read that it answers has been popped.
	p := s.responses.ahead(in.alike)
	if in.runEnds(in.alike) || p == nil || p.opcode != OpReadRequest || p.rtr || p.sinkSTag != stag || p.sinkTO != to || uint64(p.length) != uint64(n) {
		return nil
	}
	dst := in.targets.AnotherSink(p.ticket, stag, to, n)
	if dst != nil {
		in.alike++
	}
	return dst
}

// DeliverAlike is DeliverTagged for such messages.
func (in *inbound) DeliverAlike(messages int, octets uint64) {
	in.prove()
	a := &in.arrivals
	a.messages += uint64(messages)
	if in.op == OpWrite {
		in.s.arrived(false)
		a.writes += uint64(messages)
		a.octets += octets
		return
	}
	q := &in.s.responses
	last := q.ahead(messages - 1).ticket
	q.popped.Add(uint32(messages))
	in.alike = 0
	in.targets.Answered(last)
	q.seen.Add(uint32(messages))
	in.answered += messages
	in.pipeline()
}

// PlaceQueued is AdmitUntagged, Buffer and PlaceUntagged for a Send behind a Send, and for a Read
// Request behind a Read Request (see [ddp.QueueingULP]).
func (in *inbound) PlaceQueued(u []byte) (dst []byte, ok bool) {
	if in.s.term.Load() != nil || in.s.closing.Load() {
		return nil, false
	}
	switch in.op {
	case OpReadRequest:
		return nil, in.queueRequest(u)
	case OpSend, OpSendSE:
		return in.placeSend(len(u) - ddp.UntaggedLen)
	}
	return nil, false
}

// queueRequest puts a Read Request in the place behind those that wait for an answer.
func (in *inbound) queueRequest(u []byte) bool {
	q := &in.s.requests
	if _, full := q.full(); full || len(u) != ddp.UntaggedLen+ReadRequestLen {
		return false
	}
	r := q.back()
	r.opcode, r.sent, r.length, r.header = OpReadRequest, 0, len(u), [ddp.UntaggedLen]byte(u)
	if reads.parse(in, r, u[ddp.UntaggedLen:]) != nil {
		return false
	}
	q.commit()
	in.asked++
	return true
}

// placeSend finds the memory for a Send of n octets.
func (in *inbound) placeSend(n int) (dst []byte, ok bool) {
	a := &in.sends
	if in.receives == nil || a.n == len(a.lengths) || n == 0 {
		return nil, false
	}
	if dst = in.receives.AnotherReceive(a.n, n); dst == nil {
		return nil, false
	}
	a.lengths[a.n] = uint32(n)
	a.n++
	return dst, true
}

// sends are Sends that PlaceQueued has placed and DeliverQueued has not delivered.
type sends struct {
	n       int
	lengths [32]uint32
}

// DeliverQueued is DeliverUntagged for such messages. The one before them has passed the reportGate.
func (in *inbound) DeliverQueued(messages int) {
	in.arrivals.messages += uint64(messages)
	if in.op == OpReadRequest {
		return
	}
	in.count()
	in.s.arrived(false)
	in.receives.DeliveredRun(in.op, in.sends.lengths[:messages])
	in.sends.n = 0
}
