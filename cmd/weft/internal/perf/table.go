package perf

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// columns of the table: title, width, and the cell of a result.
var columns = []struct {
	title string
	width int // negative: flush left
	cell  func(*Result) string
}{
	{"OPERATION", -9, func(r *Result) string { return string(r.Op) }},
	{"SIZE", 7, func(r *Result) string { return SizeString(r.Size) }},
	{"CRC", 4, func(r *Result) string { return onOff(r.CRC) }},
	{"GB/s", 8, func(r *Result) string { return gigabytes(r.BytesPerSecond) }},
	{"MSG/s", 8, func(r *Result) string { return rate(r.MessagesPerSecond) }},
	{"P50", 8, func(r *Result) string { return duration(r.LatencyP50) }},
	{"P99", 8, func(r *Result) string { return duration(r.LatencyP99) }},
	{"TCP GB/s", 10, func(r *Result) string { return gigabytes(r.TCPBytesPerSecond) }},
	{"MSG/s", 8, func(r *Result) string { return rate(r.TCPMessagesPerSecond) }},
	{"P50", 8, func(r *Result) string { return duration(r.TCPLatencyP50) }},
	{"P99", 8, func(r *Result) string { return duration(r.TCPLatencyP99) }},
	{"RATIO", 7, func(r *Result) string { return significant(r.Ratio) }},
}

// WriteTable writes the report for people.
func (rep *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	s := &rep.System
	fmt.Fprintf(&b, "%s, %s/%s, %d CPUs", s.Go, s.OS, s.Arch, s.CPUs)
	if s.Congestion != "" {
		fmt.Fprintf(&b, ", congestion control %s", s.Congestion)
	}
	fmt.Fprintf(&b, ", median of %d rounds\n\n", rep.Settings.Rounds)
	row := func(cell func(i int) string) {
		var line strings.Builder
		for i, c := range columns {
			if i > 0 {
				line.WriteByte(' ')
			}
			fmt.Fprintf(&line, "%*s", c.width, cell(i))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	row(func(i int) string { return columns[i].title })
	for k := range rep.Results {
		r := &rep.Results[k]
		if k > 0 && r.Op != rep.Results[k-1].Op {
			b.WriteByte('\n')
		}
		row(func(i int) string { return columns[i].cell(r) })
	}
	b.WriteString(`
GB/s are 10^9 octets of payload a second; RATIO is theirs, RDMA to plain TCP.
P50 and P99 are half round trips of write, send and immediate, and whole round
trips of read, fetchadd and cmpswap. Every operation's data was compared at the
receiving end.
`)
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
