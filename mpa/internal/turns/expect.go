// This file decides whether a reader polls before it waits because its user expects more:
// answers to requests that are under way, or the next requests of a peer that keeps several
// under way. Where the two sides work on short batches in turns, sleeping and being woken
// would take longer than the work. The reader goes on with it only as long as it pays.

package turns

import "time"

const (
	// expectFor is how long the reader polls: somewhat longer than a wakeup takes, so that
	// two sides that have both slept come to poll.
	expectFor = 100 * time.Microsecond

	expectCredit = 8   // failures after a success that it takes to stop
	expectProbe  = 32  // waits after one of which it is tried again
	expectRun    = 128 // successes after which it parks: others wait for the network poller
)

// An expectation decides for the reader of one connection.
type expectation struct {
	soon    bool // Expect was called since the reader's last Read; for the holder of the token
	polls   bool // the reader polls because of it
	credit  int  // failures left
	skipped int  // waits since the last try
	run     int  // successes since it parked last
}

// due reports whether to poll in the Read that begins.
func (x *expectation) due() bool {
	if !x.soon {
		return false
	}
	x.soon = false
	if x.run == expectRun {
		x.run = 0
		return false
	}
	x.skipped = (x.skipped + 1) % expectProbe
	return x.credit > 0 || x.skipped == 0
}

// came notes that something has come while the reader polled.
func (x *expectation) came() {
	x.run++
	x.credit = expectCredit
}

// failed notes that nothing has.
func (x *expectation) failed() { x.credit = max(0, x.credit-1) }

// Expect says that more is to come within microseconds: the reader polls for a moment before
// it waits, if that pays. The caller has the token.
func (t *Turns) Expect() { t.expect.soon = !t.stays }

// pollTime is how long to poll in the Read that begins.
func (t *Turns) pollTime() time.Duration {
	t.expect.polls = t.spin == 0 && t.expect.due()
	if t.expect.polls {
		return expectFor
	}
	return t.spin
}
