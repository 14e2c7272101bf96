// This file collects the figures of the rounds.

package perf

import (
	"slices"
	"time"

	"github.com/weft-rdma/weft/internal/stats"
)

// A series collects the figures of one operation and size over all connections
// of one kind, a value a round.
type series struct {
	rate     []float64 // bytes a second
	at       []float64 // seconds since the measurement began, when each rate was known
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
	at := func(p float64) float64 { return float64(stats.Percentile(trips, p)) / float64(parts) }
	s.latency = append(s.latency, Latency{P50: at(0.5), P90: at(0.9), P99: at(0.99), P999: at(0.999), Max: at(1)})
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
		P50:       stats.Median(of(func(l *Latency) float64 { return l.P50 })),
		P90:       stats.Median(of(func(l *Latency) float64 { return l.P90 })),
		P99:       stats.Median(of(func(l *Latency) float64 { return l.P99 })),
		P999:      stats.Median(of(func(l *Latency) float64 { return l.P999 })),
		Max:       slices.Max(append(of(func(l *Latency) float64 { return l.Max }), 0)),
		Histogram: s.trips.buckets(),
	}
}
