// This file puts both directions of a connection together.

package wire

import (
	"bytes"
	"fmt"
	"net/netip"
	"sort"
)

// A Direction of a Conversation.
type Direction int

const (
	FromInitiator Direction = iota
	FromResponder
)

func (d Direction) String() string {
	if d == FromInitiator {
		return "initiator"
	}
	return "responder"
}

func (d Direction) other() Direction { return 1 - d }

// A Conversation is one TCP connection on which an MPA Request was seen.
type Conversation struct {
	Initiator, Responder netip.AddrPort
	Flows                [2]*Flow
	Request, Reply       *Startup // nil when it did not come
	FPDUs                [2][]FPDU
	Findings             []Finding
}

// A connection is the two directions between two ends, as captured.
type connection struct {
	ends  [2]netip.AddrPort // ends[0] was seen to send first
	flows [2]*Flow          // flows[0] is from ends[0]
}

// Conversations groups packets into connections and checks each of them.
// Connections without an MPA Request are left out.
func Conversations(packets []Packet) []*Conversation {
	type pair [2]netip.AddrPort
	current := map[pair]*connection{} // the last connection between two ends, by either order
	var connections []*connection
	for _, p := range packets {
		forth, back := pair{p.Src, p.Dst}, pair{p.Dst, p.Src}
		c := current[forth]
		if c == nil || p.SYN && len(c.flow(p.Src).Octets) > 0 { // or the ports are used again
			c = &connection{ends: forth, flows: [2]*Flow{{}, {}}}
			current[forth], current[back] = c, c
			connections = append(connections, c)
		}
		c.flow(p.Src).add(p)
	}
	var all []*Conversation
	for _, c := range connections {
		for d := range c.flows {
			if !bytes.HasPrefix(c.flows[d].Octets, []byte(requestKey)) {
				continue
			}
			found := &Conversation{Initiator: c.ends[d], Responder: c.ends[1-d], Flows: [2]*Flow{c.flows[d], c.flows[1-d]}}
			found.read()
			all = append(all, found)
			break
		}
	}
	return all
}

func (c *connection) flow(from netip.AddrPort) *Flow {
	if from == c.ends[0] {
		return c.flows[0]
	}
	return c.flows[1]
}

func (c *Conversation) find(by Direction, packet int, rule Rule, format string, args ...any) {
	c.Findings = append(c.Findings, Finding{by, packet, rule, fmt.Sprintf(format, args...)})
}

// read takes both directions apart and checks them.
func (c *Conversation) read() {
	for d, flow := range c.Flows {
		if flow.Hole {
			c.find(Direction(d), 0, RuleCapture, "octets of the %v are missing: the capture is not whole", Direction(d))
		}
	}
	full, ok := c.readStartup()
	if !ok {
		return
	}
	for d := range c.Flows {
		direction := Direction(d)
		c.cut(direction, cutter{
			sender: direction, flow: c.Flows[d], base: full[d],
			markers: c.Marked(direction),
			crc:     c.Request.CRC || c.Reply.CRC || c.Reply.Revision == 0,
		})
	}
	c.checkOrder()
	newSequences(c).check()
}

// Marked reports whether a direction has markers, after both start-up frames.
func (c *Conversation) Marked(d Direction) bool {
	receiver := c.Request // its M bit governs what it receives
	if d == FromInitiator {
		receiver = c.Reply
	}
	return receiver.Markers || c.Reply.Revision == 0
}

// cut fills FPDUs of one direction.
func (c *Conversation) cut(d Direction, cut cutter) {
	for {
		fpdu, ok, faults, err := cut.next()
		if err != nil {
			// A connection that was reset may end anywhere.
			if !c.Flows[0].Reset && !c.Flows[1].Reset {
				c.find(d, c.Flows[d].packetOf(len(c.Flows[d].Octets)-1), RuleFraming, "from the %v: %v", d, err)
			}
			break
		}
		if !ok {
			break
		}
		c.Findings = append(c.Findings, faults...)
		if fpdu.Segment, err = parseSegment(fpdu.ULPDU); err != nil {
			c.find(d, fpdu.Last, RuleFraming, "from the %v: %v", d, err)
			break
		}
		c.FPDUs[d] = append(c.FPDUs[d], fpdu)
	}
	list := c.FPDUs[d]
	for i := 1; i < len(list); i++ {
		if list[i].First == list[i-1].Last {
			list[i].Shared, list[i-1].Shared = true, true
		}
	}
}

// merged returns the FPDUs of both directions in the order of the capture.
func (c *Conversation) merged() []directed {
	var all []directed
	for d, list := range c.FPDUs {
		for i := range list {
			all = append(all, directed{Direction(d), &list[i]})
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].Last < all[j].Last })
	return all
}

type directed struct {
	Direction
	*FPDU
}
