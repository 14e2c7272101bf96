package stats

import (
	"slices"
	"testing"
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
		in := slices.Clone(tt.in)
		if got := Median(in); got != tt.want {
			t.Errorf("Median(%v) = %v, want %v", tt.in, got, tt.want)
		}
		if !slices.Equal(in, tt.in) {
			t.Errorf("Median changed the order of %v to %v", tt.in, in)
		}
	}
}

func TestPercentileIsTheNearestRank(t *testing.T) {
	hundred, thousand := make([]int, 100), make([]int, 1000)
	for i := range thousand {
		thousand[i] = i + 1
	}
	copy(hundred, thousand)
	for _, c := range []struct {
		in   []int
		p    float64
		want int
	}{
		{hundred, 0.50, 50},
		{hundred, 0.99, 99},
		{hundred, 0.995, 100},
		{hundred, 1.00, 100},
		{hundred, 0.00, 1},
		{thousand, 0.999, 999},
		{[]int{3, 8}, 0.50, 3},
		{[]int{3, 8}, 0.51, 8},
		{[]int{1, 2, 3}, 0.50, 2},
		{[]int{1, 2, 3, 4}, 0.50, 2},
		{[]int{5}, 0.99, 5},
		{[]int{5}, 0, 5},
		{nil, 0.50, 0},
	} {
		if got := Percentile(c.in, c.p); got != c.want {
			t.Errorf("the percentile of %d elements at %v is %d, want %d", len(c.in), c.p, got, c.want)
		}
	}
}
