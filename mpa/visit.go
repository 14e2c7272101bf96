// The receiving half in the hands of a consumer: what arrives is handed up in the
// consumer's goroutine, which need not be woken for it.
//
// Who waits for octets, and who receives them, by the connection:
//
//  1. Any but TCP on Linux: Receive does both.
//  2. A TCP connection on Linux: Receive, or a consumer, in Wait. The table is that of
//     internal/turns. Receive waits in Go's network poller.
//  3. One that Go's network poller does not know (internal/polled): Receive is in the state
//     Reading or Wanted of internal/turns for ever, and waits in that package's poller,
//     whose own table says which comes first: the poller, which receives in the place of
//     Receive, or visitors.
//
// In 2 and 3 the receiving half is a token of internal/turns: whoever has it receives. A
// visitor is a caller of Poll, Wait or BeginWait. It takes the token if that is free, receives
// what is there, and leaves to Receive the end of the stream, and in 3 payload that can be read
// to its place and a ULPDU that would block the Sink.

package mpa

import (
	"context"
	"time"

	"github.com/weft-rdma/weft/mpa/internal/turns"
)

// Poll hands what has arrived to the Sink of the Receive that is under way in another
// goroutine, and reports whether there was anything to hand up. Any goroutine may call it. It
// waits neither for the network nor for Receive, and takes as long as the Sink. It leaves
// to Receive what ends the reception. It receives on Linux and over TCP only.
func (c *Conn) Poll() bool {
	if !c.enter() {
		if c.turns != nil && c.polled == nil {
			c.turns.Refused()
		}
		return false
	}
	n, left := c.visit()
	if left {
		c.wakeReceive()
	}
	return n > 0
}

// enter takes the token for a visitor. It reports false if the token is not free.
func (c *Conn) enter() bool {
	if c.turns == nil || !c.turns.Enter() {
		return false
	}
	if c.polled != nil && c.reader.open() {
		// With the token: whoever has it next may leave something to Receive, which ends
		// the lease, and this visit does not begin another.
		c.polled.Visit()
	}
	return true
}

// visit receives what has arrived, and gives back the token, which the caller has. It
// reports whether something is left to Receive.
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

// receivePolled is visit for the poller of a polled connection, while Receive waits. It
// reports false if Receive has to go on.
func (c *Conn) receivePolled() bool {
	if !c.turns.Enter() {
		return false // a visitor receives, or Receive itself, in the middle of a ULPDU
	}
	n, left := c.visit()
	return !left && n < turns.BulkRead
}

// wakeReceive has Receive go on, with what visitors have left to it.
func (c *Conn) wakeReceive() {
	c.turns.Recall()
	if c.polled != nil {
		c.polled.WakeReader()
	}
}

// Wait waits in the place of the Receive that is under way in another goroutine, until Poll
// may find something, the connection ends, or Interrupt is called; until some milliseconds
// after ctx is done; and no longer than some 64 ms without octets, after which Receive waits
// at less cost. It reports false at once if Receive waits itself.
//
// Receive leaves the wait to callers of Wait after many short arrivals in a row for each of
// which Wait or Poll was called in time. It does so on Linux, over TCP, in a program that has
// more than one processor. It takes the wait back within milliseconds of the last call.
func (c *Conn) Wait(ctx context.Context) bool {
	return c.turns != nil && c.turns.Lead(ctx, c.reader.rest)
}

// BeginWait takes over the wait of the Receive that is under way, for a caller that waits
// for several connections at a time: fd is readable when octets have arrived, and when the
// connection ends. BeginWait reports false for a connection that Go's network poller knows, for
// one that is closed, and while Receive is busy. After true the caller calls EndWait within
// some 64 ms: Close and Reset wait for that.
func (c *Conn) BeginWait() (fd uintptr, ok bool) {
	if c.polled == nil || !c.enter() {
		return 0, false
	}
	open := c.reader.open()
	c.turns.Exit(0, false)
	if !open {
		return 0, false
	}
	return c.polled.Hold()
}

// EndWait ends the wait that BeginWait has begun. readable reports that octets have
// arrived, which the caller receives by Poll; otherwise Receive waits for them from now on.
func (c *Conn) EndWait(readable bool) {
	c.polled.Release()
	if !readable {
		c.polled.EndLease()
	}
}

// Interrupt ends the Wait under way, or the next one if there is none.
func (c *Conn) Interrupt() {
	if c.turns != nil {
		c.turns.Interrupt()
	}
}

// Leave reports that a caller of Poll or Wait is about to sleep until octets arrive, or
// to do something else: Receive waits, now or after the Wait under way.
func (c *Conn) Leave() {
	if c.turns != nil {
		c.turns.Leave()
	}
	if c.polled != nil {
		c.polled.EndLease()
	}
}

// Spin has Receive poll for d before it waits, unless others call Poll or Wait: what
// concerns no consumer, like a peer's RDMA Read, is answered sooner, at the cost of a
// processor. It is called before Receive, and does nothing where Poll does nothing.
func (c *Conn) Spin(d time.Duration) {
	if c.turns != nil {
		c.turns.Spin(d)
	}
}

// Expect says, in Idle of the Sink, that the peer is about to send more: Receive polls for a
// moment before it waits, as long as that pays.
func (c *Conn) Expect() {
	if c.turns != nil {
		c.turns.Expect()
	}
}

// PollNeverBlocks reports that Poll leaves to Receive each ULPDU for which a [BlockingSink]
// would block. It does so over a connection that Go's network poller does not know.
func (c *Conn) PollNeverBlocks() bool { return c.polled != nil }

// A polledConn is a connection that Go's network poller does not know (internal/polled).
// It leases what arrives to visitors.
type polledConn interface {
	// Visit notes a visitor: octets do not wake Receive until none has come for 1 to 2 ms.
	Visit()
	// EndLease ends that. WakeReader also has Receive look at once.
	EndLease()
	WakeReader()
	// ReceiveWith has f receive what arrives while Receive waits, and wake Receive if it
	// reports false.
	ReceiveWith(f func() bool)
	// Hold returns the descriptor, which stays open until Release.
	Hold() (fd uintptr, ok bool)
	Release()
}
