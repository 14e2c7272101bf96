// The clock of a sample: a warm-up that does not count, then the counted part.

package main

import (
	"slices"
	"time"

	"github.com/weft-rdma/weft/internal/stats"
)

// A stopwatch counts one sample's messages against its time. It belongs to one
// goroutine.
type stopwatch struct {
	begin    time.Time     // of the counted part
	end      time.Time     // of the counted part
	messages uint64        // since the connection began
	skipped  uint64        // of these, the warm-up's
	counting bool          // the warm-up is over
	sample   time.Duration // how long the counted part should last
}

// newStopwatch starts job's warm-up.
func newStopwatch(job Job) *stopwatch {
	now := time.Now()
	return &stopwatch{begin: now.Add(job.Warmup), end: now.Add(job.Warmup + job.Sample), sample: job.Sample}
}

// stride is how many steps of perStep messages may pass between two looks at
// the clock: a look costs as much as some tens of octets.
func (s *stopwatch) stride(perStep uint64) int {
	return int(max(1, 16/perStep))
}

// add counts n messages.
func (s *stopwatch) add(n uint64) { s.messages += n }

// over looks at the clock and reports whether the sample has lasted enough.
func (s *stopwatch) over() bool { return s.overAt(time.Now()) }

// overAt is over at a time already known.
func (s *stopwatch) overAt(now time.Time) bool {
	if !s.counting && !now.Before(s.begin) {
		s.counting = true
		s.skipped = s.messages
		s.begin = now
		s.end = now.Add(s.sample)
	}
	return s.counting && !now.Before(s.end)
}

// stop ends the sample: now, all messages counted are in place.
func (s *stopwatch) stop() Sample {
	return Sample{Messages: s.messages - s.skipped, Total: s.messages, Elapsed: time.Since(s.begin)}
}

// trips collects round trips. Its room is made beforehand, so that collecting
// does not allocate; a sample longer than the room keeps the first ones.
type trips struct {
	took []time.Duration
}

// maxTrips is room for a second of the fastest ping-pong on loopback.
const maxTrips = 1 << 19

func newTrips() *trips { return &trips{took: make([]time.Duration, 0, maxTrips)} }

// add records a round trip unless the stopwatch is still warming up.
func (t *trips) add(s *stopwatch, d time.Duration) {
	if s.counting && len(t.took) < cap(t.took) {
		t.took = append(t.took, d)
	}
}

// percentiles returns the round trips at those percentiles.
func (t *trips) percentiles() (at [4]time.Duration) {
	slices.Sort(t.took)
	for i, p := range percentiles {
		at[i] = stats.Percentile(t.took, p)
	}
	return at
}
