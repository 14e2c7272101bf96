package turns

import "time"

// This file decides whether a reader lets the others of its core run once before it
// parks. Is the peer one of them then its answer may be there, and neither side has
// to be woken: a third of what an event costs. The reader goes on with that only as
// long as it pays.
//
// It is for processes that are bound to one processor. Elsewhere the system puts the
// two ends of a ping-pong on one core because they sleep in turns; those that yield
// do not sleep, are spread, and take twice as long.

const (
	// yieldTries is how often it looks whether something has come.
	yieldTries = 3

	// A wait of yieldLong has others to thank for it than the peer.
	yieldLong = 100 * time.Microsecond

	yieldCredit = 8  // failures after a success that it takes to stop
	yieldProbe  = 32 // waits after one of which it is tried again
	yieldRun    = 16 // successes after which it parks: others wait for the network poller
)

// A yielder decides it for the reader of one connection.
type yielder struct {
	on      bool // it is not out of the question
	credit  int  // failures left
	skipped int  // waits since the last try
	run     int  // successes since it parked last
}

// pays reports that it did so lately.
func (y *yielder) pays() bool { return y.credit > 0 && y.run < yieldRun }

// due reports whether the wait that comes may be worth it.
func (y *yielder) due() bool {
	if !y.on {
		return false
	}
	if y.run == yieldRun {
		y.run = 0
		return false
	}
	y.skipped = (y.skipped + 1) % yieldProbe
	return y.credit > 0 || y.skipped == 0
}

// came notes that something has come, after the time that it took.
func (y *yielder) came(took time.Duration) {
	y.run++
	y.credit = yieldCredit
	if took > yieldLong {
		y.credit = 0
	}
}

// failed notes that nothing has.
func (y *yielder) failed() { y.credit = max(0, y.credit-1) }
