// This file tells who goes on by how many octets have passed.

package fairness

import (
	"sync"
	"time"
)

// someOctets is how much has to pass within Patience for a peer to count as one that
// goes on: one octet now and then does not.
const someOctets = 4 << 10

// A Passage is how much had passed over a connection when that was looked at last.
// Its zero value has not been looked at. Methods may be called by any goroutine.
type Passage struct {
	mu     sync.Mutex
	octets uint64
	since  time.Time // when it was less by some
}

// Idle is told how many octets have passed by now, and returns for how long none
// have, as far as that has been looked at.
func (p *Passage) Idle(octets uint64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.since.IsZero() || octets-p.octets >= someOctets {
		p.octets, p.since = octets, now
	}
	return now.Sub(p.since)
}
