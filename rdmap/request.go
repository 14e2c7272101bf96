// The requester: operations of the ULP become messages.

package rdmap

// startOperation starts the next operation of the send queue, unless it has to
// wait: for its fence, or because ORD requests are outstanding, which stalls
// the queue and never fails it (RFC 5040 §6.1, Verbs §6.5).
func (o *outbound) startOperation() bool {
	s, op := o.s, &o.op
	if s.term.Load() != nil || s.closing.Load() {
		return false
	}
	if !o.stalled && !s.ulp.Next(op) {
		return false
	}
	o.stalled = op.Fence && !s.responses.allReported()
	if op.Opcode.Requests() {
		ord, full := s.responses.full()
		if ord == 0 {
			// It would never start.
			o.stalled = false
			s.ulp.Failed(op.Ticket, ErrNoORD)
			return false
		}
		o.stalled = o.stalled || full
	}
	if o.stalled {
		return false
	}

	m := &o.msg
	m.opcode, m.ticket, m.body = op.Opcode, op.Ticket, nil
	m.kind = kindOperation
	if op.Opcode.Requests() {
		m.kind = kindQuestion
	}
	handlings[op.Opcode].start(o, op)
	return true
}

// ask starts a request for the peer's RDMAP and notes that it will be answered.
func (o *outbound) ask(header []byte, p *pending) {
	p.opcode = o.msg.opcode
	p.msn = o.startUntagged(header, QueueRequest)
	o.s.responses.push(p)
}

// startUntagged starts a message of which body is all, and returns its MSN.
func (o *outbound) startUntagged(body []byte, qn uint32) (msn uint32) {
	m := &o.msg
	m.body = body
	return o.ddp.StartUntagged(ControlUntagged(o.s.rv, m.opcode, 0), qn, uint32(len(body)))
}

// startRTR starts the ready-to-receive message with which the initiator of a
// peer-to-peer stream opens it (RFC 6581 §9.2): an empty Write, Read or Send
// that completes nothing on either side.
func (o *outbound) startRTR() {
	s, m := o.s, &o.msg
	o.rtr = false
	m.kind, m.body = kindRTR, nil
	switch s.cfg.RTR {
	case RTRRead:
		m.opcode = OpReadRequest
		var r ReadRequest
		o.ask(r.Append(m.fixed[:0]), &pending{rtr: true})
	case RTRSend:
		m.opcode = OpSend
		o.ddp.StartUntagged(ControlUntagged(s.rv, OpSend, 0), QueueSend, 0)
	default:
		o.startEmptyWrite()
	}
}

// startEmptyWrite starts an RDMA Write of no octets, which names no memory.
func (o *outbound) startEmptyWrite() {
	m := &o.msg
	m.kind, m.opcode, m.body = kindRTR, OpWrite, nil
	signature := &o.s.cfg.Signature
	o.ddp.StartTagged(Control(o.s.rv, OpWrite), signature.STag, signature.TO, 0)
}
