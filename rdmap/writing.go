package rdmap

import (
	"runtime"
	"sync/atomic"
)

// A writing keeps the completions of a stream in an order that consumers expect: the peer's
// answer to a Send may arrive while the goroutine that sent it is still on its way back
// from the write. The Send is reported first.
//
// The outgoing half counts where it begins to write a batch and where it has reported
// what has left. Before the first message of each reading the receiving half waits for
// the end of a write in progress. That write does not wait for the network, and the
// batch is small: long ones are left out, as their octets take a while to copy.
type writing struct {
	count atomic.Uint32 // odd during a write
}

// brief is the payload of a small batch, in octets.
const brief = 32 << 10

func (w *writing) begin() { w.count.Add(1) }
func (w *writing) end()   { w.count.Add(1) }

// wait waits until the write in progress has been reported. It calls release first, if
// there is one: the writer may need what the caller holds.
func (w *writing) wait(release func()) {
	now := w.count.Load()
	if now%2 == 0 {
		return
	}
	release()
	for w.count.Load() == now {
		runtime.Gosched()
	}
}
