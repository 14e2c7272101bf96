// This file is the deadline of reads. It also interrupts a reader or leader that waits.

package turns

import (
	"sync"
	"time"
)

// A deadline is how long reads may wait. It is also the way to interrupt the reader and the
// leader: a deadline that has passed ends their wait. Methods may be called by any
// goroutine.
type deadline struct {
	conn interface{ SetReadDeadline(time.Time) error }

	mu      sync.Mutex
	until   time.Time       // what the user asked for
	reader  bool            // the reader is to look
	leader  bool            // the leader is to return, or the next one if there is none
	leading bool            // there is one, which waits:
	done    <-chan struct{} // until then at most
}

// change calls f, and has the connection's deadline follow.
func (d *deadline) change(f func()) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.passed()
	f()
	switch {
	case d.passed() && !before:
		err = d.conn.SetReadDeadline(time.Unix(1, 0))
	case before && !d.passed():
		err = d.conn.SetReadDeadline(d.until)
	}
	return err // of a connection that is closed, which ends reads too
}

// passed reports that a wait is being interrupted; needs mu.
func (d *deadline) passed() bool { return d.reader || d.leader && d.leading }

// set sets the user's deadline. It takes effect when no wait is being interrupted any more.
func (d *deadline) set(until time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until = until
	if d.passed() {
		return nil
	}
	return d.conn.SetReadDeadline(until)
}

// limited reports that the user has set one.
func (d *deadline) limited() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.until.IsZero()
}

// interruptReader ends the reader's wait, and each that begins, until clearReader.
func (d *deadline) interruptReader() { _ = d.change(func() { d.reader = true }) }
func (d *deadline) clearReader()     { _ = d.change(func() { d.reader = false }) }

// interruptLeader ends the leader's wait; that of the next one, if there is none.
func (d *deadline) interruptLeader() { _ = d.change(func() { d.leader = true }) }

// lead and led are called before and after the leader waits.
func (d *deadline) lead(done <-chan struct{}) {
	_ = d.change(func() { d.leading, d.done = true, done })
}

func (d *deadline) led() {
	_ = d.change(func() { d.leading, d.leader, d.done = false, false, nil })
}

// review interrupts a leader whose context is done, or whose wait has become long.
func (d *deadline) review(long bool) {
	_ = d.change(func() { d.leader = d.leader || d.leading && (long || isClosed(d.done)) })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
