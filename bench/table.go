// The tables for people.

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// A section is one table: a metric, its headline and how its figures are shown.
type section struct {
	metric Metric
	title  string
	scale  float64 // the metric's unit to the table's
}

var sections = []section{
	{Bandwidth, "Bandwidth, one way, GB/s (10^9 octets): Weft posts lists, TCP writes each message", 1e-9},
	{MessageRate, "Messages a second, 64 B, one way, millions", 1e-6},
	{Latency, "Half round trip, 64 B, us: p50, and p99 beside it", 1e-3},
}

// writeTables writes one table a metric. Figures are the median over the
// rounds with (min..max); the ratio is taken inside each round.
func writeTables(out io.Writer, all []Result) error {
	for _, s := range sections {
		var rows []Result
		for _, r := range all {
			if r.Metric == s.metric {
				rows = append(rows, r)
			}
		}
		if len(rows) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(out, "\n%s\n", s.title); err != nil {
			return err
		}
		if err := s.write(out, rows); err != nil {
			return err
		}
	}
	return writeFailures(out, all)
}

// writeFailures says, once for each workload that failed, why.
func writeFailures(out io.Writer, all []Result) error {
	said := map[string]bool{}
	for _, r := range all {
		if r.Err == nil || said[r.Err.Error()] {
			continue
		}
		if len(said) == 0 {
			fmt.Fprintln(out, "\nFailed:")
		}
		said[r.Err.Error()] = true
		if _, err := fmt.Fprintf(out, "  %v\n", r.Err); err != nil {
			return err
		}
	}
	return nil
}

func (s section) write(out io.Writer, rows []Result) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "op\tsize\tCRC\tWeft\t\tTCP\t\tratio (%s is better)\tCPU ratio\tTCP to itself\t\n", rows[0].Metric.better())
	for _, r := range rows {
		crc := "off"
		if r.Weft.CRC {
			crc = "on"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t", r.Weft.Op, sizeName(r.Weft.Size), crc)
		if r.Err != nil {
			fmt.Fprintf(t, "failed\t%s\t-\t%s\t-\t-\t-\t\n", r.Weft.how(), r.TCP.how())
			continue
		}
		weft, tcp := s.figure(r.WeftFigure), s.figure(r.TCPFigure)
		if r.Metric == Latency {
			weft += fmt.Sprintf(" %.3g", r.WeftP99*s.scale)
			tcp += fmt.Sprintf(" %.3g", r.TCPP99*s.scale)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%.2f..%.2f\t\n",
			weft, r.Weft.how(), tcp, r.TCP.how(), ratioFigure(r.Ratio), cpuRatio(r), r.Noise.Min, r.Noise.Max)
	}
	return t.Flush()
}

// ratioFigure shows a ratio with as many digits as it deserves.
func ratioFigure(f Summary) string {
	if f.Median >= 10 {
		return fmt.Sprintf("%.0f (%.0f..%.0f)", f.Median, f.Min, f.Max)
	}
	return fmt.Sprintf("%.2f (%.2f..%.2f)", f.Median, f.Min, f.Max)
}

// cpuRatio is the processor time a message of Weft to that of TCP; a dash where
// the system does not tell.
func cpuRatio(r Result) string {
	if r.TCPCPU <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.2g", r.WeftCPU/r.TCPCPU)
}

func (s section) figure(f Summary) string {
	return fmt.Sprintf("%.3g (%.3g..%.3g)", f.Median*s.scale, f.Min*s.scale, f.Max*s.scale)
}
