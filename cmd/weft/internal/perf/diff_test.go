package perf

import (
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
