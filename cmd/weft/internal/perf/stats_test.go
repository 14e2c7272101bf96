package perf

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMedianIsTheMiddleValue(t *testing.T) {
	for _, tt := range []struct {
		in   []float64
		want float64
	}{
		{nil, 0},
		{[]float64{3}, 3},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{1, 1000, 2, 3, 0}, 2},
	} {
		in := append([]float64(nil), tt.in...)
		if got := median(in); got != tt.want {
			t.Errorf("median(%v) = %v, want %v", tt.in, got, tt.want)
		}
		for i := range in {
			if in[i] != tt.in[i] {
				t.Errorf("median changed the order of %v to %v", tt.in, in)
			}
		}
	}
}

func TestPercentileIsTheNearestRank(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, tt := range []struct {
		in   []time.Duration
		p    float64
		want time.Duration
	}{
		{nil, 50, 0},
		{[]time.Duration{7}, 0, 7},
		{[]time.Duration{7}, 99, 7},
		{hundred, 50, 50},
		{hundred, 99, 99},
		{hundred, 99.5, 100},
		{hundred, 100, 100},
		{[]time.Duration{1, 2, 3}, 50, 2},
		{[]time.Duration{1, 2, 3, 4}, 50, 2},
	} {
		if got := percentile(tt.in, tt.p); got != tt.want {
			t.Errorf("percentile %v of %d values = %d, want %d", tt.p, len(tt.in), got, tt.want)
		}
	}
}

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
