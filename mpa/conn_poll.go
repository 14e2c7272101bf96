package mpa

// The receiving half in the hands of a consumer that polls, or waits in the place of
// Receive: what it waits for is handed up in its own goroutine, and nobody has to wake
// it.

import "context"

// CanPoll reports whether Poll is of use without Lead: on Linux over TCP, with
// Params.Spin.
func (c *Conn) CanPoll() bool { return c.transport.polls() }

// Poll hands what has arrived to the Sink of the Receive that is under way in
// another goroutine, and reports whether there was anything to hand up. It may be
// called by any goroutine, and does not wait, neither for the network nor for
// Receive; it takes as long as the Sink. What ends the reception is left to
// Receive, and so is the rest of a ULPDU that has begun to arrive.
func (c *Conn) Poll() bool {
	r := &c.reader
	if !c.CanPoll() && !c.CanLead() || !r.half.TryLock() {
		return false
	}
	defer r.half.Unlock()
	if r.sink == nil || r.placing || r.failed != nil || r.start < r.end {
		c.transport.leave() // Receive may sleep, as others come all the time
		return false
	}
	resting := r.buffer == nil
	n, err := c.transport.look(&r.readAhead)
	switch {
	case err != nil:
		r.failed = r.ended(err)
	case n > 0:
		r.grown(n)
		r.stats.octetsIn.Add(uint64(n))
		r.failed = r.deliver(r.sink)
		r.idle(r.sink)
	case resting: // Receive waits for long
		r.rest()
	}
	r.visited = r.failed != nil || r.start < r.end
	if r.visited || n >= bulkRead && !c.CanPoll() {
		c.transport.leave()
	}
	if r.failed != nil {
		// Receive may be waiting for octets, and was not told that these came: the
		// poller forgets what is read before it looks.
		c.deadline.rouse()
	}
	return n > 0
}

// bulkRead, in octets, is so much at once that who waits for it has something to do
// while the next comes, and Receive had better see to that.
const bulkRead = 64 << 10

// Leave tells that a caller of Poll or Lead is about to do something else. A Receive that
// has left the stream to them takes it back at once, and otherwise within milliseconds.
func (c *Conn) Leave() { c.transport.leave() }

// CanLead reports whether Lead may succeed at all: on Linux over TCP, in a program
// that has more than one processor.
func (c *Conn) CanLead() bool { return c.transport.leads() }

// Lead takes the wait for octets from the Receive that is under way in another
// goroutine, and reports whether it did. Receive lets go of it when a caller of Lead has
// been there first for each of many short arrivals in a row, and takes it back within
// milliseconds when none comes any more, or at once when Poll has left something to
// it. Who has the wait calls Await, Unlead and Poll, in this order.
func (c *Conn) Lead() bool { return c.transport.lead() }

// Await waits until Poll may find something, the connection ends, Rouse was called, or,
// some milliseconds later, ctx is done. It ends by itself, too, when nothing has come for
// long, so that Receive can wait, which costs nothing.
func (c *Conn) Await(ctx context.Context) {
	if r := &c.reader; r.half.TryLock() {
		r.rest()
		r.half.Unlock()
	}
	c.transport.await(ctx)
}

// Rouse ends the Await under way, or the next one if there is none. It may be called by
// any goroutine, after Lead and before Unlead.
func (c *Conn) Rouse() { c.deadline.call() }

// Unlead gives the wait back, to the next caller of Lead or to Receive.
func (c *Conn) Unlead() { c.transport.unlead() }
