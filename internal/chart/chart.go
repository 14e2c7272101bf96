// Package chart draws lines in a frame, as SVG: what the pictures of measurements need, so
// that they all look alike.
//
// There is no legend: each line has its name at its right end, beside the frame. Lines
// differ in mark and dashes as well as in color, so that a picture can be read without color.
// Text is large enough to be read at half size.
package chart

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// A Chart is one panel of a picture.
type Chart struct {
	Title  string // what is shown, its unit, and which way is better
	X      string // what the X axis is
	Ticks  []Tick // of the X axis; nil for round numbers
	LinX   bool   // the X axis is linear; else logarithmic
	LinY   bool   // the Y axis is linear and begins at 0; else logarithmic
	Lines  []Line
	Height float64 // of the picture's part, in pixels; 0 is 480
}

// A Tick is a place on the X axis with a label.
type Tick struct {
	At    float64
	Label string
}

// A Line joins points, from left to right.
type Line struct {
	Name   string
	Style  Style
	Points []Point
}

// A Point is a place in the units of the axes. On a logarithmic axis it is above 0.
type Point struct{ X, Y float64 }

// A Style is how a line is drawn.
type Style struct {
	Color  string // of SVG
	Width  float64
	Dashes string // of SVG's stroke-dasharray; "" is a full line
	Mark   Mark   // at each point
}

// A Mark is the shape at each point of a line.
type Mark int

const (
	None Mark = iota
	Circle
	Ring
	Square
	Diamond
	Triangle
	Cross
	Plus
)

// Sizes in pixels.
const (
	width      = 1180
	left       = 90  // of the frame, where labels of the Y axis stand
	right      = 390 // where the names of the lines stand
	top        = 50
	bottom     = 70
	textSize   = 18
	titleSize  = 21
	nameGap    = 20 // between the names of two lines at least
	markRadius = 5.0
)

