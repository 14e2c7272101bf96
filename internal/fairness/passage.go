// Whether a peer makes progress, by how many octets have passed.

package fairness

import (
	"sync"
	"time"
)

// someOctets is how many octets have to pass for a peer to count as making progress: an
// octet now and then is not enough.
const someOctets = 4 << 10

// A Passage measures the progress of a connection. Its zero value is ready to use.
// Methods may be called by any goroutine.
type Passage struct {
	mu     sync.Mutex
	octets uint64
	since  time.Time // of the last progress
}

// Idle takes how many octets have passed in all, and returns the time since an earlier
// call found progress.
func (p *Passage) Idle(octets uint64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.since.IsZero() || octets-p.octets >= someOctets {
		p.octets, p.since = octets, now
	}
	return now.Sub(p.since)
}
