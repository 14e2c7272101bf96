package rdmap

import "github.com/weft-rdma/weft/ddp"

// Responder: the peer's Reads and atomics are answered, without the ULP.

// startAnswer starts the response to the peer's oldest request. Requests are
// served one after the other in the order of their arrival, Reads and atomics
// alike, which keeps every row of RFC 5040 appendix B and RFC 7306 §7.
func (o *outbound) startAnswer() bool {
	s, m := o.s, &o.msg
	if s.term.Load() != nil || !s.requests.front(&m.req) {
		return false
	}
	m.kind, m.body = kindAnswer, nil
	if m.req.atomic {
		return o.startAtomicResponse()
	}
	m.opcode = OpReadResponse
	r := &m.req.read
	o.ddp.StartTagged(Control(s.rv, OpReadResponse), r.SinkSTag, r.SinkTO, r.Size)
	return true
}

// startAtomicResponse does what the request asks and starts its answer. The
// operation is executed when the answers to all earlier requests have been
// generated (RFC 7306 §5.4 rule 8, §7).
func (o *outbound) startAtomicResponse() bool {
	s, m := o.s, &o.msg
	a := &m.req.op
	found, aligned, f := s.ulp.Atomic(a)
	if !aligned || f != ddp.NoFault {
		o.unanswered(m.req.atomicFault(aligned, f))
		return true // gather goes on with the Terminate
	}
	m.opcode = OpAtomicResponse
	r := AtomicResponse{ID: a.ID, Original: found}
	o.startUntagged(r.Append(m.fixed[:0]), QueueAtomicResponse)
	return true
}

// unanswered ends the stream because of a request that cannot be answered. The
// ULP learns of it first, so that it has an event to tell of; with the stream's
// Terminate set in any case the request is not tried again.
func (o *outbound) unanswered(err error) {
	o.s.ulp.Unanswered(err)
	o.s.Terminate(err)
}
