// This file reassembles one direction of a TCP connection.

package wire

import "sort"

// A Flow is one direction of a TCP connection, put together in order.
type Flow struct {
	Octets []byte // since the first octet after SYN, or the first one captured
	Hole   bool   // octets are missing between Octets and what was captured later
	Reset  bool   // the sender of this direction reset the connection

	arrivals []arrival
	next     uint32 // sequence number that follows Octets
	begun    bool
	held     []Packet // out of order
}

// An arrival says which packet brought the octets from offset on.
type arrival struct {
	offset int
	packet int
}

func (f *Flow) add(p Packet) {
	f.Reset = f.Reset || p.RST
	if p.SYN {
		f.next, f.begun = p.Seq+1, true
		return
	}
	if len(p.Payload) == 0 {
		return
	}
	if !f.begun {
		f.next, f.begun = p.Seq, true
	}
	f.held = append(f.held, p)
	for f.take() {
	}
	f.Hole = len(f.held) > 0
}

// take moves one held packet that continues Octets, or repeats a part of them,
// to its place.
func (f *Flow) take() bool {
	for i, p := range f.held {
		ahead := int32(p.Seq - f.next)
		if ahead > 0 {
			continue
		}
		f.held = append(f.held[:i], f.held[i+1:]...)
		if fresh := len(p.Payload) + int(ahead); fresh > 0 {
			f.arrivals = append(f.arrivals, arrival{len(f.Octets), p.Number})
			f.Octets = append(f.Octets, p.Payload[len(p.Payload)-fresh:]...)
			f.next += uint32(fresh)
		}
		return true
	}
	return false
}

// packetOf returns the number of the packet that brought the octet at offset.
func (f *Flow) packetOf(offset int) int {
	i := sort.Search(len(f.arrivals), func(i int) bool { return f.arrivals[i].offset > offset })
	if i == 0 {
		return 0
	}
	return f.arrivals[i-1].packet
}
