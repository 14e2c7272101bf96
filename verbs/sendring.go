// This file is the memory of a send queue, and how it is exchanged for more or
// less while work requests are outstanding (Verbs §6.1.3).

package verbs

// A sendRing holds work request n at n modulo its length, a power of two.
type sendRing struct{ wqes []sendWQE }

// newSendRing makes slots for depth requests with lists of up to sges elements.
func newSendRing(depth, sges int) *sendRing {
	r := &sendRing{make([]sendWQE, ringSize(depth))}
	all := make([]SGE, len(r.wqes)*sges)
	for i := range r.wqes {
		r.wqes[i].wr.SGL = all[i*sges : i*sges : (i+1)*sges]
	}
	return r
}

func (r *sendRing) at(n uint64) *sendWQE { return &r.wqes[n&uint64(len(r.wqes)-1)] }

// unstarted returns the first of the requests that are not started, their memory, and how many they
// are, at most. The tail is read before the ring: a ring that takes the place of another has all
// that was posted until then, and the one before nothing that is posted from then on.
func (s *sendQueue) unstarted(most int) (first uint64, ring *sendRing, count uint64) {
	first = s.next.Load()
	count = min(s.tail.Load()-first, uint64(most))
	return first, s.ring.Load(), count
}

// fits reports whether depth work requests are enough for those outstanding;
// needs post, under which they do not become more.
func (s *sendQueue) fits(depth int) bool {
	s.done.Lock()
	defer s.done.Unlock()
	return s.tail.Load()-s.released <= uint64(depth)
}

// resize changes how many work requests may be outstanding to a number that
// fits; needs post. RDMAP may go on meanwhile: what it still reads in the old
// ring stays as it is, and what changes in a request that was started does so
// under done.
func (s *sendQueue) resize(depth int) {
	s.depth = uint64(depth)
	old := s.ring.Load()
	if ringSize(depth) == len(old.wqes) {
		return
	}
	ring := newSendRing(depth, s.sges)
	s.done.Lock()
	defer s.done.Unlock()
	for n, tail := s.released, s.tail.Load(); n < tail; n++ {
		to := ring.at(n)
		sgl := to.wr.SGL
		*to = *old.at(n)
		to.wr.SGL = append(sgl, to.wr.SGL...)
	}
	s.ring.Store(ring)
}
