// This file draws the report as SVG.

package perf

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/weft-rdma/weft/internal/chart"
	"github.com/weft-rdma/weft/internal/stats"
)

// opStyles: RDMA is bold, in a color and with a mark for each operation; dashes are for no CRC.
var opStyles = map[Op]chart.Style{
	Write:     chart.Weft,
	Read:      {Color: chart.Orange, Width: chart.Bold, Mark: chart.Triangle},
	Send:      {Color: chart.Green, Width: chart.Bold, Mark: chart.Diamond},
	Immediate: {Color: chart.Sky, Width: chart.Bold, Mark: chart.Plus},
	FetchAdd:  {Color: chart.Pink, Width: chart.Bold, Mark: chart.Cross},
	CmpSwap:   {Color: chart.Amber, Width: chart.Bold, Mark: chart.None},
}

// plainTCP is the name of its lines.
const plainTCP = "plain TCP"

func styleOf(op Op, crc bool) chart.Style {
	if crc {
		return opStyles[op]
	}
	return opStyles[op].With(chart.Dashed)
}

// WritePlot writes the report as a picture in SVG, panels above each other: bandwidth, its
// ratio to plain TCP, and message rate against message size; the latency of the smallest
// messages by percentile; and bandwidth over time, of the largest messages. There is a line
// an operation, dashed without CRC, and plain TCP beside them. Operations of one size are in
// the latency only.
func (rep *Report) WritePlot(w io.Writer) error {
	var charts []chart.Chart
	how := rep.Settings.words()
	bySize := func(title string, value func(*Result) (rdma, tcp float64)) {
		if lines := rep.bySize(value); len(lines) > 0 {
			charts = append(charts, chart.Chart{Title: title, X: "message size" + how, Ticks: sizeTicks(lines), Lines: lines})
		}
	}
	bySize("Bandwidth of RDMA and plain TCP: GB/s, higher is better", func(r *Result) (rdma, tcp float64) {
		return r.BytesPerSecond / 1e9, r.TCPBytesPerSecond / 1e9
	})
	bySize("Bandwidth as a ratio to plain TCP, higher is better", func(r *Result) (rdma, tcp float64) { return r.Ratio, 1 })
	bySize("Message rate: messages/s, higher is better", func(r *Result) (rdma, tcp float64) {
		return r.MessagesPerSecond, r.TCPMessagesPerSecond
	})
	if lines := rep.percentiles(); len(lines) > 0 {
		charts = append(charts, chart.Chart{
			Title: "Half, or whole, round trip of the smallest messages: us, lower is better", X: "percentile" + how, Ticks: percentileTicks(lines), Lines: lines,
			Height: 560,
		})
	}
	if lines := rep.overTime(); len(lines) > 0 {
		charts = append(charts, chart.Chart{
			Title: "Bandwidth over time: GB/s, higher is better", X: "seconds since the beginning" + how, LinX: true, LinY: true, Lines: lines,
		})
	}
	return chart.SVG(w, charts...)
}

// words says how much was under way, for who has the picture alone.
func (s *Settings) words() string {
	if s.Connections == 0 {
		return ""
	}
	shared := ""
	if s.Consumers > 0 {
		shared = fmt.Sprintf(", consumers at each end: %d", s.Consumers)
	}
	return fmt.Sprintf("   (connections: %d%s, queue depth: %d)", s.Connections, shared, s.Depth)
}

// bySize are lines of a value against the message size, of operations that have several. A
// logarithm has no place for a value of 0.
func (rep *Report) bySize(value func(*Result) (rdma, tcp float64)) []chart.Line {
	var lines []chart.Line
	plain := make(map[int][]float64) // by size
	for _, op := range Ops {
		for _, crc := range []bool{true, false} {
			l := chart.Line{Name: fmt.Sprintf("%s, CRC %s", op, onOff(crc)), Style: styleOf(op, crc)}
			for k := range rep.Results {
				r := &rep.Results[k]
				rdma, tcp := value(r)
				if r.Op != op || r.CRC != crc || op.word() || rdma <= 0 {
					continue
				}
				l.Points = append(l.Points, chart.Point{X: float64(r.Size), Y: rdma})
				if tcp > 0 {
					plain[r.Size] = append(plain[r.Size], tcp)
				}
			}
			if len(l.Points) > 0 {
				lines = append(lines, sorted(l))
			}
		}
	}
	if len(plain) == 0 {
		return lines
	}
	tcp := chart.Line{Name: plainTCP, Style: chart.PlainTCP}
	for size, values := range plain {
		tcp.Points = append(tcp.Points, chart.Point{X: float64(size), Y: stats.Median(values)})
	}
	return append(lines, sorted(tcp))
}

