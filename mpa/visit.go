package mpa

// The receiving half in the hands of a consumer, who polls or waits in the place of
// Receive: what arrives is handed up in the consumer's goroutine, and nobody has to wake
// it. Package turns says when.

import (
	"context"
	"time"
)

// Poll hands what has arrived to the Sink of the Receive that is under way in
// another goroutine, and reports whether there was anything to hand up. It may be
// called by any goroutine, and does not wait, neither for the network nor for
// Receive; it takes as long as the Sink. What ends the reception is left to
// Receive, and so is the rest of a ULPDU that has begun to arrive. Poll finds something
// on Linux and over TCP only.
func (c *Conn) Poll() bool {
	if c.turns == nil || !c.turns.Enter() {
		return false
	}
	r := &c.reader
	if !r.open() {
		c.turns.Exit(0, false)
		c.turns.Recall()
		return false
	}
	n := r.visit()
	if r.failed != nil {
		// Receive may be waiting for octets, and not have noticed these: the network
		// poller forgets octets that are read before it looks. Without the token it cannot
		// end, so that nothing after it is interrupted.
		c.turns.InterruptReader()
	}
	c.turns.Exit(n, r.failed != nil || r.start < r.end)
	return n > 0
}

// Wait waits in the place of the Receive that is under way in another goroutine until Poll
// may find something, the connection ends, or Interrupt is called; some milliseconds later
// than ctx is done; and no longer than some 64 ms without octets, after which Receive
// waits at less cost. It reports false, at once, if Receive waits itself. That leaves the
// wait to others when somebody has called Wait or Poll first for each of many
// short arrivals in a row, on Linux, over TCP, in a program that has more than one
// processor. Receive takes the wait back within milliseconds when nobody comes any more.
func (c *Conn) Wait(ctx context.Context) bool {
	return c.turns != nil && c.turns.Lead(ctx, c.reader.rest)
}

// Interrupt ends the Wait under way, or the next one if there is none.
func (c *Conn) Interrupt() {
	if c.turns != nil {
		c.turns.Interrupt()
	}
}

// Spin has Receive poll for so long before it waits, unless others call Poll or Wait: what
// concerns no consumer, like a peer's RDMA Read, is answered sooner so, at the cost of a
// processor. It is called before Receive, and does nothing where Poll does nothing.
func (c *Conn) Spin(d time.Duration) {
	if c.turns != nil {
		c.turns.Spin(d)
	}
}

// Leave reports that a caller of Poll or Wait is about to sleep until there is something, or
// to do something else: Receive waits, now or after the Wait under way.
func (c *Conn) Leave() {
	if c.turns != nil {
		c.turns.Leave()
	}
}
