// This file draws the report as SVG.

package perf

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/weft-rdma/weft/internal/stats"
)

// A curve is one line of a panel.
type curve struct {
	name   string
	color  color.Color
	dashed bool
	points plotter.XYs
	marked bool // with a dot at each point: that is what was measured
}

// Colors that color-blind people can distinguish, too.
var opColors = map[Op]color.Color{
	Write:     color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
	Read:      color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	Send:      color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
	Immediate: color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff},
	FetchAdd:  color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	CmpSwap:   color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff},
}

// Those of plain TCP: half round trips and streams, and whole round trips.
var (
	tcpColor      = color.Gray{Y: 0x60}
	tcpRoundColor = color.Gray{Y: 0xa0}
)

// Size of a panel.
const (
	panelWidth  = 22 * vg.Centimeter
	panelHeight = 14 * vg.Centimeter
)

// WritePlot writes the report as a picture in SVG, panels above each other:
// bandwidth and message rate against message size, and the latency of the
// smallest messages by percentile. There is a line an operation, dashed without
// CRC, and plain TCP beside them. Operations of one size are in the last only.
func (rep *Report) WritePlot(w io.Writer) error {
	panels := rep.panels()
	if len(panels) == 0 {
		return errors.New("no results to plot")
	}
	image := vgsvg.New(panelWidth, panelHeight*vg.Length(len(panels)))
	tiles := draw.Tiles{Rows: len(panels), Cols: 1, PadTop: vg.Points(6), PadBottom: vg.Points(6), PadRight: vg.Points(12), PadY: vg.Points(12)}
	for i, p := range panels {
		p.Draw(tiles.At(draw.New(image), 0, i))
	}
	_, err := image.WriteTo(w)
	return err
}

// panels are those that there are figures for, from top to bottom.
func (rep *Report) panels() []*plot.Plot {
	var panels []*plot.Plot
	if curves := rep.bandwidths(); len(curves) > 0 {
		panels = append(panels, newPanel("Bandwidth", "message size", "GB/s", sizeTicks(curves), curves))
		curves = rep.rates()
		falling := newPanel("Message rate", "message size", "messages/s", sizeTicks(curves), curves)
		falling.Legend.Top = false
		panels = append(panels, falling)
	}
	if curves := rep.percentiles(); len(curves) > 0 {
		panels = append(panels, newPanel("Latency of the smallest messages", "percentile", "us", percentileTicks, curves))
		panels[len(panels)-1].Y.Max *= 8 // room for the names
	}
	if len(panels) > 0 {
		panels[0].Title.Text = panels[0].Title.Text + ": RDMA by Weft beside plain TCP"
	}
	return panels
}

// newPanel is a panel whose axes are logarithmic.
func newPanel(title, x, y string, ticks plot.Ticker, curves []curve) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding = vg.Points(2)
	p.Legend.TextStyle.Font.Size = vg.Points(10)
	for _, size := range []*font.Length{&p.Title.TextStyle.Font.Size, &p.X.Label.TextStyle.Font.Size, &p.Y.Label.TextStyle.Font.Size} {
		*size = vg.Points(14)
	}
	p.Add(plotter.NewGrid())
	for _, c := range curves {
		line := &plotter.Line{XYs: c.points, LineStyle: plotter.DefaultLineStyle}
		line.Color, line.Width = c.color, vg.Points(2)
		if c.dashed {
			line.Dashes = []vg.Length{vg.Points(6), vg.Points(3)}
		}
		key := []plot.Thumbnailer{line}
		p.Add(line)
		if c.marked {
			dots := &plotter.Scatter{XYs: c.points, GlyphStyle: plotter.DefaultGlyphStyle}
			dots.Color, dots.Shape = c.color, draw.CircleGlyph{}
			if c.dashed {
				dots.Shape = draw.RingGlyph{}
			}
			p.Add(dots)
			key = append(key, dots)
		}
		p.Legend.Add(c.name, key...)
	}
	return p
}

// bandwidths are GB/s against bytes a message.
func (rep *Report) bandwidths() []curve {
	return rep.bySize(func(r *Result) (rdma, tcp float64) { return r.BytesPerSecond / 1e9, r.TCPBytesPerSecond / 1e9 })
}

