// This file is how a read or a write waits, and what ends its wait.

package polled

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// is reports whether the state is s.
func (c *Conn) is(s state) bool { return state(c.state.Load()) == s }

// apply makes e happen, and returns what has to be done; needs mu.
func (c *Conn) apply(e event) action {
	to, do := next(state(c.state.Load()), e)
	c.state.Store(int32(to))
	return do
}

// use and unuse are called before and after the descriptor is used.
func (c *Conn) use() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.is(closed) {
		return net.ErrClosed
	}
	c.users++
	return nil
}

func (c *Conn) unuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users--; c.users == 0 {
		c.unused.Broadcast()
	}
}

// Hold returns the descriptor, for a visitor that waits for it. It stays open until
// Release: Close makes it readable, and waits for that. Hold reports false if the connection
// is closed.
func (c *Conn) Hold() (fd uintptr, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.is(closed) {
		return 0, false
	}
	c.users++
	c.held++
	return uintptr(c.fd), true
}

// Release ends a Hold.
func (c *Conn) Release() {
	c.mu.Lock()
	c.held--
	c.mu.Unlock()
	c.unuse()
}

// try calls f until it reports true, and waits in between.
func (c *Conn) try(h *half, f func(fd uintptr) bool) error {
	if err := c.use(); err != nil {
		return err
	}
	defer c.unuse()
	h.lock.Lock()
	defer h.lock.Unlock()
	for {
		if err := c.check(h); err != nil {
			return err
		}
		if f(uintptr(c.fd)) {
			return nil
		}
		if err := c.wait(h); err != nil {
			return err
		}
	}
}

// check returns why nothing can be waited for any more, or nil.
func (c *Conn) check(h *half) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended(h)
}

// ended is check; needs mu.
func (c *Conn) ended(h *half) error {
	switch {
	case c.is(closed):
		return net.ErrClosed
	case h.expired:
		return os.ErrDeadlineExceeded
	}
	return nil
}

// wait waits until the half may be ready.
func (c *Conn) wait(h *half) error {
	over, err := c.beginWait(h)
	if !over && err == nil {
		<-h.ready
	}
	return err
}

// beginWait makes the half wait, unless the wait is over before it begins.
func (c *Conn) beginWait(h *half) (over bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.ended(h); err != nil {
		return true, err
	}
	if h.again {
		h.again = false
		return true, nil
	}
	h.waits = true
	if c.wanted() != 0 {
		err = thePoller.arm(c)
	}
	h.waits = err == nil
	return false, err
}

// wake ends a wait; needs mu.
func (h *half) wake() {
	if h.waits {
		h.waits = false
		h.ready <- struct{}{}
	}
}

// wanted returns the events that epoll is to report; needs mu.
func (c *Conn) wanted() (events uint32) {
	if c.in.waits && !c.is(leased) {
		events = c.in.events
	}
	if c.out.waits {
		events |= c.out.events
	}
	return events
}

// endEvents are the events that concern both directions.
const endEvents = unix.EPOLLHUP | unix.EPOLLERR

// happened handles the events that epoll reports.
func (c *Conn) happened(events uint32) {
	if events&(c.in.events|endEvents) != 0 {
		c.arrived()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.is(closed) {
		return
	}
	if events&(c.out.events|endEvents) != 0 {
		c.out.wake()
	}
	if c.wanted() != 0 && thePoller.arm(c) != nil { // the event was the last
		c.in.wake()
		c.out.wake()
	}
}

// arrived receives what has arrived in the place of the read that waits, or wakes that.
func (c *Conn) arrived() {
	c.mu.Lock()
	f := c.receive
	mine := c.in.waits && c.apply(arrival) == receive
	if mine && f == nil {
		c.in.wake()
	}
	c.mu.Unlock()
	if mine && f != nil && !thePoller.call(f) {
		c.WakeReader()
	}
}
