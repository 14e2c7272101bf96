// This file keeps the completions of a stream in an order that consumers expect. The peer's
// answer to a Send may arrive while the goroutine that sent it is still on its way back from
// the write: the Send is reported first.
//
//  1. The owner of the outgoing half closes the gate, writes a small batch without waiting
//     for the network, reports to the ULP what has left, and opens the gate.
//  2. Before the first message of each reading, the receiving goroutine waits until the gate
//     is open.
//
// Locking: the gate is one counter, and the owner never waits for it. The receiving goroutine
// first releases the memory that it holds, since a report may wait for that. Its wait has no
// limit in time, because nothing that it waits for depends on the peer; but it takes little of
// the processor. A write and its reports take some microseconds. If they take longer the
// owner has lost its processor, and the receiving goroutine sleeps between its looks.

package rdmap

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A reportGate is closed while a batch is written and reported.
type reportGate struct {
	count atomic.Uint32 // odd while the gate is closed
}

// smallBatch is the most payload, in octets, of a batch that closes the gate: more takes a
// while to copy.
const smallBatch = 32 << 10

const (
	gateSpins = 1000 // looks before a wait sleeps
	gatePause = 50 * time.Microsecond
)

func (g *reportGate) close() { g.count.Add(1) }
func (g *reportGate) open()  { g.count.Add(1) }

// wait waits until the gate, if it is closed, has been opened. It calls release before it
// waits.
func (g *reportGate) wait(release func()) {
	now := g.count.Load()
	if now%2 == 0 {
		return
	}
	release()
	for i := 0; g.count.Load() == now; i++ {
		if i < gateSpins {
			runtime.Gosched()
		} else {
			time.Sleep(gatePause)
		}
	}
}
