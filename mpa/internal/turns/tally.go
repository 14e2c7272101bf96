// This file decides when the reader sleeps: when visitors have come often enough.

package turns

import "sync/atomic"

const (
	// minVisits is how many times in a row there has to be a visitor before the reader
	// sleeps. If fewer visits follow than that, the number is doubled for the next time;
	// it is multiplied by missedFactor if octets were waiting without a visitor: then the
	// peer had to wait, for a nap of the watchdog or two. It is at most maxVisits, which
	// gain much more than that wait costs.
	minVisits    = 16
	missedFactor = 4
	maxVisits    = 128
)

// A tally is the reader's account of visitors.
type tally struct {
	visits atomic.Uint32 // so far

	// The reader's own.
	known  uint32 // of visits
	row    int    // times in a row that there were more
	need   int    // of row, before the reader sleeps
	began  uint32 // visits when it fell asleep
	missed bool   // it was woken because nobody came, and has not read since
}

func newTally() tally { return tally{need: minVisits} }

// visit counts a visitor.
func (c *tally) visit() { c.visits.Add(1) }

// arrived records that the reader was woken. It extends the row if there was a visitor since
// the last time and, unless the reader found nothing, a visitor would have found the octets
// as soon.
func (c *tally) arrived(soon bool) {
	visits := c.visits.Load()
	if visits == c.known || !soon {
		c.known, c.row = visits, 0
		return
	}
	c.known = visits
	c.row++
}

// lasts reports that there have been enough visits in a row.
func (c *tally) lasts() bool { return c.row >= c.need }

// sleeps and woke are called before and after the reader's sleep.
func (c *tally) sleeps() { c.began = c.visits.Load() }

func (c *tally) woke(lapsed bool) {
	c.missed = lapsed
	if int(c.visits.Load()-c.began) < c.need {
		c.need = min(2*c.need, maxVisits)
	} else {
		c.need = max(c.need/2, minVisits)
	}
	c.row = 0
}

// found records that the reader has octets, and whether it has waited for them.
func (c *tally) found(waited bool) {
	if c.missed && !waited {
		c.need = min(missedFactor*c.need, maxVisits)
	}
	c.missed = false
}
