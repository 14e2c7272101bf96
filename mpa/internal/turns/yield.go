// This file decides whether a reader lets other threads of its processor run once before
// it parks. If the peer is one of them its answer may have arrived then, and neither side
// has to be woken: that takes a seventh off an event-driven ping-pong. The reader goes on
// with it only as long as it pays.
//
// It is for programs that are bound to one processor. Elsewhere the system puts the
// two ends of a ping-pong on one core because they sleep in turns; ends that yield
// do not sleep, are moved apart, and take twice as long.

package turns

import "time"

const (
	// yieldTries is how often it looks for octets.
	yieldTries = 3

	// A yield that takes yieldLong has let another program than the peer run.
	yieldLong = 100 * time.Microsecond

	yieldCredit = 8  // failures after a success that it takes to stop
	yieldProbe  = 32 // waits after one of which it is tried again
	yieldRun    = 16 // successes after which it parks: others wait for the network poller
)

// A yielder decides for the reader of one connection.
type yielder struct {
	on      bool // there is one processor
	credit  int  // failures left
	skipped int  // waits since the last try
	run     int  // successes since it parked last
}

// pays reports whether yielding has paid lately.
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
