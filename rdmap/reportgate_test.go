package rdmap

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

// Who waits at the gate sleeps if that takes long: it leaves the processor to the owner of
// the outgoing half.
func TestAWaitForAReportSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g reportGate
		g.close()
		released, over := false, make(chan struct{})
		go func() {
			defer close(over)
			g.wait(func() { released = true })
		}()
		time.Sleep(time.Second) // in the bubble: only while all sleep
		g.open()
		<-over
		if !released {
			t.Error("it has waited with memory in its hands")
		}
	})
}
