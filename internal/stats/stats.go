// Package stats has the statistics that weft perf and the benchmarks share.
package stats

import (
	"cmp"
	"math"
	"slices"
)

// Median returns the middle of values, which may be in any order and stay as they are, or
// the mean of the two in the middle. It is 0 for none.
func Median(values []float64) float64 {
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

// Percentile returns the smallest element of sorted that at least the share p, 0 to 1, of
// the elements do not exceed (the nearest rank). It is the zero value for none.
func Percentile[T cmp.Ordered](sorted []T, p float64) T {
	if len(sorted) == 0 {
		var zero T
		return zero
	}
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