// SVG writes the charts, one above the other.
func SVG(w io.Writer, charts ...Chart) error {
	if len(charts) == 0 {
		return errors.New("no results to draw")
	}
	var all float64
	for i := range charts {
		charts[i].Height = cmp.Or(charts[i].Height, 480)
		all += charts[i].Height
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %g" width="%d" height="%g" font-family="Helvetica, Arial, sans-serif" font-size="%d" fill="#222">`+"\n",
		width, all, width, all, textSize)
	fmt.Fprintf(&b, `<rect width="%d" height="%g" fill="white"/>`+"\n", width, all)
	var y float64
	for _, c := range charts {
		newPanel(c, y).draw(&b)
		y += c.Height
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// A panel is a chart with its place in the picture.
type panel struct {
	Chart
	top, bottom            float64 // of the frame
	minX, maxX, minY, maxY float64 // of its edges, as scaled
}

func newPanel(c Chart, y float64) *panel {
	p := &panel{Chart: c, top: y + top, bottom: y + c.Height - bottom}
	p.minX, p.maxX, p.minY, p.maxY = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, l := range c.Lines {
		for _, at := range l.Points {
			x, y := p.scaleX(at.X), p.scaleY(at.Y)
			p.minX, p.maxX = min(p.minX, x), max(p.maxX, x)
			p.minY, p.maxY = min(p.minY, y), max(p.maxY, y)
		}
	}
	if c.LinY {
		p.minY = 0
	}
	p.minX, p.maxX = widen(p.minX, p.maxX, 0.03)
	low, high := widen(p.minY, p.maxY, 0.06)
	p.maxY = high
	if !c.LinY {
		p.minY = low
	}
	return p
}

// widen returns an interval with some room at either end.
func widen(from, to, share float64) (float64, float64) {
	room := max((to-from)*share, 1e-9)
	if to == from {
		room = max(math.Abs(from)*share, 0.1)
	}
	return from - room, to + room
}

func (p *panel) scaleX(x float64) float64 { return scale(x, p.LinX) }
func (p *panel) scaleY(y float64) float64 { return scale(y, p.LinY) }

func scale(v float64, linear bool) float64 {
	if linear {
		return v
	}
	return math.Log10(v)
}

// x and y are places in the picture.
func (p *panel) x(v float64) float64 {
	return left + (p.scaleX(v)-p.minX)/(p.maxX-p.minX)*(width-right-left)
}

func (p *panel) y(v float64) float64 {
	return p.bottom - (p.scaleY(v)-p.minY)/(p.maxY-p.minY)*(p.bottom-p.top)
}

func (p *panel) draw(b *strings.Builder) {
	text(b, left, p.top-18, titleSize, "start", "bold", p.Title)
	text(b, (left+width-right)/2, p.bottom+54, textSize, "middle", "normal", p.X)
	for _, v := range p.ticksY() {
		y := p.y(v)
		segment(b, left, y, width-right, y, "#ddd", 1)
		text(b, left-8, y+6, textSize, "end", "normal", number(v))
	}
	for _, t := range p.ticksX() {
		x := p.x(t.At)
		segment(b, x, p.top, x, p.bottom, "#ddd", 1)
		text(b, x, p.bottom+26, textSize, "middle", "normal", t.Label)
	}
	fmt.Fprintf(b, `<rect x="%d" y="%g" width="%d" height="%g" fill="none" stroke="#888"/>`+"\n", left, p.top, width-right-left, p.bottom-p.top)
	// Thin lines first: the bold ones lie above them.
	lines := slices.Clone(p.Lines)
	slices.SortStableFunc(lines, func(a, b Line) int { return cmp.Compare(a.Style.Width, b.Style.Width) })
	for _, l := range lines {
		p.line(b, l)
	}
	p.names(b)
}

func (p *panel) line(b *strings.Builder, l Line) {
	var path strings.Builder
	for i, at := range l.Points {
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], p.x(at.X), p.y(at.Y))
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="%g" stroke-dasharray="%s" stroke-linejoin="round"/>`+"\n",
		path.String(), l.Style.Color, l.Style.Width, cmp.Or(l.Style.Dashes, "none"))
	for _, at := range l.Points {
		mark(b, l.Style, p.x(at.X), p.y(at.Y))
	}
}

// names writes each line's name beside the frame, at the height of its end or as near to it as
// there is room.
func (p *panel) names(b *strings.Builder) {
	var ends []Line
	for _, l := range p.Lines {
		if len(l.Points) > 0 {
			ends = append(ends, l)
		}
	}
	last := func(l Line) Point { return l.Points[len(l.Points)-1] }
	slices.SortStableFunc(ends, func(a, b Line) int { return cmp.Compare(last(b).Y, last(a).Y) })
	wanted := make([]float64, len(ends))
	for i, l := range ends {
		wanted[i] = p.y(last(l).Y)
	}
	const x = width - right
	for i, y := range spread(wanted, p.top+6, p.bottom-2) {
		l := ends[i]
		segment(b, p.x(last(l).X)+markRadius+2, wanted[i], x+14, y, "#aaa", 1)
		segment(b, x+14, y, x+58, y, l.Style.Color, l.Style.Width, l.Style.Dashes)
		mark(b, l.Style, x+36, y)
		weight := "normal"
		if l.Style.Width > Thin {
			weight = "bold"
		}
		text(b, x+64, y+6, textSize, "start", weight, l.Name)
	}
}

// spread moves places, which rise, apart from each other and into the bounds.
func spread(wanted []float64, from, to float64) []float64 {
	places := slices.Clone(wanted)
	for i := range places {
		least := from
		if i > 0 {
			least = places[i-1] + nameGap
		}
		places[i] = max(places[i], least)
	}
	for i := len(places) - 1; i >= 0; i-- {
		most := to
		if i < len(places)-1 {
			most = places[i+1] - nameGap
		}
		places[i] = min(places[i], most)
	}
	return places
}

// ticksX are those given, or round numbers.
func (p *panel) ticksX() []Tick {
	if p.Ticks != nil {
		return p.Ticks
	}
	var ticks []Tick
	for _, v := range round(p.minX, p.maxX, p.LinX) {
		ticks = append(ticks, Tick{v, fmt.Sprintf("%g", v)})
	}
	return ticks
}

func (p *panel) ticksY() []float64 { return round(p.minY, p.maxY, p.LinY) }

// round returns round numbers between two edges, as scaled.
func round(from, to float64, linear bool) (all []float64) {
	if linear {
		step := math.Pow10(int(math.Floor(math.Log10(max(to-from, 1e-12)))))
		for _, part := range []float64{0.1, 0.2, 0.5, 1} {
			if (to-from)/(step*part) <= 8 {
				step *= part
				break
			}
		}
		for k := math.Ceil(from / step); k*step <= to; k++ {
			all = append(all, math.Round(k*step*1e9)/1e9)
		}
		return all
	}
	for _, parts := range [][]float64{{1}, {1, 2, 5}, {1, 1.5, 2, 3, 5, 7}, {1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9}} {
		all = nil
		for e := int(math.Floor(from)); e <= int(math.Ceil(to)); e++ {
			for _, part := range parts {
				if at := math.Log10(part) + float64(e); at >= from && at <= to {
					all = append(all, math.Round(part*math.Pow10(e)*1e9)/1e9)
				}
			}
		}
		if len(all) >= 5 {
			break
		}
	}
	if len(all) < 2 { // of so short a piece the scale is nearly linear
		return round(math.Pow(10, from), math.Pow(10, to), true)
	}
	return all
}

// number is a tick's label.
func number(v float64) string {
	if v >= 1e6 {
		return fmt.Sprintf("%gM", v/1e6)
	}
	return fmt.Sprintf("%g", v)
}

func text(b *strings.Builder, x, y, size float64, anchor, weight, what string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" font-size="%g" text-anchor="%s" font-weight="%s">`, x, y, size, anchor, weight)
	xml.EscapeText(b, []byte(what))
	b.WriteString("</text>\n")
}

func segment(b *strings.Builder, x1, y1, x2, y2 float64, color string, thickness float64, dashes ...string) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%g" stroke-dasharray="%s"/>`+"\n",
		x1, y1, x2, y2, color, thickness, cmp.Or(append(dashes, "none")...))
}

// mark draws the mark of a style.
func mark(b *strings.Builder, s Style, x, y float64) {
	const r = markRadius
	fill, path := s.Color, ""
	switch s.Mark {
	case None:
		return
	case Circle, Ring:
		if s.Mark == Ring {
			fill = "white"
		}
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="%g" fill="%s" stroke="%s" stroke-width="2"/>`+"\n", x, y, r, fill, s.Color)
		return
	case Square:
		path = "M-5-5H5V5H-5Z"
	case Diamond:
		path = "M0-7L7 0L0 7L-7 0Z"
	case Triangle:
		path = "M0-7L7 5H-7Z"
	case Cross:
		path = "M-5-5L5 5M5-5L-5 5"
	case Plus:
		path = "M-6 0H6M0-6V6"
	}
	fmt.Fprintf(b, `<path transform="translate(%.1f %.1f)" d="%s" fill="%s" stroke="%s" stroke-width="2"/>`+"\n", x, y, path, fill, s.Color)
}
