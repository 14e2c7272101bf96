// This file leaves what arrives to visitors: threads that receive by themselves, and come
// again and again. A read that waits is not woken meanwhile.

package polled

import "golang.org/x/sys/unix"

// tick is how often the timer looks for visitors, in ns. A lease lasts for one to two ticks
// after the last visit.
const tick = 1_000_000

// Visit notes that the caller is about to receive. Octets wake no read until there was no
// visitor for 1 to 2 ms, or EndLease or WakeReader is called.
func (c *Conn) Visit() {
	c.visits.Add(1)
	if !c.is(watched) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if thePoller.timer >= 0 && c.apply(visit) == follow {
		thePoller.follow(c)
	}
}

// EndLease has octets wake reads again.
func (c *Conn) EndLease() {
	if !c.is(leased) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLease(leave)
}

// endLease ends the lease because of e; needs mu.
func (c *Conn) endLease(e event) {
	if c.apply(e) == watch && c.in.waits && thePoller.arm(c) != nil {
		c.in.wake()
	}
}

// WakeReader has a read that waits, or is about to, call its function again, because
// something was left to it. It ends the lease.
func (c *Conn) WakeReader() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apply(rest) == wake {
		c.in.again = !c.in.waits
		c.in.wake()
	}
}

// ReceiveWith has f receive what arrives while a read waits: in the poller's goroutine,
// which wakes the read if f reports false. f must not wait. ReceiveWith is called before the
// first Read. [Start] can contain panics of f.
func (c *Conn) ReceiveWith(f func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.receive = f
}

// expire ends the lease if nobody has come since the last call, and nobody has the
// descriptor. It reports whether there is still one.
func (c *Conn) expire() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if visits := c.visits.Load(); c.held == 0 && visits == c.known {
		c.endLease(expiry)
	} else {
		c.known = visits
	}
	return c.is(leased)
}

// follow has the timer look after a connection that has been leased; needs the connection's
// mu.
func (p *poller) follow(c *Conn) {
	p.leases.Lock()
	defer p.leases.Unlock()
	if len(p.leased) == 0 {
		p.setTimer(tick)
	}
	p.leased[c] = struct{}{}
	c.known = c.visits.Load() - 1
}

// setTimer has the timer expire each so many ns; 0 is not at all.
func (p *poller) setTimer(ns int64) {
	t := unix.NsecToTimespec(ns)
	_ = unix.TimerfdSettime(p.timer, 0, &unix.ItimerSpec{Interval: t, Value: t}, nil) // p.timer is valid
}

// expire ends the leases without visitors.
func (p *poller) expire() {
	var count [8]byte
	_, _ = unix.Read(p.timer, count[:])
	p.leases.Lock()
	all := p.followed[:0]
	for c := range p.leased {
		all = append(all, c)
	}
	p.leases.Unlock()
	for _, c := range all {
		if !c.expire() {
			p.unfollow(c)
		}
	}
	clear(all)
	p.followed = all
}

// unfollow is the opposite of follow, unless the connection has been leased again.
func (p *poller) unfollow(c *Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.is(leased) {
		return
	}
	p.leases.Lock()
	defer p.leases.Unlock()
	if delete(p.leased, c); len(p.leased) == 0 {
		p.setTimer(0)
	}
}
