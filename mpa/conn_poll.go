package mpa

// The receiving half in the hands of a consumer that polls: what it waits for is
// handed up in its own goroutine, and nobody has to wake it.

// CanPoll reports whether Poll can do anything: on Linux over TCP, with
// Params.Spin.
func (c *Conn) CanPoll() bool { return c.transport.polls() }

// Poll hands what has arrived to the Sink of the Receive that is under way in
// another goroutine, and reports whether there was anything to hand up. It may be
// called by any goroutine, and does not wait, neither for the network nor for
// Receive; it takes as long as the Sink. What ends the reception is left to
// Receive, and so is the rest of a ULPDU that has begun to arrive.
func (c *Conn) Poll() bool {
	r := &c.reader
	if !c.CanPoll() || !r.half.TryLock() {
		return false
	}
	defer r.half.Unlock()
	if r.sink == nil || r.placing || r.failed != nil || r.start < r.end {
		return false
	}
	r.visits++
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
	if r.visited {
		c.transport.leave() // Receive may sleep, as others come all the time
	}
	if r.failed != nil {
		// Receive may be waiting for octets, and was not told that these came: the
		// poller forgets what is read before it looks.
		c.deadline.rouse()
	}
	return n > 0
}

// Leave tells that a caller of Poll is about to do something else. A Receive that has
// left the stream to those who poll takes it back at once, and otherwise within
// milliseconds.
func (c *Conn) Leave() { c.transport.leave() }
