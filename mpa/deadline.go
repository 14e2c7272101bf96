package mpa

import (
	"sync"
	"time"
)

// A readDeadline is how long reads may wait, and the way to end the wait of one that
// would not notice what has happened elsewhere. Methods may be called by any
// goroutine.
type readDeadline struct {
	nc interface{ SetReadDeadline(time.Time) error }

	mu     sync.Mutex
	until  time.Time // what the user asked for
	roused bool      // Receive is to look
	called bool      // who waits in Await is to look
}

func (d *readDeadline) set(until time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until = until
	if d.roused || d.called {
		return nil
	}
	return d.nc.SetReadDeadline(until)
}

// limited reports that the user has asked for one.
func (d *readDeadline) limited() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.until.IsZero()
}

// rouse ends a read that waits, and each that begins, until settle; call does so until
// calm.
func (d *readDeadline) rouse() { d.interrupt(&d.roused) }
func (d *readDeadline) call()  { d.interrupt(&d.called) }

// settle and calm have the user's own deadline count again, unless the other has still
// to come. They report whether there was something to be settled.
func (d *readDeadline) settle() bool { return d.restore(&d.roused) }
func (d *readDeadline) calm() bool   { return d.restore(&d.called) }

func (d *readDeadline) interrupt(why *bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.roused && !d.called {
		_ = d.nc.SetReadDeadline(time.Unix(1, 0)) // it is closed otherwise, which ends reads too
	}
	*why = true
}

func (d *readDeadline) restore(why *bool) (was bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	was = *why
	*why = false
	if was && !d.roused && !d.called {
		_ = d.nc.SetReadDeadline(d.until) // it is closed otherwise, which reads tell
	}
	return was
}
