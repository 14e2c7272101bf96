// This file writes the report as tables.

package perf

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A column of a table: title, width, and the cell of a result.
type column struct {
	title string
	width int // negative: flush left
	cell  func(*Result) string
}

// Columns of both tables: what was measured.
var columns = []column{
	{"OPERATION", -9, func(r *Result) string { return string(r.Op) }},
	{"SIZE", 7, func(r *Result) string { return SizeString(r.Size) }},
	{"CRC", 4, func(r *Result) string { return onOff(r.CRC) }},
}

var rateColumns = slices.Concat(columns, []column{
	{"GB/s", 8, func(r *Result) string { return gigabytes(r.BytesPerSecond) }},
	{"MSG/s", 8, func(r *Result) string { return rate(r.MessagesPerSecond) }},
	{"TCP GB/s", 10, func(r *Result) string { return gigabytes(r.TCPBytesPerSecond) }},
	{"MSG/s", 8, func(r *Result) string { return rate(r.TCPMessagesPerSecond) }},
	{"RATIO", 7, func(r *Result) string { return significant(r.Ratio) }},
})

var latencyColumns = slices.Concat(columns, []column{
	{"P50", 8, func(r *Result) string { return duration(r.Latency.P50) }},
	{"P90", 8, func(r *Result) string { return duration(r.Latency.P90) }},
	{"P99", 8, func(r *Result) string { return duration(r.Latency.P99) }},
	{"P99.9", 8, func(r *Result) string { return duration(r.Latency.P999) }},
	{"MAX", 8, func(r *Result) string { return duration(r.Latency.Max) }},
	{"TCP P50", 9, func(r *Result) string { return duration(r.TCPLatency.P50) }},
	{"P90", 8, func(r *Result) string { return duration(r.TCPLatency.P90) }},
	{"P99", 8, func(r *Result) string { return duration(r.TCPLatency.P99) }},
	{"P99.9", 8, func(r *Result) string { return duration(r.TCPLatency.P999) }},
	{"MAX", 8, func(r *Result) string { return duration(r.TCPLatency.Max) }},
})

// WriteTable writes the report for people: bandwidth and message rate, then
// latency.
func (rep *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	s := &rep.System
	fmt.Fprintf(&b, "%s, %s/%s, %d CPUs", s.Go, s.OS, s.Arch, s.CPUs)
	if s.Congestion != "" {
		fmt.Fprintf(&b, ", congestion control %s", s.Congestion)
	}
	if n := rep.Settings.Connections; n > 1 {
		fmt.Fprintf(&b, ", %d connections", n)
	}
	switch n := rep.Settings.Consumers; n {
	case 0:
	case 1:
		b.WriteString(", 1 consumer")
	default:
		fmt.Fprintf(&b, ", %d consumers", n)
	}
	fmt.Fprintf(&b, ", median of %d rounds\n\n", rep.Settings.Rounds)
	rep.rows(&b, rateColumns)
	b.WriteString(`
GB/s: 10^9 bytes of payload a second. RATIO: GB/s of RDMA to GB/s of plain TCP.
The receiving end has verified the data of every operation.

`)
	rep.rows(&b, latencyColumns)
	b.WriteString(`
Latency: half a round trip of write, send and immediate, a whole round trip of
read, fetchadd and cmpswap. MAX: the longest of all rounds.
`)
	_, err := io.WriteString(w, b.String())
	return err
}

// rows writes a table with a line a result, and space between operations.
func (rep *Report) rows(b *strings.Builder, columns []column) {
	row := func(cell func(c *column) string) {
		var line strings.Builder
		for i := range columns {
			if i > 0 {
				line.WriteByte(' ')
			}
			fmt.Fprintf(&line, "%*s", columns[i].width, cell(&columns[i]))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	row(func(c *column) string { return c.title })
	for k := range rep.Results {
		r := &rep.Results[k]
		if k > 0 && r.Op != rep.Results[k-1].Op {
			b.WriteByte('\n')
		}
		row(func(c *column) string { return c.cell(r) })
	}
}

// WriteHistograms writes how latencies are distributed: for each result RDMA
// and plain TCP beside each other, shares of all messages as bars.
func (rep *Report) WriteHistograms(w io.Writer) error {
	var b strings.Builder
	for k := range rep.Results {
		r := &rep.Results[k]
		fmt.Fprintf(&b, "\n%s of %s, CRC %s: %ss, %d of RDMA and %d of plain TCP\n",
			r.Op, SizeString(r.Size), onOff(r.CRC), r.LatencyIs, total(r.Latency.Histogram), total(r.TCPLatency.Histogram))
		drawHistograms(&b, r.Latency.Histogram, r.TCPLatency.Histogram, time.Duration(max(r.Latency.P99, r.TCPLatency.P99)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// significant is x with three significant digits and no exponent.
func significant(x float64) string {
	decimals := 0
	for limit := 100.0; x < limit && decimals < 4; limit /= 10 {
		decimals++
	}
	return strconv.FormatFloat(x, 'f', decimals, 64)
}

func gigabytes(bytesPerSecond float64) string { return significant(bytesPerSecond / 1e9) }

func rate(x float64) string {
	switch {
	case x >= 1e6:
		return significant(x/1e6) + " M"
	case x >= 1e3:
		return significant(x/1e3) + " k"
	}
	return significant(x)
}

func duration(ns float64) string {
	switch {
	case ns >= 1e9:
		return significant(ns/1e9) + " s"
	case ns >= 1e6:
		return significant(ns/1e6) + " ms"
	}
	return significant(ns/1e3) + " us"
}
