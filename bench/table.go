// The tables for people, for a terminal and for a page.

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A table is headed columns of text.
type table struct {
	title string
	head  []string
	rows  [][]string
}

// plain writes t for a terminal.
func (t table) plain(out io.Writer) error {
	fmt.Fprintf(out, "\n%s\n", t.title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.head}, t.rows...) {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// markdown writes t for a page.
func (t table) markdown(out io.Writer) error {
	fmt.Fprintf(out, "\n### %s\n\n", t.title)
	line := func(cells []string) { fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.head)
	rule := make([]string, len(t.head))
	for i := range rule {
		rule[i] = "---"
	}
	line(rule)
	for _, row := range t.rows {
		line(row)
	}
	return nil
}

// tables makes all of d's.
func (d Document) tables() []table {
	var all []table
	if len(d.Goals) > 0 {
		all = append(all, d.goalTable())
	}
	type key struct {
		metric    Metric
		placement string
	}
	at := map[key]int{}
	for _, r := range d.Results {
		k := key{r.Metric, r.Placement}
		if r.Metric == Bandwidth || r.Metric == MessageRate {
			k.placement = "" // one table, also for several connections
		}
		i, ok := at[k]
		if !ok {
			i = len(all)
			at[k] = i
			all = append(all, table{title: title(r), head: head(r.Metric)})
		}
		all[i].rows = append(all[i].rows, r.cells())
	}
	return all
}

func title(r Row) string {
	switch r.Metric {
	case Bandwidth:
		return "Bandwidth, one way, GB/s (10^9 octets)"
	case MessageRate:
		return "Messages a second, one way, millions"
	case HalfTrip:
		return "Half round trip, us, " + r.Placement
	case RoundTrip:
		return "Full round trip, us, " + r.Placement
	}
	if r.Metric == FileBandwidth {
		return "Files over NFS, GB/s (10^9 octets): blocks in turn, writes on stable storage"
	}
	if r.Metric == ConnectRate {
		return "Connections made and ended a second, thousands, one after the other"
	}
	if r.Metric == RegionTime {
		return "Memory registered and deallocated, us, one after the other"
	}
	if r.Metric == FileRate {
		return "Files over NFS, thousands of operations a second, anywhere in the file"
	}
	return "Memory of an idle connection at an end, KiB"
}

func head(m Metric) []string {
	h := []string{"peer", "work", "size", "CRC", "placement", "median (min..max)", "ratio to raw TCP"}
	switch {
	case m.files():
		h[6] = "ratio to go-nfs"
	case m == RegionTime:
		h[6] = "ratio to an insert"
		return h
	case m.latency():
		return append(h, "p90", "p99", "p99.9")
	case m == Memory:
		return h[:6]
	}
	return append(h, "CPU ns a message")
}

// scale takes the metric's unit to the tables'.
func (m Metric) scale() float64 {
	switch m {
	case Bandwidth:
		return 1e-9
	case MessageRate:
		return 1e-6
	case FileBandwidth:
		return 1e-9
	case Memory:
		return 1. / 1024
	}
	return 1e-3
}

func (r Row) cells() []string {
	cells := []string{string(r.Peer), r.Work, "", onOff(r.CRC), r.Placement}
	if r.Size > 0 {
		cells[2] = sizeName(r.Size)
	}
	if !r.Peer.hasCRC() || r.Metric == RegionTime {
		cells[3] = "-"
	}
	if r.Error != "" {
		return append(cells, "failed")
	}
	scale := r.Metric.scale()
	cells = append(cells, figure(r.Median, r.Min, r.Max, scale), "-")
	if r.RatioTo != "" {
		cells[6] = ratioFigure(r.Ratio, r.RatioMin, r.RatioMax)
	}
	if r.NoiseMax > 0 {
		cells[6] = fmt.Sprintf("1, to itself %.2f..%.2f", r.NoiseMin, r.NoiseMax)
	}
	switch {
	case r.Metric.latency():
		for _, p := range []float64{r.P90, r.P99, r.P999} {
			cells = append(cells, known(p, fmt.Sprintf("%.3g", p*scale)))
		}
	case r.Metric == Memory:
		cells = cells[:6]
	case r.Metric == RegionTime:
	default:
		cells = append(cells, fmt.Sprintf("%.0f", r.CPU))
	}
	return cells
}

// known is text for a figure that was measured.
func known(figure float64, text string) string {
	if figure == 0 {
		return "-"
	}
	return text
}

// goalTable compares the targets with what was measured.
func (d Document) goalTable() table {
	t := table{
		title: "Performance targets: ratios inside each round",
		head:  []string{"peer", "work", "size", "CRC", "placement", "against", "median (min..max)", "target", "aim", ""},
	}
	for _, m := range d.Goals {
		size := ""
		if m.Size > 0 {
			size = sizeName(m.Size)
		}
		work := m.Work
		if m.Metric == CPUTime || m.Metric == LongestWait {
			work += ": " + string(m.Metric)
		}
		row := []string{string(m.Peer), work, size, onOff(m.CRC), m.Placement, orDash(m.Against)}
		bound := map[string]string{"higher": ">= ", "lower": "<= "}[m.Better]
		if m.Unit != Memory.unit() {
			row = append(row, ratioFigure(m.Median, m.Min, m.Max), fmt.Sprintf("%s%g", bound, m.Goal), aim(m.Aim, bound, "%g"))
		} else {
			row = append(row, figure(m.Median, m.Min, m.Max, Memory.scale())+" KiB",
				fmt.Sprintf("%s%g KiB", bound, m.Goal/1024), aim(m.Aim/1024, bound, "%g KiB"))
		}
		t.rows = append(t.rows, append(row, m.verdict()))
	}
	return t
}

func aim(a float64, bound, format string) string {
	if a == 0 {
		return "-"
	}
	return bound + fmt.Sprintf(format, a)
}

// verdict says whether the median meets the target and the aim, by how much it misses
// the target, and whether single rounds differ.
func (m Mark) verdict() string {
	best, worst := m.Max >= m.Goal, m.Min < m.Goal
	if m.Better == "lower" {
		best, worst = m.Min <= m.Goal, m.Max > m.Goal
	}
	text := map[Verdict]string{AimReached: "aim met", Reached: "met"}[m.Verdict]
	if m.Verdict == Missed {
		text = fmt.Sprintf("missed by %.0f %%", max(1, m.Short*100))
	}
	if m.Verdict == Missed && best || m.Verdict != Missed && worst {
		text += " (median)"
	}
	return text
}

func onOff(crc bool) string {
	if crc {
		return "on"
	}
	return "off"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// ratioFigure shows a ratio with as many digits as it deserves.
func ratioFigure(median, least, most float64) string {
	if median >= 10 {
		return fmt.Sprintf("%.0f (%.0f..%.0f)", median, least, most)
	}
	return fmt.Sprintf("%.2f (%.2f..%.2f)", median, least, most)
}

func figure(median, least, most, scale float64) string {
	return fmt.Sprintf("%.3g (%.3g..%.3g)", median*scale, least*scale, most*scale)
}
