// The picture: bandwidth of Weft and of plain TCP, against the size.

package main

import (
	"errors"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// plotFormats are what a plot's file can be, by the ending of its name.
var plotFormats = []string{"svg", "png", "pdf"}

// writePlot draws the bandwidth results in one of plotFormats.
func writePlot(out io.Writer, format string, all []Result) error {
	type line struct {
		op  Op
		crc bool
	}
	points := map[line]plotter.XYs{}
	var order []line
	tcp := plotter.XYs{}
	for _, r := range all {
		if r.Metric != Bandwidth || r.Err != nil {
			continue
		}
		l := line{r.Weft.Op, r.Weft.CRC}
		if points[l] == nil {
			order = append(order, l)
		}
		x := float64(r.Weft.Size)
		points[l] = append(points[l], plotter.XY{X: x, Y: r.WeftFigure.Median / 1e9})
		if len(tcp) == 0 || tcp[len(tcp)-1].X != x {
			tcp = append(tcp, plotter.XY{X: x, Y: r.TCPFigure.Median / 1e9})
		}
	}
	if len(order) == 0 {
		return errors.New("there are no bandwidth results to plot")
	}

	p := plot.New()
	p.Title.Text = "One-way bandwidth over loopback"
	p.X.Label.Text = "message, octets"
	p.Y.Label.Text = "GB/s"
	p.X.Scale = plot.LogScale{}
	var ticks plot.ConstantTicks
	for _, xy := range tcp {
		ticks = append(ticks, plot.Tick{Value: xy.X, Label: sizeName(int(xy.X))})
	}
	p.X.Tick.Marker = ticks
	p.Y.Min = 0
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())

	lines := []any{"plain TCP", tcp}
	for _, l := range order {
		name := string(l.op) + ", no CRC"
		if l.crc {
			name = string(l.op) + ", CRC"
		}
		lines = append(lines, name, points[l])
	}
	if err := plotutil.AddLinePoints(p, lines...); err != nil {
		return err
	}
	picture, err := p.WriterTo(8*vg.Inch, 5*vg.Inch, format)
	if err != nil {
		return err
	}
	_, err = picture.WriteTo(out)
	return err
}
