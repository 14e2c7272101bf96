// This file decides whether polling before a wait is worth it, by whether it was lately.

package turns

import (
	"sync"
	"time"
)

const (
	oddsCredit = 8  // failures after a success that it takes to stop
	oddsProbe  = 32 // waits after one of which it is tried again

	// A yield that takes ranOther has let another program run on this processor. Whoever waits
	// for that had better sleep: polling does not make it faster.
	ranOther = 5 * time.Microsecond
)

// YieldTo yields, and reports whether another program has run meanwhile.
func YieldTo(yield func()) (ran bool) {
	began := time.Now()
	yield()
	return time.Since(began) > ranOther
}

// The odds of a wait that happens over and over.
type odds struct {
	credit  int // failures left
	skipped int // waits since the last try
}

// due reports whether to poll before the wait that begins.
func (o *odds) due() bool {
	o.skipped = (o.skipped + 1) % oddsProbe
	return o.credit > 0 || o.skipped == 0
}

// paid notes that something has come while somebody polled, and failed that nothing has.
func (o *odds) paid()   { o.credit = oddsCredit }
func (o *odds) failed() { o.credit = max(0, o.credit-1) }

// Odds are those of a wait that happens once to each connection, for all connections of the
// program together. Methods may be called by any goroutine.
type Odds struct {
	mu   sync.Mutex
	odds odds
}

// NewOdds returns odds with which polling is tried at first.
func NewOdds() *Odds { return &Odds{odds: odds{credit: oddsCredit}} }

// Due reports whether to poll before the wait that begins.
func (o *Odds) Due() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.odds.due()
}

// Note notes whether something has come while somebody polled.
func (o *Odds) Note(came bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if came {
		o.odds.paid()
	} else {
		o.odds.failed()
	}
}
