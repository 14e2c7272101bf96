// The pictures: bandwidth against message size, and percentiles of the half round trip, by
// peer, each in its unit and as a ratio to plain TCP.

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/weft-rdma/weft/internal/chart"
)

// The pictures' names.
const (
	bandwidthPicture = "performance-bandwidth.svg"
	pollingPicture   = "performance-latency-polling.svg"
	eventPicture     = "performance-latency-event.svg"
)

// writePlots draws what d has figures for into dir and returns the names.
func (d Document) writePlots(dir string) (names []string, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	for _, picture := range []struct {
		name   string
		charts []chart.Chart
	}{
		{bandwidthPicture, d.bandwidthCharts()},
		{pollingPicture, d.latencyCharts(apart, "both ends polling, two cores")},
		{eventPicture, d.latencyCharts(together, "event-driven, one core")},
	} {
		if len(picture.charts) == 0 {
			continue
		}
		if err := drawFile(filepath.Join(dir, picture.name), picture.charts); err != nil {
			return names, err
		}
		names = append(names, picture.name)
	}
	if len(names) == 0 {
		return nil, errors.New("there are no results to draw")
	}
	return names, nil
}

func drawFile(name string, charts []chart.Chart) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(chart.SVG(f, charts...), f.Close())
}

// curves collects lines by name, in the order of first appearance.
type curves struct {
	lines []chart.Line
}

func (c *curves) add(name string, style chart.Style, x, y float64) {
	i := slices.IndexFunc(c.lines, func(l chart.Line) bool { return l.Name == name })
	if i < 0 {
		i = len(c.lines)
		c.lines = append(c.lines, chart.Line{Name: name, Style: style})
	}
	c.lines[i].Points = append(c.lines[i].Points, chart.Point{X: x, Y: y})
}

// ratios are the lines, as ratios to the one with that name, where it has points.
func (c *curves) ratios(to string) (all []chart.Line) {
	base := map[float64]float64{}
	for _, l := range c.lines {
		if l.Name == to {
			for _, p := range l.Points {
				base[p.X] = p.Y
			}
		}
	}
	for _, l := range c.lines {
		r := chart.Line{Name: l.Name, Style: l.Style}
		for _, p := range l.Points {
			if b := base[p.X]; b > 0 {
				r.Points = append(r.Points, chart.Point{X: p.X, Y: p.Y / b})
			}
		}
		if len(r.Points) > 0 {
			all = append(all, r)
		}
	}
	return all
}

// charts are the lines in their unit, and as ratios to plain TCP where that was measured.
func (c *curves) charts(first, second chart.Chart) []chart.Chart {
	if len(c.lines) == 0 {
		return nil
	}
	first.Lines = c.lines
	if second.Lines = c.ratios(string(TCPC)); len(second.Lines) == 0 {
		return []chart.Chart{first}
	}
	return []chart.Chart{first, second}
}

// name and style of a row in pictures.
func (r Row) line(detail string) (string, chart.Style) {
	name, style := string(r.Peer), chart.Of(string(r.Peer))
	if r.Peer == Weft {
		name = "Weft"
	}
	name += detail
	if r.Peer.hasCRC() {
		name += ", CRC " + onOff(r.CRC)
		if !r.CRC {
			style = style.With(chart.Dashed)
		}
	}
	return name, style
}

// bandwidthCharts show the streams of one connection: RDMA Writes, or what a peer has
// instead; Weft's both in lists and one at a time.
func (d Document) bandwidthCharts() []chart.Chart {
	var c curves
	var ticks []chart.Tick
	rows := slices.Clone(d.Results)
	slices.SortStableFunc(rows, func(a, b Row) int { return a.Size - b.Size })
	for _, r := range rows {
		if r.Error != "" || r.Placement == anywhere || r.Metric != Bandwidth && r.Metric != MessageRate {
			continue
		}
		if r.Op != Write && r.Op != Octets && r.Op != Message || r.Peer == Before {
			continue
		}
		single := r.Work == string(r.Op)+" stream"
		if !single && (r.Peer != Weft || r.Work != string(r.Op)+" stream, batched") {
			continue
		}
		name, style := r.line("")
		if r.Peer == Weft && single && r.Size < windowSize {
			if !r.CRC {
				continue // nearly the same
			}
			name, style = r.line(", one at a time")
			style.Dashes = chart.Dotted // with the mark of CRC on
		}
		y := r.Median * 1e-9
		if r.Metric == MessageRate {
			y *= float64(r.Size)
		}
		c.add(name, style, float64(r.Size), y)
		if n := len(ticks); n == 0 || ticks[n-1].At != float64(r.Size) {
			ticks = append(ticks, chart.Tick{At: float64(r.Size), Label: sizeName(r.Size)})
		}
	}
	ticks = slices.DeleteFunc(ticks, func(t chart.Tick) bool { // no room for all the large ones
		n := int(t.At)
		return n > maxSize && n != 8*maxSize && n != largest
	})
	return c.charts(
		chart.Chart{Title: "Streams of RDMA Writes, or of octets, two cores: GB/s, higher is better", X: "message", Ticks: ticks},
		chart.Chart{Title: "The same as a ratio to plain TCP in C, higher is better", X: "message", Ticks: ticks})
}

// latencyCharts show percentiles of the half round trip of those placed so.
func (d Document) latencyCharts(placement, how string) []chart.Chart {
	var c curves
	for _, r := range d.Results {
		if r.Error != "" || r.Metric != HalfTrip || r.Placement != placement && r.Placement != unplaced {
			continue
		}
		if r.Work != (Workload{Shape: PingPong, Op: r.Op, Polling: placement == apart}).work() {
			continue // among idle ones, or driven otherwise
		}
		detail := ""
		if r.Op != Octets {
			detail = " " + string(r.Op)
		}
		name, style := r.line(detail)
		if r.Op == Send && r.Peer != GRPC || r.Op == Call {
			style.Dashes = chart.Dotted
			if !r.CRC && r.Peer.hasCRC() {
				style.Dashes = "10 5 2 5"
			}
		}
		for i, y := range []float64{r.P50, r.P90, r.P99, r.P999} {
			if y > 0 { // not every program reports all
				c.add(name, style, float64(i+1), y*1e-3)
			}
		}
	}
	ticks := []chart.Tick{{At: 1, Label: "50"}, {At: 2, Label: "90"}, {At: 3, Label: "99"}, {At: 4, Label: "99.9"}}
	return c.charts(
		chart.Chart{Title: "Half round trip of 64 B, " + how + ": us, lower is better", X: "percentile", Ticks: ticks, LinX: true},
		chart.Chart{Title: "The same as a ratio to plain TCP in C, lower is better", X: "percentile", Ticks: ticks, LinX: true})
}
