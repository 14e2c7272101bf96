// This file is Sends and RDMA Writes (RFC 5040 §5.1, §5.3): how they are sent and received.

package rdmap

import "github.com/weft-rdma/weft/ddp"

// startSend starts a Send of any kind.
func (o *outbound) startSend(op *Operation) {
	o.ddp.StartUntagged(ControlUntagged(o.s.rv, op.Opcode, op.InvalidateSTag), QueueSend, op.Length)
}

// startWrite starts an RDMA Write.
func (o *outbound) startWrite(op *Operation) {
	o.ddp.StartTagged(Control(o.s.rv, OpWrite), op.RemoteSTag, op.RemoteTO, op.Length)
}

// deliverSend completes a receive. What the message asks to invalidate is
// invalid before its completion can be seen (RFC 5040 §5.3, Verbs §8.2.2).
func (in *inbound) deliverSend(length uint32) error {
	if in.rtr {
		in.rtr = false
		in.prove()
		return nil
	}
	d := &in.delivery
	*d = Delivery{Opcode: in.message, Length: length}
	if in.message.Invalidates() {
		in.s.ulp.Release()
		if f := in.s.ulp.Invalidate(in.invalidate); f != ddp.NoFault {
			return in.s.ulp.Refused(errInvalidate(in.invalidate, f))
		}
		d.Invalidated, d.HasSTag = in.invalidate, true
	}
	in.delivered()
	return nil
}
