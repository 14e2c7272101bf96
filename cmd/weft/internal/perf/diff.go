// This file compares two reports.

package perf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-rdma/weft/internal/stats"
)

// mostReport is the most octets that a report may have: days of rounds have fewer.
const mostReport = 64 << 20

// ReadReport reads a report in JSON from a file, which need not be one of weft perf: what it
// returns can be compared and shown.
func ReadReport(name string) (*Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostReport+1))
	if err != nil {
		return nil, err
	}
	if len(text) > mostReport {
		return nil, fmt.Errorf("%s has more than %s, expected a report of weft perf --json", name, SizeString(mostReport))
	}
	rep := new(Report)
	if err := json.Unmarshal(text, rep); err != nil {
		return nil, fmt.Errorf("%s is no report of weft perf --json: %w", name, err)
	}
	if err := rep.check(); err != nil {
		return nil, fmt.Errorf("%s is no report of weft perf --json: %w", name, err)
	}
	return rep, nil
}

// check returns an error if no measurement has these results.
func (r *Report) check() error {
	if len(r.Results) == 0 {
		return errors.New("it has no results")
	}
	type key struct {
		op   Op
		size int
		crc  bool
	}
	seen := make(map[key]bool)
	for i := range r.Results {
		x := &r.Results[i]
		k := key{x.Op, x.Size, x.CRC}
		switch {
		case !slices.Contains(Ops, x.Op):
			return fmt.Errorf("unknown operation %q", x.Op)
		case x.Size <= 0:
			return fmt.Errorf("%s of %d bytes", x.Op, x.Size)
		case seen[k]:
			return fmt.Errorf("%s of %s with CRC %s is there twice", x.Op, SizeString(x.Size), onOff(x.CRC))
		}
		seen[k] = true
		for _, v := range slices.Concat(rates(x.OverTime), rates(x.TCPOverTime), x.Medians) {
			if v != 0 && v < leastFigure || v > mostFigure {
				return fmt.Errorf("%s of %s has a round of %g", x.Op, SizeString(x.Size), v)
			}
		}
	}
	return nil
}

// Nobody measures as many bytes a second or nanoseconds, or so few. What is computed from
// figures between them is finite.
const leastFigure, mostFigure = 1e-6, 1e18

// A Difference is one figure in two reports.
type Difference struct {
	Op     Op     `json:"op"`
	Size   int    `json:"size"`
	CRC    bool   `json:"crc"`
	Figure string `json:"figure"` // bandwidth, ratio to plain TCP, or latency
	Better string `json:"better"` // higher or lower

	Before Spread  `json:"before"`
	After  Spread  `json:"after"`
	Change float64 `json:"change"` // share of the median: 0.1 is 10 % more

	// Verdict is better or worse if the rounds differ by more than chance explains, same if they
	// do not, and unknown if there are too few rounds to tell.
	Verdict string `json:"verdict"`
}

// A Spread is where the rounds of a figure lie.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Rounds int     `json:"rounds"`
}

func spreadOf(v []float64) Spread {
	if len(v) == 0 {
		return Spread{}
	}
	return Spread{stats.Median(v), slices.Min(v), slices.Max(v), len(v)}
}

// Diff compares what two reports both measured.
func Diff(before, after *Report) ([]Difference, error) {
	var all []Difference
	for i := range before.Results {
		a := &before.Results[i]
		for j := range after.Results {
			if b := &after.Results[j]; a.Op == b.Op && a.Size == b.Size && a.CRC == b.CRC {
				all = append(all, differences(a, b)...)
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the reports have no operation, size and CRC in common, or no figures of single rounds")
	}
	return all, nil
}

// OtherSettings has a line for each setting that two reports were not both made with. What is
// measured follows the settings, so that their differences may be all that a figure shows.
func OtherSettings(before, after *Report) (lines []string) {
	a, b := before.Settings.members(), after.Settings.members()
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if a[name] != b[name] {
			lines = append(lines, fmt.Sprintf("%s: %s before, %s after", name, a[name], b[name]))
		}
	}
	return lines
}

// members are the settings that were chosen, by their names in JSON.
func (s Settings) members() map[string]string {
	v := reflect.ValueOf(s)
	all := make(map[string]string)
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch name {
		case "", "peer", "rounds", "duration_seconds": // one has none, the others tell how it went
			continue
		}
		all[name] = fmt.Sprint(v.FieldByIndex(f.Index).Interface())
		switch quoted := strconv.Quote(all[name]); {
		case all[name] == "":
			all[name] = "the system's"
		case quoted != `"`+all[name]+`"`: // not for a terminal
			all[name] = quoted
		}
	}
	return all
}

