package mpa

import (
	"sync"
	"time"
)

// A readDeadline is how long reads may wait, and the way to end the wait of one that
// would not notice what has happened in Poll. Methods may be called by any goroutine.
type readDeadline struct {
	nc interface{ SetReadDeadline(time.Time) error }

	mu     sync.Mutex
	until  time.Time // what the user asked for
	roused bool      // it is not what nc has now
}

func (d *readDeadline) set(until time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until = until
	if d.roused {
		return nil
	}
	return d.nc.SetReadDeadline(until)
}

// rouse ends a read that waits, and each that begins, until settle.
func (d *readDeadline) rouse() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.roused = true
	_ = d.nc.SetReadDeadline(time.Unix(1, 0)) // it is closed otherwise, which ends reads too
}

// settle has the user's own deadline count again.
func (d *readDeadline) settle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.roused {
		d.roused = false
		_ = d.nc.SetReadDeadline(d.until) // it is closed otherwise, which reads tell
	}
}
