// This file checks the sequence of messages on every queue.

package wire

import (
	"encoding/binary"
)

// sequences follows the messages of a conversation: every message whole and in
// order on its queue, every answer after and according to its request.
type sequences struct {
	c        *Conversation
	version  byte
	sides    [2]side
	requests [2][]request // outstanding, by the direction that they were sent in
}

// A side is the sending half of one peer.
type side struct {
	msn     [4]uint32 // of the last message begun on each queue
	current *message  // the one that is not complete yet
	ended   bool      // a Terminate was sent
}

// A message is one whose segments are being seen.
type message struct {
	first  Segment
	length uint32 // octets so far
}

// A request waits for its answer.
type request struct {
	opcode Opcode
	stag   uint32 // data sink of a read
	to     uint64
	size   uint32
	id     uint32 // of an atomic
}

func newSequences(c *Conversation) *sequences {
	s := &sequences{c: c, version: 1}
	if c.Reply.Revision == 0 {
		s.version = 0 // RFC 5044 appendix C
	}
	return s
}

func (s *sequences) check() {
	for _, f := range s.c.merged() {
		side := &s.sides[f.Direction]
		if side.ended {
			s.c.find(f.Direction, f.Last, RuleAfter, "the %v sent a %v after its Terminate (RFC 5040 §4.8)", f.Direction, f.Segment.Opcode)
			continue
		}
		if s.form(f) {
			s.order(f, side)
		}
	}
	for d := range s.sides {
		if m := s.sides[d].current; m != nil && !s.broken() {
			s.c.find(Direction(d), 0, RuleSequence, "the last %v of the %v is not complete", m.first.Opcode, Direction(d))
		}
	}
}

// broken reports whether the connection ended by an error, after which messages
// may be left unfinished.
func (s *sequences) broken() bool {
	return s.sides[0].ended || s.sides[1].ended || s.c.Flows[0].Reset || s.c.Flows[1].Reset
}

// form checks a segment by itself.
func (s *sequences) form(f directed) bool {
	g, fault := f.Segment, func(rule Rule, format string, args ...any) {
		s.c.find(f.Direction, f.Last, rule, "from the %v: "+format, append([]any{f.Direction}, args...)...)
	}
	if g.DV != s.version || g.RV != s.version {
		fault(RuleVersion, "DDP version %d and RDMAP version %d, expected %d", g.DV, g.RV, s.version)
	}
	if g.Reserved != 0 {
		fault(RuleReserved, "reserved control bits are %#02x", g.Reserved)
	}
	if g.Opcode > AtomicResponse {
		fault(RuleOpcode, "%v is reserved", g.Opcode)
		return false
	}
	if g.Tagged != g.Opcode.tagged() {
		fault(RuleOpcode, "%v with the T bit %v", g.Opcode, g.Tagged)
		return false
	}
	if g.Tagged {
		return true
	}
	if g.QN != g.Opcode.queue() {
		fault(RuleOpcode, "%v on queue %d, expected %d", g.Opcode, g.QN, g.Opcode.queue())
		return false
	}
	if !g.Opcode.invalidates() && g.Invalidate != 0 {
		fault(RuleReserved, "%v with %#x where only an Invalidate STag may stand", g.Opcode, g.Invalidate)
	}
	if want := g.Opcode.fixed(); want >= 0 && (len(g.Payload) != want || !g.Last) {
		fault(RuleOpcode, "%v of %d octets, last %v: expected %d in one segment", g.Opcode, len(g.Payload), g.Last, want)
		return false
	}
	switch g.Opcode {
	case AtomicRequest:
		s.formAtomic(f)
	case Terminate:
		s.formTerminate(f)
	}
	return true
}

// order checks a segment against what its sender sent before.
func (s *sequences) order(f directed, side *side) {
	g := f.Segment
	if g.Opcode == Terminate {
		side.ended, side.current = true, nil // whatever was under way is abandoned
	}
	if side.current == nil {
		side.current = &message{first: g}
		if g.Tagged {
			s.beginTagged(f)
		} else {
			side.msn[g.QN]++
			if g.MSN != side.msn[g.QN] || g.MO != 0 {
				s.c.find(f.Direction, f.Last, RuleSequence, "%v of the %v begins with MSN %d and MO %d on queue %d, expected %d and 0",
					g.Opcode, f.Direction, g.MSN, g.MO, g.QN, side.msn[g.QN])
				side.msn[g.QN] = g.MSN
			}
		}
	} else {
		s.proceed(f, side)
	}
	m := side.current
	m.length += uint32(len(g.Payload))
	if g.Last {
		s.complete(f, m)
		side.current = nil
	}
}

