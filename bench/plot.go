// The pictures: bandwidth against message size, and percentiles of the half
// round trip, by peer.

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// The pictures' names.
const (
	bandwidthPicture = "performance-bandwidth.svg"
	pollingPicture   = "performance-latency-polling.svg"
	eventPicture     = "performance-latency-event.svg"
)

// writePlots draws what d has figures for into dir and returns the names.
func (d Document) writePlots(dir string) (names []string, err error) {
	draw := func(name string, p *plot.Plot, lines []any) {
		if len(lines) == 0 || err != nil {
			return
		}
		if err = plotutil.AddLinePoints(p, lines...); err == nil {
			err = p.Save(9*vg.Inch, 5.5*vg.Inch, filepath.Join(dir, name))
		}
		names = append(names, name)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	p, lines := d.bandwidthPlot()
	draw(bandwidthPicture, p, lines)
	p, lines = d.latencyPlot(apart, "both ends polling, two cores")
	draw(pollingPicture, p, lines)
	p, lines = d.latencyPlot(together, "event-driven, one core")
	draw(eventPicture, p, lines)
	if err == nil && len(names) == 0 {
		err = errors.New("there are no results to draw")
	}
	return names, err
}

// newPlot is an empty picture whose axes are logarithmic.
func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	p.Legend.Padding = vg.Points(3)
	p.Add(plotter.NewGrid())
	return p
}

// curves collects points by name, in the order of first appearance.
type curves struct {
	order  []string
	points map[string]plotter.XYs
}

func (c *curves) add(name string, x, y float64) {
	if c.points == nil {
		c.points = map[string]plotter.XYs{}
	}
	if c.points[name] == nil {
		c.order = append(c.order, name)
	}
	c.points[name] = append(c.points[name], plotter.XY{X: x, Y: y})
}

// lines are what plotutil draws.
func (c *curves) lines() []any {
	var lines []any
	for _, name := range c.order {
		lines = append(lines, name, c.points[name])
	}
	return lines
}

// bandwidthPlot shows the streams of one connection: RDMA Writes, or what a
// peer has instead; Weft's both in lists and one at a time.
func (d Document) bandwidthPlot() (*plot.Plot, []any) {
	var c curves
	var ticks plot.ConstantTicks
	ticked := map[int]bool{}
	for _, r := range slices.Backward(d.Results) { // from small to large
		if r.Error != "" || r.Placement == anywhere || r.Metric != Bandwidth && r.Metric != MessageRate {
			continue
		}
		if r.Op == Read || r.Op == Send {
			continue
		}
		single := r.Work == string(r.Op)+" stream"
		name := string(r.Peer)
		switch {
		case r.Peer != Weft && !single:
			continue
		case r.Peer == Weft && single && r.Size < windowSize:
			name += ", one at a time"
		}
		if r.CRC {
			name += ", CRC"
		}
		y := r.Median * 1e-9
		if r.Metric == MessageRate {
			y *= float64(r.Size)
		}
		c.add(name, float64(r.Size), y)
		if !ticked[r.Size] {
			ticked[r.Size] = true
			ticks = append(ticks, plot.Tick{Value: float64(r.Size), Label: sizeName(r.Size)})
		}
	}
	p := newPlot("One-way bandwidth over loopback, two cores", "message", "GB/s")
	p.X.Tick.Marker = ticks
	return p, c.lines()
}

// latencyPlot shows percentiles of the half round trip of those placed so.
func (d Document) latencyPlot(placement, title string) (*plot.Plot, []any) {
	var c curves
	for _, r := range d.Results {
		if r.Error != "" || r.Metric != HalfTrip || r.Placement != placement && r.Placement != unplaced {
			continue
		}
		name := string(r.Peer)
		if r.Op != Octets {
			name += " " + string(r.Op)
		}
		if r.CRC {
			name += ", CRC"
		}
		if r.Work != (Workload{Shape: PingPong, Op: r.Op, Polling: placement == apart}).work() {
			continue // among idle ones, or driven otherwise
		}
		for i, y := range []float64{r.P50, r.P90, r.P99, r.P999} {
			if y > 0 { // not every program reports all
				c.add(name, float64(i+1), y*1e-3)
			}
		}
	}
	p := newPlot("Half round trip of 64 B, "+title, "percentile", "us")
	p.Legend.Top, p.Legend.Left = true, true // curves rise
	p.X.Scale = plot.LinearScale{}
	p.X.Tick.Marker = plot.ConstantTicks{
		{Value: 1, Label: "50"}, {Value: 2, Label: "90"}, {Value: 3, Label: "99"}, {Value: 4, Label: "99.9"},
	}
	return p, c.lines()
}
