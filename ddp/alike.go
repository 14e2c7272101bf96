// This file takes tagged messages of one segment that are like the one before: to the same STag,
// with the same octet of the ULP's. Only their memory is looked at, and they are delivered together.

package ddp

import (
	"encoding/binary"

	"github.com/weft-rdma/weft/internal/memcopy"
)

// A RepeatingULP takes messages that are like the one that DeliverTagged was called for last, or
// AdmitTagged in the same call of the LLP.
type RepeatingULP interface {
	// PlaceAlike returns the memory for the n octets, at least one, of a message of one segment
	// that differs from the last in TO and length only, if it is in one piece, and AdmitTagged and
	// PlaceTagged would have no objection. It holds the memory as PlaceTagged does. Otherwise it
	// returns nil, and the message is taken by itself.
	PlaceAlike(stag uint32, to uint64, n int) []byte

	// DeliverAlike reports that so many such messages are in place, with so many octets together.
	DeliverAlike(messages int, octets uint64)
}

// alike are messages that are being taken.
type alike struct {
	us     [][]byte // nil if there are none
	taken  int
	octets uint64
}

// takeAlike takes the messages at the front of us that are like the one at hand, which was
// delivered, and returns how many.
func (r *Receiver) takeAlike(us [][]byte) int {
	s, a := &r.seg, &r.alike
	if r.repeats == nil || len(us) == 0 || !s.isTagged || !s.tagged.Last || s.payload == 0 {
		return 0
	}
	a.us, a.taken, a.octets = us, 0, 0
	control := [2]byte(s.header[:])
	for _, u := range us {
		if len(u) <= TaggedLen || [2]byte(u) != control || binary.BigEndian.Uint32(u[2:]) != s.tagged.STag {
			break
		}
		dst := r.repeats.PlaceAlike(s.tagged.STag, binary.BigEndian.Uint64(u[6:]), len(u)-TaggedLen)
		if dst == nil {
			break
		}
		r.dst = append(r.dst[:0], dst)
		memcopy.Copy(dst, u[TaggedLen:])
		a.taken++
		a.octets += uint64(len(u) - TaggedLen)
	}
	r.forget()
	return r.endAlike()
}

// endAlike delivers those that are in place.
func (r *Receiver) endAlike() int {
	a := &r.alike
	n := a.taken
	if n > 0 {
		r.seg.atHand(a.us[n-1])
		r.repeats.DeliverAlike(n, a.octets)
	}
	*a = alike{}
	return n
}

// reachAlike makes the message whose memory cannot be written the one at hand.
func (r *Receiver) reachAlike() {
	if a := &r.alike; a.us != nil {
		bad := a.us[a.taken]
		r.endAlike()
		r.seg.atHand(bad)
	}
}
