package verbs

import (
	"runtime"
	"testing"
)

// Whoever looks at requests that are not started finds them, while others are posted and the memory
// of the queue is exchanged.
func TestRequestsNotStartedAreFoundWhileTheQueueIsResized(t *testing.T) {
	const posts, depth = 200_000, 4
	s := &sendQueue{sges: 1}
	s.ring.Store(newSendRing(depth, s.sges))
	go func() { // the poster
		for n := uint64(0); n < posts; {
			if n%depth == 0 {
				s.resize(depth << (n / depth % 2))
			}
			s.done.Lock()
			full := n-s.released >= depth
			s.done.Unlock()
			if full {
				runtime.Gosched()
				continue
			}
			s.ring.Load().at(n).wr.ID = n
			n++
			s.tail.Store(n)
		}
	}()
	for next := uint64(0); next < posts; {
		first, ring, count := s.unstarted(depth)
		for n := range count {
			if id := ring.at(first + n).wr.ID; id != first+n {
				t.Fatalf("request %d is found in the place of %d", id, first+n)
			}
		}
		next = first + count
		s.next.Store(next)
		s.done.Lock()
		s.released = next
		s.done.Unlock()
		if count == 0 {
			runtime.Gosched()
		}
	}
}
