package chart

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// drawn is the picture, whose XML is checked.
func drawn(t *testing.T, charts ...Chart) string {
	t.Helper()
	var b strings.Builder
	if err := SVG(&b, charts...); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(b.String()))
	for {
		if _, err := d.Token(); err == io.EOF {
			return b.String()
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAPictureHasItsNamesTitlesAndTicks(t *testing.T) {
	line := Line{Name: "a < b", Style: Weft, Points: []Point{{64, 0.1}, {4096, 2.5}}}
	got := drawn(t, Chart{Title: "GB/s, higher is better", X: "size", Ticks: []Tick{{64, "64 B"}, {4096, "4 KiB"}}, Lines: []Line{line}},
		Chart{Title: "second", X: "s", LinX: true, LinY: true, Lines: []Line{line}})
	for _, want := range []string{"a &lt; b", "GB/s, higher is better", ">64 B<", ">4 KiB<", ">second<"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
		t.Error("a place is no number")
	}
}

// One point has no width and no height.
func TestASinglePointCanBeDrawn(t *testing.T) {
	got := drawn(t, Chart{Lines: []Line{{Name: "one", Style: PlainTCP, Points: []Point{{1, 1}}}}})
	if strings.Contains(got, "NaN") {
		t.Errorf("a place is no number:\n%s", got)
	}
}

func TestNothingIsAnError(t *testing.T) {
	if err := SVG(io.Discard); err == nil {
		t.Error("a picture of nothing was drawn")
	}
}

func TestNamesDoNotLieOnEachOther(t *testing.T) {
	got := spread([]float64{100, 101, 102, 395, 399}, 0, 400)
	if !slices.IsSorted(got) || got[len(got)-1] > 400 || got[0] < 0 {
		t.Errorf("places = %v", got)
	}
	for i := 1; i < len(got); i++ {
		if got[i]-got[i-1] < nameGap {
			t.Errorf("places = %v: less than %v apart", got, nameGap)
		}
	}
}

// Labels of an axis do not lie on each other, whatever its range, and there are some.
func TestLabelsOfAnAxisDoNotLieOnEachOther(t *testing.T) {
	for _, linear := range []bool{false, true} {
		for ratio := 1.1; ratio < 1e6; ratio *= 1.07 {
			line := Line{Style: Weft, Points: []Point{{1, 7}, {2, 7 * ratio}}}
			p := newPanel(Chart{Lines: []Line{line}, Height: 480, LinY: linear}, 0)
			ticks := p.ticksY()
			if len(ticks) < 2 {
				t.Errorf("7 to %g: %v", 7*ratio, ticks)
			}
			for i := 1; i < len(ticks); i++ {
				if room := p.y(ticks[i-1]) - p.y(ticks[i]); room < textSize {
					t.Errorf("7 to %g: labels %g and %g are %.1f pixels apart", 7*ratio, ticks[i-1], ticks[i], room)
				}
			}
		}
	}
}

func TestPeersDifferWithoutColor(t *testing.T) {
	seen := map[string]string{}
	for _, peer := range []string{"weft", "tcp-c", "tcp-go", "libfabric", "grpc-go", "weft-run"} {
		s := Of(peer)
		key := fmt.Sprint(s.Mark, s.Dashes)
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s have the same mark and dashes", peer, other)
		}
		seen[key] = peer
	}
}
