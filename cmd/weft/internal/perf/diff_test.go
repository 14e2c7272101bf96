package perf

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func reportOf(rates, tcp []float64) *Report {
	r := Result{Op: Write, Size: 64, CRC: true}
	for i := range rates {
		r.OverTime = append(r.OverTime, Moment{float64(i), rates[i]})
		r.TCPOverTime = append(r.TCPOverTime, Moment{float64(i), tcp[i]})
	}
	return &Report{Results: []Result{r}}
}

func TestDiffTellsAChangeFromNoise(t *testing.T) {
	tcp := []float64{1e9, 1e9, 1e9, 1e9, 1e9}
	slow := []float64{1.0e9, 1.1e9, 0.9e9, 1.05e9, 0.2e9}
	for _, c := range []struct {
		name  string
		after []float64
		want  string
	}{
		{"all rounds are faster", []float64{1.5e9, 1.4e9, 1.6e9, 1.2e9, 1.5e9}, "better"},
		{"all rounds are slower", []float64{0.1e9, 0.11e9, 0.12e9, 0.13e9, 0.14e9}, "worse"},
		{"rounds lie among each other", []float64{1.2e9, 0.95e9, 0.85e9, 1.07e9, 1.0e9}, "same"},
		{"three rounds are too few", []float64{2e9, 2e9, 2e9}, "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, err := Diff(reportOf(slow, tcp), reportOf(c.after, tcp))
			if err != nil || len(all) != 2 {
				t.Fatalf("differences = %v, %v", all, err)
			}
			for _, d := range all {
				if d.Verdict != c.want {
					t.Errorf("%s: %s, want %s", d.Figure, d.Verdict, c.want)
				}
			}
		})
	}
}

// Where the machine was slower for both, the ratio stays.
func TestDiffOfTheRatioIsFreeOfTheMachine(t *testing.T) {
	all, err := Diff(reportOf([]float64{4e9, 4.1e9, 4.2e9, 4.3e9}, []float64{4e9, 4e9, 4e9, 4e9}),
		reportOf([]float64{2e9, 2.05e9, 2.1e9, 2.15e9}, []float64{2e9, 2e9, 2e9, 2e9}))
	if err != nil || all[0].Verdict != "worse" || all[1].Verdict != "same" {
		t.Errorf("differences = %+v, %v", all, err)
	}
}

func TestDiffOfLatencyIsBetterWhenLower(t *testing.T) {
	a, b := reportOf(nil, nil), reportOf(nil, nil)
	a.Results[0].Medians, b.Results[0].Medians = []float64{5000, 5100, 5200, 5300, 5400}, []float64{4000, 4100, 4200, 4300, 4400}
	all, err := Diff(a, b)
	if err != nil || len(all) != 1 || all[0].Verdict != "better" {
		t.Fatalf("differences = %+v, %v", all, err)
	}
	var out strings.Builder
	if err := WriteDiff(&out, OtherSettings(a, b), all); err != nil || !strings.Contains(out.String(), "5.20 (5.00..5.40)") || !strings.Contains(out.String(), "-19.2 %") {
		t.Errorf("%v:\n%s", err, out.String())
	}
}

func TestReportsWithNothingInCommonAreAnError(t *testing.T) {
	other := reportOf([]float64{1}, []float64{1})
	other.Results[0].Size = 8
	if all, err := Diff(reportOf([]float64{1}, []float64{1}), other); err == nil {
		t.Errorf("differences = %v", all)
	}
}

