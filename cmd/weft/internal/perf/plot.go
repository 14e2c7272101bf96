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
)

// A curve is one line of the plot.
type curve struct {
	name   string
	color  color.Color
	dashed bool
	points plotter.XYs // octets a message, GB/s
}

// Colors that stay apart also for those who see few.
var opColors = map[Op]color.Color{
	Write: color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
	Read:  color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	Send:  color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
}

// WritePlot writes bandwidth against message size as SVG: a line an operation,
// dashed without CRC, and plain TCP beside them. Operations of one size have
// no line.
func (rep *Report) WritePlot(w io.Writer) error {
	curves := rep.curves()
	if len(curves) == 0 {
		return errors.New("there is nothing to plot: write, read and send have sizes")
	}
	p := plot.New()
	p.Title.Text = "RDMA by Weft beside plain TCP"
	p.X.Label.Text = "message size"
	p.Y.Label.Text = "bandwidth, GB/s"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	p.X.Tick.Marker = sizeTicks(curves)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding = vg.Points(2)
	for _, size := range []*font.Length{&p.Title.TextStyle.Font.Size, &p.X.Label.TextStyle.Font.Size, &p.Y.Label.TextStyle.Font.Size} {
		*size = vg.Points(14)
	}
	p.Add(plotter.NewGrid())
	for _, c := range curves {
		line, points, err := plotter.NewLinePoints(c.points)
		if err != nil {
			return fmt.Errorf("plot of %s: %w", c.name, err)
		}
		line.Color, points.Color = c.color, c.color
		line.Width = vg.Points(2)
		points.Shape = draw.CircleGlyph{}
		if c.dashed {
			line.Dashes = []vg.Length{vg.Points(6), vg.Points(3)}
			points.Shape = draw.RingGlyph{}
		}
		p.Add(line, points)
		p.Legend.Add(c.name, line, points)
	}
	svg, err := p.WriterTo(22*vg.Centimeter, 14*vg.Centimeter, "svg")
	if err != nil {
		return err
	}
	_, err = svg.WriteTo(w)
	return err
}

// curves are the lines of the plot.
func (rep *Report) curves() []curve {
	var curves []curve
	tcp := make(map[int][]float64) // rates by size
	for _, op := range Ops {
		for _, crc := range []bool{true, false} {
			c := curve{name: string(op) + ", CRC " + onOff(crc), color: opColors[op], dashed: !crc}
			for _, r := range rep.Results {
				if r.Op != op || r.CRC != crc || op.word() || r.BytesPerSecond <= 0 {
					continue
				}
				c.points = append(c.points, plotter.XY{X: float64(r.Size), Y: r.BytesPerSecond / 1e9})
				tcp[r.Size] = append(tcp[r.Size], r.TCPBytesPerSecond/1e9)
			}
			if len(c.points) > 0 {
				curves = append(curves, c)
			}
		}
	}
	if len(curves) == 0 {
		return nil
	}
	plain := curve{name: "plain TCP", color: color.Gray{Y: 0x60}}
	for size, rates := range tcp {
		if m := median(rates); m > 0 {
			plain.points = append(plain.points, plotter.XY{X: float64(size), Y: m})
		}
	}
	slices.SortFunc(plain.points, func(a, b plotter.XY) int { return int(a.X) - int(b.X) })
	return append(curves, plain)
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
