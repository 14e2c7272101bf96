package rdmap

import (
	"sync"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
)

// The peer answers a Send before the goroutine that sends it is back from the write.
func TestAnAnswerIsDeliveredAfterWhatItAnswersIsReported(t *testing.T) {
	r := newRig(t)
	r.ulp.logging = new(sync.Mutex)
	r.receive(8)
	here, done := make(chan struct{}), make(chan struct{})
	arrive := sync.OnceFunc(func() { close(here) })
	r.ulp.released = arrive
	r.line.flush = func() {
		r.line.flush = nil
		go func() {
			defer close(done)
			r.line.in = [][]byte{whole(OpSend, 1, octets(4))}
			_ = r.Reader()
			arrive()
		}()
		nettest.Await(t, here) // it waits for this write, or has delivered the message
	}
	r.send(sendOf(1))
	nettest.Await(t, done)
	want(t, "told", r.ulp.told(), "sent 1", "delivered Send 4")
}
