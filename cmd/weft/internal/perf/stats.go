package perf

import (
	"slices"
	"time"
)

// median returns the middle of values, or the mean of the two in the middle.
// It is 0 for none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	mid := len(v) / 2
	if len(v)%2 == 1 {
		return v[mid]
	}
	return (v[mid-1] + v[mid]) / 2
}

// percentile returns the smallest of sorted that at least p percent of sorted
// do not exceed (the nearest rank). It is 0 for none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(p / 100 * float64(len(sorted)))
	if float64(rank) < p/100*float64(len(sorted)) {
		rank++
	}
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// A series collects one connection's figures of one operation and size, a
// value a round.
type series struct {
	rate     []float64 // octets a second
	p50, p99 []float64 // ns
	messages int       // timed in all rounds
	verified int       // messages compared slot by slot before
}

func (s *series) addTransfer(r *run, elapsed time.Duration) {
	s.rate = append(s.rate, float64(r.N)*float64(r.Size)/max(elapsed, 1).Seconds())
	s.messages += r.N
}

// addLatency takes the round trips of one run, which it sorts. What is kept is
// divided by parts: 2 for half round trips.
func (s *series) addLatency(trips []time.Duration, parts int) {
	slices.Sort(trips)
	s.p50 = append(s.p50, float64(percentile(trips, 50))/float64(parts))
	s.p99 = append(s.p99, float64(percentile(trips, 99))/float64(parts))
	s.messages += len(trips)
}
