// The statistics: medians over rounds, ratios inside a round.

package main

import (
	"math"
	"slices"

	"github.com/weft-rdma/weft/internal/stats"
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
	return Summary{Median: stats.Median(v), Min: slices.Min(v), Max: slices.Max(v)}
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
