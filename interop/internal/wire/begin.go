// This file reads both start-up frames of a conversation.

package wire

// readStartup reads and checks both start-up frames and returns where Full
// Operation begins in each direction; ok is false when it never did.
func (c *Conversation) readStartup() (full [2]int, ok bool) {
	read := func(d Direction, key string) *Startup {
		flow := c.Flows[d]
		if len(flow.Octets) == 0 {
			return nil
		}
		frame, length, err := parseStartup(flow.Octets, key)
		if err != nil {
			c.find(d, flow.packetOf(len(flow.Octets)-1), RuleStartup, "start-up frame of the %v: %v", d, err)
			return nil
		}
		frame.Packet = flow.packetOf(length - 1)
		full[d] = length
		if frame.Reserved != 0 {
			c.find(d, frame.Packet, RuleReserved, "reserved bits %#02x set in the start-up frame of the %v", frame.Reserved, d)
		}
		return &frame
	}
	c.Request = read(FromInitiator, requestKey)
	c.Reply = read(FromResponder, replyKey)
	if c.Request == nil || c.Reply == nil {
		return full, false
	}
	c.checkRequest()
	c.checkReply()
	for d, flow := range c.Flows {
		if full[d] >= len(flow.Octets) {
			continue
		}
		packet := flow.packetOf(full[d])
		switch {
		case c.Reply.Rejected:
			c.find(Direction(d), packet, RuleAfter, "the %v sent %d octets on a rejected connection", Direction(d), len(flow.Octets)-full[d])
		case packet <= c.startup(Direction(d)).Packet:
			c.find(Direction(d), packet, RuleFlight, "the %v sent FPDUs in the same packet as its start-up frame", Direction(d))
		}
	}
	return full, !c.Reply.Rejected
}

func (c *Conversation) startup(d Direction) *Startup {
	if d == FromInitiator {
		return c.Request
	}
	return c.Reply
}

func (c *Conversation) checkRequest() {
	q := c.Request
	if q.Rejected {
		c.find(FromInitiator, q.Packet, RuleStartup, "R set in a Request (RFC 5044 §7.1.1)")
	}
	if q.Revision > 2 {
		c.find(FromInitiator, q.Packet, RuleStartup, "revision %d, the highest defined is 2", q.Revision)
	}
	if q.Enhanced && !q.PeerToPeer && (q.RTRSend || q.RTRWrite || q.RTRRead) {
		c.find(FromInitiator, q.Packet, RuleStartup, "RTR kinds offered outside the peer-to-peer model (RFC 6581 §9.2)")
	}
	if q.PeerToPeer && !q.RTRSend && !q.RTRWrite && !q.RTRRead {
		c.find(FromInitiator, q.Packet, RuleStartup, "peer-to-peer without any kind of RTR (RFC 6581 §9.2)")
	}
}

func (c *Conversation) checkReply() {
	q, p := c.Request, c.Reply
	if p.Revision != q.Revision && !(q.Revision == 0 && p.Revision == 1) {
		c.find(FromResponder, p.Packet, RuleStartup, "revision %d in reply to revision %d", p.Revision, q.Revision)
	}
	if p.Rejected {
		return
	}
	if p.Enhanced != q.Enhanced {
		c.find(FromResponder, p.Packet, RuleStartup, "S is %v in the Reply and %v in the Request (RFC 6581 §6)", p.Enhanced, q.Enhanced)
		return
	}
	if q.CRC && !p.CRC {
		c.find(FromResponder, p.Packet, RuleStartup, "the Request asks for CRC, the Reply does not say so")
	}
	if !q.Enhanced {
		return
	}
	if p.PeerToPeer != q.PeerToPeer {
		c.find(FromResponder, p.Packet, RuleStartup, "A is %v in the Reply and %v in the Request (RFC 6581 §9.2)", p.PeerToPeer, q.PeerToPeer)
	}
	if p.PeerToPeer && !p.RTRSend && !p.RTRWrite && !p.RTRRead {
		c.find(FromResponder, p.Packet, RuleStartup, "peer-to-peer Reply without any kind of RTR (RFC 6581 §9.2)")
	}
	if (q.IRD == notNegotiated) != (p.ORD == notNegotiated) || (q.ORD == notNegotiated) != (p.IRD == notNegotiated) {
		c.find(FromResponder, p.Packet, RuleStartup, "IRD %#x ORD %#x in reply to IRD %#x ORD %#x: 3fff answers 3fff (RFC 6581 §9.1)",
			p.IRD, p.ORD, q.IRD, q.ORD)
	} else if p.ORD != notNegotiated && p.ORD > q.IRD {
		c.find(FromResponder, p.Packet, RuleStartup, "ORD %d in reply to IRD %d (RFC 6581 §9.1)", p.ORD, q.IRD)
	}
}

// checkOrder checks who sent first, and what (RFC 5044 §7.1.2 rule 4,
// RFC 6581 §9.2).
func (c *Conversation) checkOrder() {
	ours, theirs := c.FPDUs[FromInitiator], c.FPDUs[FromResponder]
	if len(theirs) > 0 && (len(ours) == 0 || theirs[0].First < ours[0].Last) {
		c.find(FromResponder, theirs[0].First, RuleFence, "the responder sent an FPDU before one of the initiator's had arrived")
	}
	if len(ours) > 0 && ours[0].First < c.Reply.Packet {
		c.find(FromInitiator, ours[0].First, RuleFence, "the initiator sent an FPDU before the Reply had arrived")
	}
	if len(ours) == 0 || !c.Request.PeerToPeer || !c.Reply.PeerToPeer {
		return
	}
	first := ours[0].Segment
	empty := len(first.Payload) == 0
	agreed := first.Opcode == Write && empty && c.Reply.RTRWrite ||
		first.Opcode == Send && empty && c.Reply.RTRSend ||
		first.Opcode == ReadRequest && readLength(first) == 0 && c.Reply.RTRRead ||
		first.Opcode == Terminate
	if !agreed {
		c.find(FromInitiator, ours[0].Last, RuleRTR, "peer-to-peer, and the first FPDU is a %v of %d octets, not an agreed RTR",
			first.Opcode, len(first.Payload))
	}
}
