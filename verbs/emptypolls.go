// This file decides when a consumer that polls an empty completion queue in a loop receives by
// itself, without CQConfig.Spin.
//
// Such a loop keeps its processor busy, and the Go scheduler asks its network poller only on an
// idle processor, or every 10 ms. So the consumer polls the connections itself. A consumer that
// works or sleeps between its polls leaves them to the readers.

package verbs

import "time"

const (
	// A consumer polls in a loop if loopPolls empty polls take at most loopTime.
	loopPolls = 64
	loopTime  = time.Millisecond

	// Such a consumer polls a connection after firstLimit empty polls in a row, at first. The
	// limit is halved when a connection had octets, and doubled, up to mostLimit, when a
	// completion came without them.
	firstLimit = 16
	mostLimit  = 1024
)

// emptyPolls counts the empty polls of a completion queue; needs the queue's mu.
type emptyPolls struct {
	row     int       // in a row
	limit   int       // of row, from which on the consumer polls a connection
	loops   bool      // the consumer polls in a loop
	visited bool      // the consumer has polled a connection since it last slept
	counted int       // empty polls since began
	began   time.Time // of the window of loopPolls
}

// add counts an empty poll. It reports whether the consumer is to poll a connection, as one with
// CQConfig.Spin always does, and whether it is to yield to other goroutines first.
func (e *emptyPolls) add(always bool) (visit, yield bool) {
	e.row++
	e.counted++
	full := e.counted >= loopPolls
	if full {
		now := time.Now()
		e.loops = now.Sub(e.began) <= loopTime
		e.counted, e.began = 0, now
	}
	visit = always || e.loops && e.row >= e.limit
	e.visited = e.visited || visit
	return visit, visit && full && e.loops
}

// received is called when the connection had octets.
func (e *emptyPolls) received() { e.row, e.limit = 0, max(e.limit/2, 1) }

// completed is called when the queue has a completion.
func (e *emptyPolls) completed() {
	if e.loops && e.row >= e.limit {
		e.limit = min(2*e.limit, mostLimit)
	}
	e.row = 0
}
