// The statistics: medians over rounds, percentiles inside a sample, ratios
// inside a round.

package main

import (
	"cmp"
	"math"
	"slices"
)

// A Summary says where the samples of several rounds lie.
type Summary struct {
	Median, Min, Max float64
}

// summarize returns the Summary of v, which may be in any order and is left
// alone. Of nothing it is all NaN.
func summarize(v []float64) Summary {
	if len(v) == 0 {
		nan := math.NaN()
		return Summary{nan, nan, nan}
	}
	s := slices.Sorted(slices.Values(v))
	mid := len(s) / 2
	median := s[mid]
	if len(s)%2 == 0 {
		median = (s[mid-1] + s[mid]) / 2
	}
	return Summary{Median: median, Min: s[0], Max: s[len(s)-1]}
}

// spread is the width of the samples as a share of their median.
func (s Summary) spread() float64 {
	return (s.Max - s.Min) / s.Median
}

// ratios divides a by b round by round: a disturbance that lasts through a
// round hits both and cancels out.
func ratios(a, b []float64) []float64 {
	n := min(len(a), len(b))
	r := make([]float64, n)
	for i := range n {
		r[i] = a[i] / b[i]
	}
	return r
}

// percentile returns the smallest element of sorted that at least the share p
// (0 to 1) of the elements do not exceed (nearest rank). Of nothing it is the
// zero value.
func percentile[T cmp.Ordered](sorted []T, p float64) T {
	if len(sorted) == 0 {
		var zero T
		return zero
	}
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
