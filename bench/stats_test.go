package main

import (
	"math"
	"testing"
)

func TestSummaryIsMedianAndExtremes(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []float64
		want Summary
	}{
		{"one", []float64{7}, Summary{7, 7, 7}},
		{"odd", []float64{9, 1, 5}, Summary{5, 1, 9}},
		{"even takes the middle of the middle two", []float64{4, 1, 10, 2}, Summary{3, 1, 10}},
		{"an outlier moves only the extreme", []float64{1, 1, 1, 1000, 1}, Summary{1, 1, 1000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := summarize(c.in); got != c.want {
				t.Errorf("summarize(%v) = %v, want %v", c.in, got, c.want)
			}
		})
	}
}

func TestSummaryOfNothingIsNotANumber(t *testing.T) {
	if got := summarize(nil); !math.IsNaN(got.Median) || !math.IsNaN(got.Min) || !math.IsNaN(got.Max) {
		t.Errorf("summarize(nil) = %v, want NaN throughout", got)
	}
}

func TestSummaryLeavesItsInputInOrder(t *testing.T) {
	in := []float64{3, 1, 2}
	summarize(in)
	if in[0] != 3 || in[1] != 1 || in[2] != 2 {
		t.Errorf("the input became %v", in)
	}
}

func TestSpreadIsAShareOfTheMedian(t *testing.T) {
	if got := (Summary{Median: 10, Min: 9, Max: 14}).spread(); got != 0.5 {
		t.Errorf("spread = %v, want 0.5", got)
	}
}

func TestRatiosAreTakenInsideARound(t *testing.T) {
	// The machine is half as fast in round 2: the ratio does not notice.
	got := ratios([]float64{8, 4, 8}, []float64{10, 5, 10})
	if s := summarize(got); s.Min != 0.8 || s.Max != 0.8 {
		t.Errorf("ratios = %v, want 0.8 in every round", got)
	}
}

func TestRatiosStopAtTheShorterSeries(t *testing.T) {
	if got := ratios([]float64{1, 2, 3}, []float64{1}); len(got) != 1 {
		t.Errorf("%d ratios, want 1", len(got))
	}
}
