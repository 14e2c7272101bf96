package verbs_test

import (
	"testing"
	"time"

	"github.com/weft-rdma/weft/verbs"
)

// A stream that rests holds no memory: what its messages have used, in whatever
// role, can be deallocated although nothing follows that would let go of it.
//
// Claims: DDP-8.3-2 D-10.3-2 R-8.1.1-6
func TestAStreamThatRestsHoldsNoMemory(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, reads, reads)
		b.receives(10, 1, 100)
		a.post(a.write(1, b, 1000, 5000), a.read(2, b, 0, 5000), a.send(3, 0, 100))
		wantDone(t, a.sendCQ, done{1, verbs.Success}, done{2, verbs.Success}, done{3, verbs.Success})
		wantDone(t, b.recvCQ, done{10, verbs.Success})
		gone := make(chan error, 2)
		for _, s := range []*side{a, b} {
			go func() { gone <- s.mr.Deallocate() }()
		}
		limit := time.After(patience)
		for range 2 {
			select {
			case err := <-gone:
				check(t, err)
			case <-limit:
				t.Fatal("memory is held by a stream that rests")
			}
		}
	})
}