func sorted(l chart.Line) chart.Line {
	slices.SortFunc(l.Points, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) })
	return l
}

// sizeTicks marks the sizes that were measured.
func sizeTicks(lines []chart.Line) []chart.Tick {
	var ticks []chart.Tick
	for _, l := range lines {
		for _, p := range l.Points {
			if !slices.ContainsFunc(ticks, func(t chart.Tick) bool { return t.At == p.X }) {
				ticks = append(ticks, chart.Tick{At: p.X, Label: SizeString(int(p.X))})
			}
		}
	}
	return ticks
}

// overTime are the rounds of the largest messages of each operation, if there are many.
func (rep *Report) overTime() []chart.Line {
	const leastRounds = 10
	var lines []chart.Line
	add := func(name string, style chart.Style, moments []Moment) {
		if len(moments) < leastRounds {
			return
		}
		style.Mark, style.Width = chart.None, chart.Strong
		l := chart.Line{Name: name, Style: style}
		for _, m := range moments {
			l.Points = append(l.Points, chart.Point{X: m.Seconds, Y: m.BytesPerSecond / 1e9})
		}
		lines = append(lines, l)
	}
	largest := 0
	for k := range rep.Results {
		largest = max(largest, rep.Results[k].Size)
	}
	tcp := false
	for k := range rep.Results {
		r := &rep.Results[k]
		if r.Size != largest {
			continue
		}
		add(fmt.Sprintf("%s %s, CRC %s", r.Op, SizeString(r.Size), onOff(r.CRC)), styleOf(r.Op, r.CRC), r.OverTime)
		if !tcp {
			add(plainTCP, chart.PlainTCP, r.TCPOverTime)
			tcp = true
		}
	}
	return lines
}

// percentiles are latencies in us by percentile, of the smallest messages of each operation.
func (rep *Report) percentiles() []chart.Line {
	var lines, plain []chart.Line
	done := make(map[string]bool)
	add := func(list *[]chart.Line, l chart.Line, h []Bucket) {
		l.Points = quantiles(h)
		l.Style.Mark = chart.None
		if !done[l.Name] && len(l.Points) > 0 {
			*list = append(*list, l)
			done[l.Name] = true
		}
	}
	for k := range rep.Results {
		r := &rep.Results[k]
		if slices.ContainsFunc(rep.Results, func(o Result) bool { return o.Op == r.Op && o.Size < r.Size }) {
			continue
		}
		trip := ""
		if r.Op.tripParts() == 1 {
			trip = ", whole"
		}
		name := fmt.Sprintf("%s %s, CRC %s%s", r.Op, SizeString(r.Size), onOff(r.CRC), trip)
		add(&lines, chart.Line{Name: name, Style: styleOf(r.Op, r.CRC)}, r.Latency.Histogram)
		tcp := chart.Line{Name: fmt.Sprintf("%s %s%s", plainTCP, SizeString(r.Size), trip), Style: chart.PlainTCP}
		if r.Op.tripParts() == 1 {
			tcp.Style.Dashes = chart.Dashed
		}
		if r.Size == wordSize {
			tcp.Style.Color = chart.Gray
		}
		add(&plain, tcp, r.TCPLatency.Histogram)
	}
	return append(lines, plain...)
}

// quantiles are the points of a histogram's curve: 1/(1-p) for a part p of all
// that took no longer, in us. So each nine of a percentile takes as much room
// as the one before it; all of them would be infinitely far, and stand where
// all but one would.
func quantiles(h []Bucket) []chart.Point {
	all, sofar := total(h), 0
	var points []chart.Point
	for _, b := range h {
		if sofar == 0 {
			points = append(points, chart.Point{X: 1, Y: max(float64(b.From), 1) / 1e3})
		}
		sofar += b.Count
		points = append(points, chart.Point{X: float64(all) / float64(max(all-sofar, 1)), Y: float64(b.To) / 1e3})
	}
	return points
}

// percentileTicks marks what people ask for, as far as lines go, by its place in [quantiles].
func percentileTicks(lines []chart.Line) []chart.Tick {
	ticks := []chart.Tick{
		{At: 1, Label: "0"}, {At: 2, Label: "50"}, {At: 10, Label: "90"}, {At: 100, Label: "99"},
		{At: 1e3, Label: "99.9"}, {At: 1e4, Label: "99.99"}, {At: 1e5, Label: "99.999"},
	}
	var most float64
	for _, l := range lines {
		most = max(most, l.Points[len(l.Points)-1].X)
	}
	return slices.DeleteFunc(ticks, func(t chart.Tick) bool { return t.At > most })
}
