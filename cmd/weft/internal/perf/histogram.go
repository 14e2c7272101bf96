// This file counts latencies and draws their histogram.

package perf

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// A histogram counts durations in buckets whose bounds are spaced by the
// logarithm: perOctave to each doubling, so that none is wider than an eighth
// of what it holds. Below perOctave nanoseconds each has a bucket of its own.
type histogram [histogramLen]int

const (
	perOctave = 1 << octaveBits
	// A power of 2 in ns, some 18 minutes, beyond which all count as the same:
	// no run takes as long.
	longestBits  = 40
	octaveBits   = 3
	histogramLen = (longestBits - octaveBits + 1) * perOctave
)

// bucketOf is the index of the bucket of d.
func bucketOf(d time.Duration) int {
	n := min(uint64(max(d, 0)), 1<<longestBits-1)
	shift := max(bits.Len64(n)-1-octaveBits, 0) // leaves perOctave to 2*perOctave-1
	return shift*perOctave + int(n>>shift)
}

// lowerBound is the least duration of bucket i, and the upper bound of the one
// before it.
func lowerBound(i int) time.Duration {
	shift := max(i/perOctave-1, 0)
	return time.Duration(i-shift*perOctave) << shift
}

func (h *histogram) add(d time.Duration) { h[bucketOf(d)]++ }

// A Bucket is a part of a histogram: durations of at least From and below To,
// in ns.
type Bucket struct {
	From  time.Duration `json:"from_ns"`
	To    time.Duration `json:"to_ns"`
	Count int           `json:"count"`
}

// buckets are those that are not empty, in order.
func (h *histogram) buckets() []Bucket {
	list := []Bucket{}
	for i, n := range h {
		if n > 0 {
			list = append(list, Bucket{lowerBound(i), lowerBound(i + 1), n})
		}
	}
	return list
}

// Bounds of a histogram on a terminal, in rows and in characters of a bar.
const (
	maxBars = 20
	barLen  = 24
)

// drawHistograms writes the two histograms beside each other, as bars of one
// scale: shares of all. What is longer than most is in the last row.
func drawHistograms(b *strings.Builder, rdma, tcp []Bucket, most time.Duration) {
	rows := newBars(rdma, tcp, most)
	sums := [2]int{total(rdma), total(tcp)}
	scale := 0.0
	for _, r := range rows {
		scale = max(scale, share(r.counts[0], sums[0]), share(r.counts[1], sums[1]))
	}
	fmt.Fprintf(b, "%8s %9s  %-*s  %s\n", "FROM", "TO", barLen+8, "RDMA", "TCP")
	for _, r := range rows {
		to := "more"
		if r.to > 0 {
			to = duration(float64(r.to))
		}
		line := fmt.Sprintf("%8s %9s", duration(float64(r.from)), to)
		for i, n := range r.counts {
			part := share(n, sums[i])
			bar := strings.Repeat("#", int(part/max(scale, 1e-9)*barLen+0.5))
			line += fmt.Sprintf("  %-*s %5.1f %%", barLen, bar, part*100)
		}
		b.WriteString(line + "\n")
	}
}

// A bar is one row: counts of RDMA and of TCP.
type bar struct {
	from, to time.Duration // to is 0 in the last row, which has all that is longer
	counts   [2]int
}

// newBars merges buckets into at most maxBars rows that reach to most, and one
// for all beyond, if there are any.
func newBars(rdma, tcp []Bucket, most time.Duration) []bar {
	first, last := histogramLen, bucketOf(most)
	for _, list := range [][]Bucket{rdma, tcp} {
		if len(list) > 0 {
			first = min(first, bucketOf(list[0].From))
		}
	}
	if first > last {
		return nil
	}
	width := 1 // buckets a row
	for last/width-first/width >= maxBars {
		width *= 2
	}
	rows := make([]bar, last/width-first/width+1)
	for i := range rows {
		at := first/width + i
		rows[i].from, rows[i].to = lowerBound(at*width), lowerBound((at+1)*width)
	}
	rest := bar{from: rows[len(rows)-1].to}
	for which, list := range [][]Bucket{rdma, tcp} {
		for _, b := range list {
			if row := bucketOf(b.From)/width - first/width; row < len(rows) {
				rows[row].counts[which] += b.Count
			} else {
				rest.counts[which] += b.Count
			}
		}
	}
	if rest.counts != [2]int{} {
		rows = append(rows, rest)
	}
	return rows
}

func total(list []Bucket) (n int) {
	for _, b := range list {
		n += b.Count
	}
	return n
}

// share is n's part of sum, 0 to 1.
func share(n, sum int) float64 { return float64(n) / float64(max(sum, 1)) }