func TestDiffNamesTheSettingsThatDiffer(t *testing.T) {
	a, b := reportOf(nil, nil), reportOf(nil, nil)
	if lines := OtherSettings(a, b); len(lines) != 0 {
		t.Errorf("the same settings: %q", lines)
	}
	a.Settings = Settings{Peer: "192.0.2.1:7471", Connections: 1, Depth: 64, Rounds: 3, DurationSeconds: 1}
	b.Settings = Settings{Peer: "192.0.2.2:7471", Connections: 16, Consumers: 2, Depth: 64, Rounds: 5, DurationSeconds: 2}
	b.Settings.Spin, b.Settings.Congestion = time.Millisecond, "reno"
	lines := OtherSettings(a, b)
	want := []string{"congestion: the system's before, reno after", "connections: 1 before, 16 after", "consumers: 0 before, 2 after", "spin_ns: 0s before, 1ms after"}
	if !slices.Equal(lines, want) {
		t.Errorf("the settings that differ are %q, expected %q", lines, want)
	}
	var out strings.Builder
	if err := WriteDiff(&out, lines, nil); err != nil || !strings.HasPrefix(out.String(), "The reports have other settings:\n  congestion: ") {
		t.Errorf("%v:\n%s", err, out.String())
	}
}

// TestAReportIsWhatAMeasurementMayHaveWritten compares files that somebody else may have written.
func TestAReportIsWhatAMeasurementMayHaveWritten(t *testing.T) {
	result := func(members string) string { return `{"results":[{"op":"write","size":64,"crc":true` + members + `}]}` }
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "no report"},
		{"cut short", result("")[:40], "no report"},
		{"something else", `{"results":"many"}`, "no report"},
		{"no results", `{"results":[]}`, "no results"},
		{"an unknown operation", `{"results":[{"op":"\u001b[2J","size":64}]}`, `unknown operation "\x1b[2J"`},
		{"no size", `{"results":[{"op":"write"}]}`, "write of 0 bytes"},
		{"a size below zero", `{"results":[{"op":"write","size":-1}]}`, "write of -1 bytes"},
		{"a result twice", `{"results":[{"op":"write","size":64},{"op":"write","size":64}]}`, "twice"},
		{"no number", result(`,"over_time":[{"bytes_per_second":1e999}]`), "no report"},
		{"below zero", result(`,"over_time":[{"bytes_per_second":-1}]`), "round of -1"},
		{"too much", result(`,"tcp_over_time":[{"bytes_per_second":1e300}]`), "round of 1e+300"},
		{"too little", result(`,"round_latency_p50_ns":[1e-300]`), "round of 1e-300"},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "report.json")
			if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := ReadReport(name); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want %q", err, c.want)
			}
		})
	}
}

// TestAReportThatIsTooLongIsNotRead has a file of more octets than a report may have, all of
// them a hole.
func TestAReportThatIsTooLongIsNotRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, mostReport+1); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadReport(name); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("error = %v", err)
	}
}

// TestExtremeFiguresAreComparedWithFiniteOnes has the least and the most that a report may have.
func TestExtremeFiguresAreComparedWithFiniteOnes(t *testing.T) {
	of := func(v float64) []float64 { return []float64{v, v, v, v, v} }
	for _, c := range []struct {
		before, after float64
		want          string
	}{
		{leastFigure, mostFigure, "better"},
		{mostFigure, leastFigure, "worse"},
		{0, 1, "better"},
		{0, 0, "same"},
	} {
		t.Run(fmt.Sprint(c.before, c.after), func(t *testing.T) {
			all, err := Diff(reportOf(of(c.before), of(leastFigure)), reportOf(of(c.after), of(leastFigure)))
			if err != nil || all[0].Verdict != c.want {
				t.Errorf("differences = %+v, %v, want %s", all, err, c.want)
			}
			for _, d := range all {
				if math.IsInf(d.Change, 0) || math.IsNaN(d.Change) {
					t.Errorf("%s changed by %v", d.Figure, d.Change)
				}
			}
			if _, err := json.Marshal(all); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSettingsOfAReportAreSafeToPrint has a name that would clear a terminal.
func TestSettingsOfAReportAreSafeToPrint(t *testing.T) {
	a, b := reportOf(nil, nil), reportOf(nil, nil)
	b.Settings.Congestion = "\x1b[2J"
	if lines := OtherSettings(a, b); len(lines) != 1 || !strings.Contains(lines[0], `"\x1b[2J" after`) {
		t.Errorf("the settings that differ are %q", lines)
	}
}