// proceed checks a segment that must continue the message under way.
func (s *sequences) proceed(f directed, side *side) {
	g, m := f.Segment, side.current
	if g.Opcode != m.first.Opcode || !g.Tagged && (g.MSN != m.first.MSN || g.Invalidate != m.first.Invalidate) ||
		g.Tagged && g.STag != m.first.STag {
		s.c.find(f.Direction, f.Last, RuleInterlace, "a segment of a %v in the middle of a %v of the %v", g.Opcode, m.first.Opcode, f.Direction)
		side.current = &message{first: g}
		return
	}
	if g.Tagged && g.TO != m.first.TO+uint64(m.length) {
		s.c.find(f.Direction, f.Last, RuleSequence, "%v of the %v goes on at TO %#x, expected %#x", g.Opcode, f.Direction, g.TO, m.first.TO+uint64(m.length))
	}
	if !g.Tagged && g.MO != m.length {
		s.c.find(f.Direction, f.Last, RuleSequence, "%v of the %v goes on at MO %d, expected %d", g.Opcode, f.Direction, g.MO, m.length)
	}
}

// beginTagged checks the first segment of a Read Response against the oldest
// Read Request (RFC 5040 §5.5 item 20). A response of no octets has no place.
func (s *sequences) beginTagged(f directed) {
	g := f.Segment
	if g.Opcode != ReadResponse {
		return
	}
	asked := s.requests[f.Direction.other()]
	if len(asked) == 0 || asked[0].opcode != ReadRequest {
		s.c.find(f.Direction, f.Last, RuleAnswer, "a Read Response of the %v that answers no Read Request", f.Direction)
		return
	}
	if len(g.Payload) > 0 && (g.STag != asked[0].stag || g.TO != asked[0].to) {
		s.c.find(f.Direction, f.Last, RuleAnswer, "a Read Response to STag %#x TO %#x, asked for %#x and %#x", g.STag, g.TO, asked[0].stag, asked[0].to)
	}
}

// complete takes the last segment of a message into account.
func (s *sequences) complete(f directed, m *message) {
	d, g := f.Direction, m.first
	asked := &s.requests[d.other()]
	switch g.Opcode {
	case ReadRequest:
		s.ask(f, request{
			opcode: ReadRequest, size: readLength(g),
			stag: binary.BigEndian.Uint32(g.Payload), to: binary.BigEndian.Uint64(g.Payload[4:]),
		})
	case AtomicRequest:
		s.ask(f, request{opcode: AtomicRequest, id: binary.BigEndian.Uint32(g.Payload[4:])})
	case ReadResponse:
		if len(*asked) > 0 && (*asked)[0].opcode == ReadRequest {
			if m.length != (*asked)[0].size {
				s.c.find(f.Direction, f.Last, RuleAnswer, "a Read Response of %d octets, asked for %d", m.length, (*asked)[0].size)
			}
			*asked = (*asked)[1:]
		}
	case AtomicResponse:
		id := binary.BigEndian.Uint32(g.Payload)
		if len(*asked) == 0 || (*asked)[0].opcode != AtomicRequest || (*asked)[0].id != id {
			s.c.find(f.Direction, f.Last, RuleAnswer, "an Atomic Response for request %d that answers no Atomic Request", id)
			return
		}
		*asked = (*asked)[1:]
	}
}

// ask records a request and holds its sender to the depth that its peer
// offered: reads and atomics share it (RFC 6581 §9.1, RFC 7306 §5).
func (s *sequences) ask(f directed, r request) {
	open := append(s.requests[f.Direction], r)
	s.requests[f.Direction] = open
	peer := s.c.startup(f.Direction.other())
	rtr := r.opcode == ReadRequest && r.size == 0 && s.c.Reply.PeerToPeer
	if peer.Enhanced && peer.IRD != notNegotiated && len(open) > int(peer.IRD) && !rtr {
		s.c.find(f.Direction, f.Last, RuleDepth, "the %v has %d requests outstanding, the peer's IRD is %d", f.Direction, len(open), peer.IRD)
	}
}

// readLength is the RDMA Read Message Size of a Read Request.
func readLength(g Segment) uint32 {
	if len(g.Payload) < 16 {
		return 0
	}
	return binary.BigEndian.Uint32(g.Payload[12:])
}
