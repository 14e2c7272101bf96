// This file leaves what arrives to visitors: threads that read by themselves, and come
// again and again. Who waits in Read is not woken meanwhile.

package polled

import (
	"golang.org/x/sys/unix"
)

// lease is for how long it is left to them after a visit, at least, and twice that at
// most.
const lease = 1_000_000 // ns

// Visit notes a visit. Reads that wait are not woken by octets until there was none for some
// ms, or Recall is called. A visitor may read at any time, or Hold the connection and wait
// by itself.
func (c *Conn) Visit() {
	c.visits.Add(1)
	if c.leased.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed && !c.leased.Load() && watch.lease(c) {
		c.leased.Store(true)
	}
}

// Recall has reads be woken again.
func (c *Conn) Recall() {
	if !c.leased.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recall()
}

// Look is Recall, and has a read that waits, or is about to, call its function again.
func (c *Conn) Look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
}

// look is Look; needs mu.
func (c *Conn) look() {
	c.leased.Store(false)
	c.in.again = !c.in.waits
	c.in.wake()
}

// Attend has f receive what has come when a read waits for it: in the poller's goroutine,
// which wakes the read if f reports false. f must not wait. It is called before the first
// Read. [Start] can contain its panics.
func (c *Conn) Attend(f func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attend = f
}

// attended has what has come received. left says that the read is to look: visitors who
// come meanwhile do not find what has been received.
func (c *Conn) attended() (done, left bool) {
	c.mu.Lock()
	f := c.attend
	if !c.in.waits || c.closed || c.leased.Load() {
		f = nil
	}
	c.mu.Unlock()
	switch {
	case f == nil:
		return false, false
	case watch.contain != nil:
		done = watch.contain(f)
	default:
		done = f()
	}
	return done, !done
}

// recall is Recall; needs mu.
func (c *Conn) recall() {
	c.leased.Store(false)
	if !c.closed && c.in.waits && watch.arm(c) != nil {
		c.in.wake()
	}
}

// review ends the lease if nobody has come since the last review. It reports whether
// there is still one.
func (c *Conn) review() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if visits := c.visits.Load(); c.leased.Load() && c.held == 0 && visits == c.known {
		c.recall()
	} else {
		c.known = visits
	}
	return c.leased.Load() && !c.closed
}

// lease looks after a connection that is being leased. It reports false if there is no
// timer for that.
func (p *poller) lease(c *Conn) bool {
	p.leases.Lock()
	defer p.leases.Unlock()
	if p.timer < 0 {
		return false
	}
	if len(p.leased) == 0 {
		p.tick(lease)
	}
	p.leased[c] = struct{}{}
	c.known = c.visits.Load() - 1
	return true
}

// tick has the timer expire each so many ns; 0 is not at all.
func (p *poller) tick(ns int64) {
	t := unix.NsecToTimespec(ns)
	_ = unix.TimerfdSettime(p.timer, 0, &unix.ItimerSpec{Interval: t, Value: t}, nil) // of a timer that there is
}

// review looks after all that are leased.
func (p *poller) review() {
	var count [8]byte
	_, _ = unix.Read(p.timer, count[:])
	p.leases.Lock()
	all := p.reviewed[:0]
	for c := range p.leased {
		all = append(all, c)
	}
	p.leases.Unlock()
	for _, c := range all {
		if !c.review() {
			p.end(c)
		}
	}
	clear(all)
	p.reviewed = all
}

// end ends looking after a connection, unless it has been leased again.
func (p *poller) end(c *Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leased.Load() && !c.closed {
		return
	}
	p.leases.Lock()
	defer p.leases.Unlock()
	if delete(p.leased, c); len(p.leased) == 0 {
		p.tick(0)
	}
}
