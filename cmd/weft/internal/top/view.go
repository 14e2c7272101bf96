// The screen, as text.

package top

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Render returns the screen for two samples, at most so many columns wide and lines high; 0
// is no limit.
func Render(name string, prev, cur *Sample, width, height int) string {
	lines := head(name, prev, cur)
	lines = append(lines, "", fmt.Sprintf("%-20s %10s %10s %10s %12s", "PROCEDURE", "CALLS/S", "P50", "P99", "CALLS"))
	calls := procedures(prev, cur)
	if height > 0 {
		calls = calls[:min(len(calls), max((height-len(lines)-3)/2, 1))]
	}
	for _, p := range calls {
		lines = append(lines, fmt.Sprintf("%-20s %10.1f %10s %10s %12.0f", p.name, p.rate, seconds(p.p50), seconds(p.p99), p.calls))
	}
	lines = append(lines, "", fmt.Sprintf("%-5s %-30s %10s %10s %8s %10s %8s", "NET", "PEER", "IN/S", "OUT/S", "CALLS/S", "AGE", "IDLE"))
	lines = append(lines, connections(prev, cur)...)
	return fit(lines, width, height)
}

func head(name string, prev, cur *Sample) []string {
	state := "serving"
	if !cur.Ready {
		state = "NOT READY"
	}
	per := func(of func(*Sample) float64) float64 { return rate(prev, cur, of) }
	return []string{
		fmt.Sprintf("weft %s at %s: %s   %s", cur.Version, name, state, cur.At.Format(time.TimeOnly)),
		fmt.Sprintf("connections %d   clients %.0f   calls now %.0f   credits %.0f   queue pairs %s   registered %s",
			len(cur.Connections), cur.clients, cur.calls, cur.credits, states(cur.queuePairs), octets(cur.registered)),
		fmt.Sprintf("RDMA in %s/s  out %s/s   FPDUs in %.0f/s  out %.0f/s",
			octets(per(func(s *Sample) float64 { return s.in })), octets(per(func(s *Sample) float64 { return s.out })),
			per(func(s *Sample) float64 { return s.fpdusIn }), per(func(s *Sample) float64 { return s.fpdusOut })),
		fmt.Sprintf("refused %.0f   evicted %.0f   Terminates %.0f   CRC errors %.0f   errors %s",
			cur.refused, cur.evicted, cur.terminates, cur.crc, errorsOf(cur.failures)),
	}
}

// states lists the states that queue pairs are in.
func states(all map[string]float64) string {
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(all)) {
		if n := all[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%.0f %s", n, state))
		}
	}
	return orNone(parts)
}

// errorsOf lists the statuses of calls, those with most calls first.
func errorsOf(all map[string]float64) string {
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		if all[a] != all[b] {
			return int(all[b] - all[a])
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, name := range names[:min(len(names), 4)] {
		parts = append(parts, fmt.Sprintf("%.0f %s", all[name], name))
	}
	return orNone(parts)
}

func orNone(parts []string) string {
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// connections has a line for each connection, those with most traffic in the interval first.
func connections(prev, cur *Sample) (lines []string) {
	before := make(map[string]Connection)
	for _, c := range prev.Connections {
		before[c.Transport+c.Peer] = c
	}
	type row struct {
		Connection
		in, out, calls float64
	}
	var rows []row
	dt := elapsed(prev, cur)
	for _, c := range cur.Connections {
		old, there := before[c.Transport+c.Peer]
		if !there || old.In > c.In || old.Out > c.Out || old.Served > c.Served {
			old = Connection{} // new since then
		}
		r := row{c, float64(c.In-old.In) / dt, float64(c.Out-old.Out) / dt, float64(c.Served-old.Served) / dt}
		if prev == cur {
			r.in, r.out, r.calls = 0, 0, 0
		}
		rows = append(rows, r)
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		if d := b.in + b.out - a.in - a.out; d != 0 {
			return int(d/max(d, -d)) * 1
		}
		return strings.Compare(a.Peer, b.Peer)
	})
	for _, r := range rows {
		lines = append(lines, fmt.Sprintf("%-5s %-30s %10s %10s %8.1f %10s %8s",
			r.Transport, r.Peer, octets(r.in), octets(r.out), r.calls, age(r.Age), age(r.Idle)))
	}
	return lines
}

// fit cuts lines to the screen, and keeps what must not be on a terminal off it.
func fit(lines []string, width, height int) string {
	if height > 0 && len(lines) > height {
		lines = append(lines[:height-1:height-1], fmt.Sprintf("and %d more lines", len(lines)-height+1))
	}
	for i, line := range lines {
		line = printable(line)
		if r := []rune(line); width > 0 && len(r) > width {
			line = string(r[:width])
		}
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// printable replaces what is no printable character: names come from another process.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// octets formats a number of octets.
func octets(n float64) string {
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if n < 1024 {
			return strings.TrimSuffix(strconv.FormatFloat(n, 'f', 1, 64), ".0") + " " + unit
		}
		n /= 1024
	}
	return strconv.FormatFloat(n, 'f', 1, 64) + " TiB"
}

// seconds formats a latency.
func seconds(s float64) string {
	switch d := time.Duration(s * float64(time.Second)); {
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", s)
	case d >= time.Millisecond:
		return fmt.Sprintf("%.2f ms", s*1e3)
	}
	return fmt.Sprintf("%.0f µs", s*1e6)
}

// age formats a time since.
func age(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}
