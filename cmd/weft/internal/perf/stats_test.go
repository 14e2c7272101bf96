package perf

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSeriesKeepsRatesAndLatenciesOfEachRound(t *testing.T) {
	var s series
	s.addTransfer(1000, 64, time.Millisecond)
	if s.rate[0] != 64e6 {
		t.Errorf("1000 messages of 64 bytes in 1 ms are %v bytes a second, want 64e6", s.rate[0])
	}
	s.addLatency([]time.Duration{30, 10, 20}, 2)
	s.addLatency([]time.Duration{5}, 1)
	want := []Latency{{P50: 10, P90: 15, P99: 15, P999: 15, Max: 15}, {P50: 5, P90: 5, P99: 5, P999: 5, Max: 5}}
	if diff := cmp.Diff(want, s.latency); diff != "" {
		t.Errorf("latencies (-want +got):\n%s", diff)
	}
	if l := s.latencies(); l.P50 != 7.5 || l.Max != 15 || total(l.Histogram) != 4 {
		t.Errorf("in all %+v; want a median of 7.5, a maximum of 15, and 4 in the histogram", l)
	}
	if s.messages != 1004 {
		t.Errorf("%d messages counted, want 1004", s.messages)
	}
}
