// This file takes messages of one segment that are like the one before. Tagged ones are to the
// same STag, with the same octet of the ULP's: only their memory is looked at, and they are
// delivered together. Untagged ones are to the same queue, with the same octets of the ULP's.

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

// A QueueingULP takes untagged messages that are like the one that DeliverUntagged was called for
// last.
type QueueingULP interface {
	// PlaceQueued takes the segment u of a message that differs from the last in MSN, payload and
	// length only, if it is one segment, and AdmitUntagged, Buffer and PlaceUntagged would have no
	// objection. It returns the memory for its payload, in one piece, and holds it as PlaceUntagged
	// does; nil if the payload was looked at and goes nowhere. If ok is false the message is taken
	// by itself.
	PlaceQueued(u []byte) (dst []byte, ok bool)

	// DeliverQueued reports that so many such messages are in place.
	DeliverQueued(messages int)
}

// alike are messages that are being taken.
type alike struct {
	us     [][]byte // nil if there are none
	taken  int
	octets uint64
}

// takeAlike takes the messages at the front of us that are like the one at hand, which was put in
// its place, and returns how many.
func (r *Receiver) takeAlike(us [][]byte) int {
	if len(us) == 0 {
		return 0
	}
	r.alike.us = us
	if r.seg.isTagged {
		r.taggedAlike()
	} else {
		r.untaggedAlike()
	}
	r.forget()
	return r.endAlike()
}

func (r *Receiver) taggedAlike() {
	s, a := &r.seg, &r.alike
	if r.repeats == nil || !s.tagged.Last || s.payload == 0 {
		return
	}
	control := [2]byte(s.header[:])
	for _, u := range a.us {
		if len(u) <= TaggedLen || [2]byte(u) != control || binary.BigEndian.Uint32(u[2:]) != s.tagged.STag {
			return
		}
		dst := r.repeats.PlaceAlike(s.tagged.STag, binary.BigEndian.Uint64(u[6:]), len(u)-TaggedLen)
		if dst == nil {
			return
		}
		r.takeOne(dst, u[TaggedLen:])
	}
}

func (r *Receiver) untaggedAlike() {
	h, a := &r.seg.untagged, &r.alike
	if r.enqueues == nil || !h.Last || h.MO != 0 {
		return
	}
	const front = 10 // octets before MSN and MO
	like := [front]byte(r.seg.header[:])
	for i, u := range a.us {
		if len(u) < UntaggedLen || [front]byte(u) != like || binary.BigEndian.Uint32(u[front:]) != h.MSN+1+uint32(i) ||
			binary.BigEndian.Uint32(u[front+4:]) != 0 {
			return
		}
		dst, ok := r.enqueues.PlaceQueued(u)
		if !ok {
			return
		}
		r.takeOne(dst, u[UntaggedLen:])
	}
}

// takeOne puts a message in its place. dst may be nil.
func (r *Receiver) takeOne(dst, payload []byte) {
	if dst != nil {
		r.dst = append(r.dst[:0], dst)
		memcopy.Copy(dst, payload)
	}
	r.alike.taken++
	r.alike.octets += uint64(len(payload))
}

// endAlike delivers those that are in place, and returns how many.
func (r *Receiver) endAlike() int {
	a, s := &r.alike, &r.seg
	n := a.taken
	if n > 0 {
		s.atHand(a.us[n-1])
		if s.isTagged {
			r.repeats.DeliverAlike(n, a.octets)
		} else {
			r.queues[s.untagged.QN].done += uint32(n)
			r.enqueues.DeliverQueued(n)
		}
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
