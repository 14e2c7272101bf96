// This file decides whether a reader polls before it waits because its user expects more:
// answers to requests that are under way, or the next requests of a peer that keeps several
// under way. Where the two sides work on short batches in turns, sleeping and being woken
// would take longer than the work. The reader goes on with it only as long as it pays.

package turns

import (
	"sync/atomic"
	"time"
)

const (
	expectFor = PollFor
	expectRun = 128 // successes after which it parks: others wait for the network poller
)

// PollFor is how long to poll for what is expected: somewhat longer than a wakeup takes, so that
// two sides that have both slept come to poll.
const PollFor = 100 * time.Microsecond

// MostPolls is how often at most, in case the clock stands still, as in a bubble of
// testing/synctest: far more often than PollFor has time for.
const MostPolls = 10_000

// openings are the odds that the first octets of a stream come soon after its beginning: mostly
// one side has something to say, which is why it has made the connection.
var openings = NewOdds()

// An expectation decides for the reader of one connection.
type expectation struct {
	odds
	soon    atomic.Bool // Expect was called since the reader's last Read
	polls   bool        // the reader polls because of it
	run     int         // successes since it parked last
	opening *Odds       // of the Read that is the first, if that is to poll
	first   *Odds       // the same, of the Read at hand
	shared  bool        // another program wanted the processor meanwhile
}

// due reports whether to poll in the Read that begins.
func (x *expectation) due() bool {
	if !x.soon.Load() {
		return false
	}
	x.soon.Store(false)
	if x.run == expectRun {
		x.run = 0
		return false
	}
	return x.odds.due()
}

// came notes that something has come while the reader polled.
func (x *expectation) came() {
	if x.first != nil {
		x.first.Note(!x.shared)
		return
	}
	x.run++
	x.paid()
}

// failed notes that nothing has.
func (x *expectation) failed() {
	if x.first != nil {
		x.first.Note(false)
		return
	}
	x.odds.failed()
}

// Expect says that more is to come within microseconds: the reader polls for a moment before
// it waits, if that pays. Any goroutine may call it.
func (t *Turns) Expect() { t.expect.soon.Store(!t.stays) }

// pollTime is how long to poll in the Read that begins.
func (t *Turns) pollTime() time.Duration {
	x := &t.expect
	x.first, x.opening, x.shared = x.opening, nil, false
	x.polls = t.spin == 0 && (x.first != nil || x.due())
	if x.polls {
		return expectFor
	}
	return t.spin
}
