// This file computes medians and percentiles.

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

// A series collects the figures of one operation and size over all connections
// of one kind, a value a round.
type series struct {
	rate     []float64 // bytes a second
	latency  []Latency // without their histograms
	trips    histogram // of all rounds
	messages int       // timed in all rounds
	verified int       // messages compared slot by slot before
}

func (s *series) addTransfer(messages, size int, elapsed time.Duration) {
	s.rate = append(s.rate, float64(messages)*float64(size)/max(elapsed, 1).Seconds())
	s.messages += messages
}

// addLatency takes the round trips of one run, which it sorts. What is kept is
// divided by parts: 2 for half round trips.
func (s *series) addLatency(trips []time.Duration, parts int) {
	slices.Sort(trips)
	at := func(p float64) float64 { return float64(percentile(trips, p)) / float64(parts) }
	s.latency = append(s.latency, Latency{P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: at(100)})
	for _, trip := range trips {
		s.trips.add(trip / time.Duration(parts))
	}
	s.messages += len(trips)
}

// latencies summarizes the rounds.
func (s *series) latencies() Latency {
	of := func(value func(*Latency) float64) []float64 {
		values := make([]float64, len(s.latency))
		for i := range s.latency {
			values[i] = value(&s.latency[i])
		}
		return values
	}
	return Latency{
		P50:       median(of(func(l *Latency) float64 { return l.P50 })),
		P90:       median(of(func(l *Latency) float64 { return l.P90 })),
		P99:       median(of(func(l *Latency) float64 { return l.P99 })),
		P999:      median(of(func(l *Latency) float64 { return l.P999 })),
		Max:       slices.Max(append(of(func(l *Latency) float64 { return l.Max }), 0)),
		Histogram: s.trips.buckets(),
	}
}
