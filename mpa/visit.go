package mpa

// The receiving half in the hands of a consumer, who polls or waits in the place of
// Receive: what arrives is handed up in the consumer's goroutine, and nobody has to wake
// it. Package turns says when.

import (
	"context"
	"time"

	"github.com/weft-rdma/weft/mpa/internal/turns"
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
	if c.lessor != nil && c.reader.open() {
		c.lessor.Visit()
	}
	n, left := c.visit()
	if left {
		c.recall()
	}
	return n > 0
}

// visit receives what has arrived. It reports whether something is left to Receive. The
// caller has entered.
func (c *Conn) visit() (n int, left bool) {
	r := &c.reader
	if !r.open() {
		c.turns.Exit(0, false)
		return 0, true
	}
	n, left = r.visit()
	if r.failed != nil {
		// Receive may be waiting for octets, and not have noticed these: the network
		// poller forgets octets that are read before it looks. Without the token it cannot
		// end, so that nothing after it is interrupted.
		c.turns.InterruptReader()
	}
	c.turns.Exit(n, left)
	return n, left
}

// attend receives in the place of Receive, which waits. It reports false if Receive is to
// go on.
func (c *Conn) attend() bool {
	if !c.turns.Enter() {
		return false // a visitor does, or Receive, in the middle of a ULPDU
	}
	n, left := c.visit()
	return !left && n < turns.BulkRead
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

// Take takes the wait of the Receive that is under way over, for a caller that waits for
// several connections at a time: until the descriptor is readable. Then it calls Give, and
// Poll if octets have come. Take reports false for a connection that Go's network poller
// knows, and for one that is closed. Close and Reset make the descriptor readable, and
// wait for Give.
func (c *Conn) Take() (fd uintptr, ok bool) {
	if c.lessor == nil || !c.turns.Enter() {
		return 0, false
	}
	open := c.reader.open()
	if open {
		// With the token: what a visitor leaves to Receive from now on recalls it, and no
		// visit undoes that.
		c.lessor.Visit()
	}
	c.turns.Exit(0, false)
	if !open {
		return 0, false
	}
	return c.lessor.Hold()
}

// Give gives back what Take has taken. found says that octets have come; otherwise Receive
// waits for them from now on.
func (c *Conn) Give(found bool) {
	c.lessor.Drop()
	if !found {
		c.lessor.Recall()
	}
}

// PollNeverBlocks reports that Poll leaves to Receive each ULPDU for which a [BlockingSink]
// would block. It does so over a connection that Go's network poller does not know.
func (c *Conn) PollNeverBlocks() bool { return c.lessor != nil }

// A lessor is a connection that is not waited for while others visit it (see package
// polled).
type lessor interface {
	// Visit leaves what comes to visitors, until none has come for some ms.
	Visit()
	// Recall ends that, and Look also has who waits to read look again at once.
	Recall()
	Look()
	// Attend has f receive what has come, and wake Receive if it reports false.
	Attend(f func() bool)
	// Hold returns the descriptor, which stays open until Drop.
	Hold() (fd uintptr, ok bool)
	Drop()
}

// recall has Receive go on, with what visitors have left to it.
func (c *Conn) recall() {
	c.turns.Recall()
	if c.lessor != nil {
		c.lessor.Look()
	}
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
	if c.lessor != nil {
		c.lessor.Recall()
	}
}
