package rdmap

// Requester: our own operations become messages.

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
	o.stalled = op.Fence && !s.responses.settled()
	if op.Opcode == OpReadRequest || op.Opcode == OpAtomicRequest {
		ord, full := s.responses.full()
		if ord == 0 {
			// It would wait for ever.
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
	switch op.Opcode {
	case OpWrite:
		o.ddp.StartTagged(Control(s.rv, OpWrite), op.RemoteSTag, op.RemoteTO, op.Length)
	case OpReadRequest:
		m.kind = kindQuestion
		r := ReadRequest{
			SinkSTag: op.SinkSTag, SinkTO: op.SinkTO, Size: op.Length,
			SourceSTag: op.RemoteSTag, SourceTO: op.RemoteTO,
		}
		o.ask(r.Append(m.fixed[:0]), &pending{ticket: op.Ticket, sinkSTag: op.SinkSTag, sinkTO: op.SinkTO, length: op.Length})
	case OpAtomicRequest:
		m.kind = kindQuestion
		a := &op.Atomic
		// The identifier is ours to choose (RFC 7306 §5.2.1); the response's
		// MSN counts requests, so the low half of the ticket will do.
		a.ID, a.STag, a.TO = uint32(op.Ticket), op.RemoteSTag, op.RemoteTO
		o.ask(a.Append(m.fixed[:0]), &pending{ticket: op.Ticket, atomic: true, id: a.ID})
	case OpImmediate, OpImmediateSE:
		o.startUntagged(AppendImmediate(m.fixed[:0], op.Immediate), QueueSend)
	default:
		o.ddp.StartUntagged(ControlUntagged(s.rv, op.Opcode, op.InvalidateSTag), QueueSend, op.Length)
	}
	return true
}

// ask starts a request for the peer's RDMAP and notes that it will be answered.
func (o *outbound) ask(header []byte, p *pending) {
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
	o.ddp.StartTagged(Control(o.s.rv, OpWrite), 0, 0, 0)
}
