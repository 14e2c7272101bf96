package rdmap

import "github.com/weft-rdma/weft/ddp"

// Culprit finds the Read or atomic of this side that the peer's Terminate message
// names as its cause: it is outstanding, and the header of the segment at fault, and
// of the Read Request if there is one, are those that were sent for it. Other causes,
// like a Send or Write, cannot be identified by headers alone. The goroutine of Reader
// calls it.
func (s *Stream) Culprit(e *TerminateError) (ticket uint64, ok bool) {
	var p pending
	ok = s.responses.find(&p, func(p *pending) bool {
		return !p.rtr && p.named(e) && (p.opcode != OpReadRequest || p.asked(e.ReadRequest))
	})
	return p.ticket, ok
}

// named reports whether e names the segment that carried the request.
func (p *pending) named(e *TerminateError) bool {
	var h ddp.Untagged
	if !h.Parse(e.DDPHeader) {
		return false
	}
	_, op, _ := ParseControlUntagged(h.RsvdULP)
	return h.QN == QueueRequest && h.MSN == p.msn && op == p.opcode
}

// asked reports whether r, if there is one, is the request or what was left of it
// when it failed (RFC 5040 §4.8).
func (p *pending) asked(r *ReadRequest) bool {
	return r == nil || r.SinkSTag == p.sinkSTag && r.Size <= p.length && r.SinkTO+uint64(r.Size) == p.sinkTO+uint64(p.length)
}