// rates are messages a second against bytes a message.
func (rep *Report) rates() []curve {
	return rep.bySize(func(r *Result) (rdma, tcp float64) { return r.MessagesPerSecond, r.TCPMessagesPerSecond })
}

// bySize are curves of a value against the message size, of operations that
// have several. A logarithm has no place for a value of 0.
func (rep *Report) bySize(value func(*Result) (rdma, tcp float64)) []curve {
	var curves []curve
	plain := make(map[int][]float64) // by size
	for _, op := range Ops {
		for _, crc := range []bool{true, false} {
			c := curve{name: fmt.Sprintf("%s, CRC %s", op, onOff(crc)), color: opColors[op], dashed: !crc, marked: true}
			for k := range rep.Results {
				r := &rep.Results[k]
				rdma, tcp := value(r)
				if r.Op != op || r.CRC != crc || op.word() || rdma <= 0 {
					continue
				}
				c.points = append(c.points, plotter.XY{X: float64(r.Size), Y: rdma})
				if tcp > 0 {
					plain[r.Size] = append(plain[r.Size], tcp)
				}
			}
			if len(c.points) > 0 {
				curves = append(curves, c)
			}
		}
	}
	if len(plain) == 0 {
		return curves
	}
	tcp := curve{name: "plain TCP", color: tcpColor, marked: true}
	for size, values := range plain {
		tcp.points = append(tcp.points, plotter.XY{X: float64(size), Y: stats.Median(values)})
	}
	slices.SortFunc(tcp.points, func(a, b plotter.XY) int { return int(a.X) - int(b.X) })
	return append(curves, tcp)
}

// sizeTicks marks the sizes that were measured.
func sizeTicks(curves []curve) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, c := range curves {
		for _, p := range c.points {
			if !slices.ContainsFunc(ticks, func(t plot.Tick) bool { return t.Value == p.X }) {
				ticks = append(ticks, plot.Tick{Value: p.X, Label: SizeString(int(p.X))})
			}
		}
	}
	return ticks
}

// percentiles are latencies in us by percentile, of the smallest messages of
// each operation.
func (rep *Report) percentiles() []curve {
	var curves, plain []curve
	done := make(map[string]bool)
	add := func(list *[]curve, c curve, h []Bucket) {
		c.points = quantiles(h)
		if !done[c.name] && len(c.points) > 0 {
			*list = append(*list, c)
			done[c.name] = true
		}
	}
	for k := range rep.Results {
		r := &rep.Results[k]
		if slices.ContainsFunc(rep.Results, func(o Result) bool { return o.Op == r.Op && o.Size < r.Size }) {
			continue
		}
		name := fmt.Sprintf("%s %s, %s, CRC %s", r.Op, SizeString(r.Size), r.LatencyIs, onOff(r.CRC))
		add(&curves, curve{name: name, color: opColors[r.Op], dashed: !r.CRC}, r.Latency.Histogram)
		tcp := curve{name: fmt.Sprintf("plain TCP %s, %s", SizeString(r.Size), r.LatencyIs), color: tcpColor, dashed: r.Size == wordSize}
		if r.Op.tripParts() == 1 {
			tcp.color = tcpRoundColor
		}
		add(&plain, tcp, r.TCPLatency.Histogram)
	}
	return append(curves, plain...)
}

// quantiles are the points of a histogram's curve: 1/(1-p) for a part p of all
// that took no longer, in us. So each nine of a percentile takes as much room
// as the one before it; all of them would be infinitely far, and stand where
// all but one would.
func quantiles(h []Bucket) plotter.XYs {
	all, sofar := total(h), 0
	var points plotter.XYs
	for _, b := range h {
		if sofar == 0 {
			points = append(points, plotter.XY{X: 1, Y: max(float64(b.From), 1) / 1e3})
		}
		sofar += b.Count
		points = append(points, plotter.XY{X: float64(all) / float64(max(all-sofar, 1)), Y: float64(b.To) / 1e3})
	}
	return points
}

// percentileTicks marks what people ask for, by its place in [quantiles].
var percentileTicks = plot.ConstantTicks{
	{Value: 1, Label: "0"}, {Value: 2, Label: "50"}, {Value: 10, Label: "90"}, {Value: 100, Label: "99"},
	{Value: 1e3, Label: "99.9"}, {Value: 1e4, Label: "99.99"}, {Value: 1e5, Label: "99.999"},
}