// differences compares the figures of one result.
func differences(a, b *Result) (all []Difference) {
	add := func(figure, better string, x, y []float64) {
		if len(x) == 0 || len(y) == 0 {
			return
		}
		d := Difference{Op: a.Op, Size: a.Size, CRC: a.CRC, Figure: figure, Better: better, Before: spreadOf(x), After: spreadOf(y)}
		if d.Before.Median > 0 {
			d.Change = d.After.Median/d.Before.Median - 1
		}
		d.Verdict = verdict(x, y, better)
		all = append(all, d)
	}
	add("bandwidth", "higher", rates(a.OverTime), rates(b.OverTime))
	add("ratio to plain TCP", "higher", a.ratios(), b.ratios())
	add("latency", "lower", a.Medians, b.Medians)
	return all
}

func rates(moments []Moment) (all []float64) {
	for _, m := range moments {
		all = append(all, m.BytesPerSecond)
	}
	return all
}

// ratios are the bandwidth to that of plain TCP, round by round.
func (r *Result) ratios() (all []float64) {
	for i := range min(len(r.OverTime), len(r.TCPOverTime)) {
		if tcp := r.TCPOverTime[i].BytesPerSecond; tcp > 0 {
			all = append(all, r.OverTime[i].BytesPerSecond/tcp)
		}
	}
	return all
}

// verdict says whether y is another figure than x, by a rank test (Mann and Whitney) at the
// level of 5 %: which values are the larger ones counts, not by how much, so that a single
// round that was disturbed does not decide.
func verdict(x, y []float64, better string) string {
	const leastRounds = 4 // with 3 and 3 rounds, even the clearest difference may be chance
	if min(len(x), len(y)) < leastRounds {
		return "unknown"
	}
	var wins float64
	y = slices.Sorted(slices.Values(y))
	for _, a := range x {
		less, _ := slices.BinarySearch(y, a)
		upTo, _ := slices.BinarySearchFunc(y, a, func(b, a float64) int {
			if b <= a {
				return -1
			}
			return 1
		})
		wins += float64(len(y)-upTo) + float64(upTo-less)/2
	}
	n, m := float64(len(x)), float64(len(y))
	deviation := math.Abs(wins-n*m/2) - 0.5
	if deviation < 1.96*math.Sqrt(n*m*(n+m+1)/12) {
		return "same"
	}
	if (wins > n*m/2) == (better == "higher") {
		return "better"
	}
	return "worse"
}

// WriteDiff writes differences for people, below the lines of OtherSettings.
func WriteDiff(w io.Writer, settings []string, all []Difference) error {
	var b strings.Builder
	if len(settings) > 0 {
		fmt.Fprintf(&b, "The reports have other settings:\n  %s\n\n", strings.Join(settings, "\n  "))
	}
	row := func(cells ...string) {
		line := fmt.Sprintf("%-9s %7s %4s  %-18s %-26s %-26s %8s  %s", cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6], cells[7])
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	row("OPERATION", "SIZE", "CRC", "FIGURE", "BEFORE (MIN..MAX)", "AFTER (MIN..MAX)", "CHANGE", "")
	for _, d := range all {
		row(string(d.Op), SizeString(d.Size), onOff(d.CRC), d.Figure, d.show(d.Before), d.show(d.After), fmt.Sprintf("%+.1f %%", d.Change*100), d.Verdict)
	}
	b.WriteString(`
Bandwidth in GB/s, 10^9 bytes a second; latency in us, the median of a round. CHANGE is of the
medians. better, worse: the rounds differ beyond what chance explains (Mann-Whitney, 5 %);
same: they do not; unknown: a report has fewer than 4 rounds. The ratio to plain TCP of the
same round is free of what the machine did meanwhile.
`)
	_, err := io.WriteString(w, b.String())
	return err
}

// show writes a spread in the figure's unit.
func (d *Difference) show(s Spread) string {
	scale := map[string]float64{"bandwidth": 1e-9, "latency": 1e-3}[d.Figure]
	if scale == 0 {
		scale = 1
	}
	return fmt.Sprintf("%s (%s..%s)", significant(s.Median*scale), significant(s.Min*scale), significant(s.Max*scale))
}
