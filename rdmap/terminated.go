// This file finds the request that a Terminate message of the peer's is about.

package rdmap

import "github.com/weft-rdma/weft/ddp"

// TerminatedRequest returns the ticket of the outstanding Read or atomic that the peer's
// Terminate message reports. The DDP header in e must be that of its request, and so
// must the Read Request header, if there is one. ok is false if there is no such
// request. A Send or a Write cannot be identified by headers alone. Only the receiving
// goroutine may call it.
func (s *Stream) TerminatedRequest(e *TerminateError) (ticket uint64, ok bool) {
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
