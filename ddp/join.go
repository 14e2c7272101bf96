// This file joins segments that are placed together, while they arrive.

package ddp

import "math"

// A JoiningULP lets the payload of several segments of a tagged message be placed together.
// Without it only those of untagged messages are.
type JoiningULP interface {
	// Joins reports that a segment of n payload octets may belong to the message of the
	// segment admitted last. Its Version, RsvdULP and STag are the same, and its payload
	// follows that of segments joined before. Nothing changes: AdmitTagged is called for the
	// segment when the payload is in place.
	Joins(h *Tagged, n int) bool
}

// A join is what has been joined to the segment begun.
type join struct {
	payload int   // octets, without those of the segment begun
	lengths []int // of that payload, for each segment
	last    bool  // the last segment is among them
	begins  int   // where in the payload, with the segment begun, the last Window does
	// Header of the segment at hand, here so that nothing is allocated.
	tagged   Tagged
	untagged Untagged
}

// MayJoin reports that a segment may follow that joins (see [JoiningSink]).
func (r *Receiver) MayJoin() bool { return !r.failed && !r.join.last }

// Join is asked, after Begin, about the segment that follows those begun and joined (see
// [JoiningSink]). It says yes where the segment only goes on: with the same message, and
// behind the payload of the one before. All other checks are made when Begin is called for
// it, but no payload goes to memory that a check would refuse it.
func (r *Receiver) Join(head []byte, length int) (skip int, ok bool) {
	if !r.MayJoin() || len(head) == 0 || len(head) < HeaderLen(head) || length <= HeaderLen(head) {
		return 0, false
	}
	skip = HeaderLen(head)
	n := length - skip
	if r.seg.isTagged {
		ok = r.join.tagged.Parse(head) && r.joinsTagged(&r.join.tagged, n)
		r.join.last = ok && r.join.tagged.Last
	} else {
		ok = r.join.untagged.Parse(head) && r.joinsUntagged(&r.join.untagged, n)
		r.join.last = ok && r.join.untagged.Last
	}
	if ok {
		r.join.payload += n
		r.join.lengths = append(r.join.lengths, n)
	}
	return skip, ok
}

func (r *Receiver) joinsTagged(h *Tagged, n int) bool {
	first, before := &r.seg.tagged, r.seg.payload+r.join.payload
	next := Tagged{h.Last, first.Version, first.RsvdULP, first.STag, first.TO + uint64(before)}
	if *h != next || r.joins == nil || !r.joins.Joins(h, n) {
		return false
	}
	dst, fault := r.ulp.PlaceTagged(r.dst[:0], h, n)
	r.dst = dst
	r.forget()
	r.ulp.Release()
	return fault == NoFault
}

// joinsUntagged looks at no memory: the buffer is this side's, and a fault in it ends the
// message wherever it is found.
func (r *Receiver) joinsUntagged(h *Untagged, n int) bool {
	first, before := &r.seg.untagged, r.seg.payload+r.join.payload
	next := *first
	next.Last = h.Last
	next.MO += uint32(before)
	q := &r.queues[first.QN]
	return *h == next && q.received+uint64(before+n) <= min(q.size, math.MaxUint32)
}

// alone starts with nothing but the segment at hand.
func (r *Receiver) alone() {
	r.join.payload, r.join.lengths, r.join.begins = 0, r.join.lengths[:0], 0
}

// begun starts a join, with the segment begun.
func (r *Receiver) begun() {
	r.alone()
	s := &r.seg
	r.join.last = s.isTagged && s.tagged.Last || !s.isTagged && s.untagged.Last
}

// reach makes the segment that the last Window begins in the one at hand: those before it are
// in place, and what is wrong with the Window is its fault.
func (r *Receiver) reach() {
	s, skip := &r.seg, r.join.begins
	for i, n := range r.join.lengths {
		if skip < s.payload {
			return
		}
		skip -= s.payload
		s.goOn(n, r.join.last && i == len(r.join.lengths)-1)
	}
}

// goOn makes s the segment of n payload octets that follows it in its message.
func (s *segment) goOn(n int, last bool) {
	if s.isTagged {
		s.tagged.TO += uint64(s.payload)
		s.tagged.Last = last
		s.tagged.Append(s.header[:0])
	} else {
		s.untagged.MO += uint32(s.payload)
		s.untagged.Last = last
		s.untagged.Append(s.header[:0])
	}
	s.payload, s.length = n, s.headerLen+n
}
