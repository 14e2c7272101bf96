package main

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"
)

// aGroup and twoRounds are small made-up results: Weft at 5 then 8, TCP at a
// mean of 10 then 20 octets a nanosecond.
var aGroup = group{
	Metric:   Bandwidth,
	Baseline: raw(Stream, maxSize),
	Others:   []Workload{weftStream(Write, maxSize, true, true)},
}

func twoRounds() *Samples {
	s := newSamples()
	add := func(w Workload, round int, speed uint64) {
		s.add(w, round, Sample{Messages: speed, Total: speed, Elapsed: maxSize, CPU: time.Duration(speed) * 7})
	}
	weft, tcp := aGroup.Others[0], aGroup.Baseline
	add(weft, 0, 5)
	add(tcp, 0, 8)
	add(tcp, 0, 12)
	add(weft, 1, 8)
	add(tcp, 1, 20)
	add(tcp, 1, 20)
	return s
}

// aDocument is that of twoRounds.
func aDocument() Document {
	return documentOf([]group{aGroup}, twoRounds())
}

func documentOf(groups []group, s *Samples) Document {
	return newDocument(&Run{Groups: groups, Rounds: 2, Sample: time.Second, Pin: true, Peers: &Peers{}}, []int{0, 1}, "reno", s)
}

func near(t *testing.T, name string, got, want Summary) {
	t.Helper()
	for _, p := range [][2]float64{{got.Median, want.Median}, {got.Min, want.Min}, {got.Max, want.Max}} {
		if d := p[0]/p[1] - 1; d > 1e-9 || d < -1e-9 {
			t.Errorf("%s = %v, want %v", name, got, want)
			return
		}
	}
}

func TestResultTakesRatiosInsideARound(t *testing.T) {
	all := results([]group{aGroup}, twoRounds())
	tcp, weft := all[0], all[1]
	near(t, "Weft", weft.Figure, Summary{6.5e9, 5e9, 8e9})
	near(t, "TCP", tcp.Figure, Summary{15e9, 10e9, 20e9})
	near(t, "ratio", weft.Ratio, Summary{0.45, 0.4, 0.5}) // not 6.5/15
	near(t, "ratio of the baseline", tcp.Ratio, Summary{1, 1, 1})
	near(t, "noise", tcp.Noise, Summary{1.25, 1, 1.5})
	if weft.CPU != 7 || tcp.CPU != 7 {
		t.Errorf("CPU a message = %v and %v ns, want 7", weft.CPU, tcp.CPU)
	}
}

func TestGoalIsJudgedByTheMedianOfRatiosInsideARound(t *testing.T) {
	all := attempts([]group{aGroup}, twoRounds())
	if len(all) != 1 {
		t.Fatalf("%d goals judged, want the one that was measured", len(all))
	}
	near(t, "figure", all[0].Figure, Summary{0.45, 0.4, 0.5})
	if all[0].Verdict != Missed || all[0].Short < 0.469 || all[0].Short > 0.471 {
		t.Errorf("judged %s, short %v; want missed by 0.47 of 0.85", all[0].Verdict, all[0].Short)
	}
}

func TestFailedWorkloadSpoilsItsRowOnly(t *testing.T) {
	s := twoRounds()
	weft := aGroup.Others[0]
	other := weft
	other.CRC = false
	s.Of[other] = s.Of[weft]
	s.Failed[weft] = errors.New("no luck")
	g := aGroup
	g.Others = []Workload{weft, other}
	d := documentOf([]group{g}, s)
	if d.Results[1].Error == "" || d.Results[1].Figures != nil || d.Results[2].Error != "" || d.Results[2].Ratio == 0 {
		t.Errorf("results = %+v; want the first of Weft's to have failed alone", d.Results)
	}
	if !d.failed() {
		t.Error("nothing failed")
	}
	for _, m := range d.Goals {
		if m.CRC {
			t.Errorf("a failed workload was judged: %+v", m)
		}
	}

	var out strings.Builder
	if err := d.report(&out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "no luck"); n != 1 {
		t.Errorf("the reason is given %d times, want once:\n%s", n, out.String())
	}
}

func TestFailedBaselineLeavesFiguresWithoutRatios(t *testing.T) {
	s := twoRounds()
	s.Failed[aGroup.Baseline] = errors.New("no luck")
	d := documentOf([]group{aGroup}, s)
	if w := d.Results[1]; w.Median != 6.5e9 || w.RatioTo != "" {
		t.Errorf("Weft's row = %+v", w)
	}
	if len(d.Goals) != 0 {
		t.Errorf("judged %+v", d.Goals)
	}
}

func TestReportShowsMedianExtremesRatioAndGoal(t *testing.T) {
	var out strings.Builder
	d := aDocument()
	d.Missing = []Missing{{Fabric, "there is no libfabric", "apt-get install libfabric-dev"}}
	if err := d.report(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"write stream", "1MiB", "on", "two cores", "6.5 (5..8)", "15 (10..20)", "0.45 (0.40..0.50)", "1.00..1.50",
		">= 0.85", ">= 0.95", "missed by 47 %", "reno", "initiator on [0], target on [1]", "indication",
		"Left out: libfabric", "apt-get install libfabric-dev",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
}

func TestDocumentCarriesTheFiguresOfEachWorkload(t *testing.T) {
	var out strings.Builder
	if err := aDocument().write(&out); err != nil {
		t.Fatal(err)
	}
	var d struct {
		System         map[string]any
		Goals, Results []map[string]any
	}
	if err := json.Unmarshal([]byte(out.String()), &d); err != nil {
		t.Fatal(err)
	}
	if d.System["congestion_control"] != "reno" || d.System["rounds"] != 2.0 {
		t.Errorf("system = %v", d.System)
	}
	if len(d.Results) != 2 || len(d.Goals) != 1 {
		t.Fatalf("%d results, %d goals; want 2, 1", len(d.Results), len(d.Goals))
	}
	check := func(got map[string]any, want map[string]any) {
		t.Helper()
		for key, want := range want {
			if number, ok := want.(float64); ok {
				near(t, key, Summary{got[key].(float64), 1, 1}, Summary{number, 1, 1})
			} else if got[key] != want {
				t.Errorf("%s = %v, want %v", key, got[key], want)
			}
		}
	}
	check(d.Results[1], map[string]any{
		"work": "write stream", "size": 1048576.0, "crc": true, "placement": "two cores", "peer": "weft",
		"unit": "bytes_per_second", "better": "higher", "median": 6.5e9, "min": 5e9, "max": 8e9, "rounds": 2.0,
		"ratio": 0.45, "ratio_min": 0.4, "ratio_max": 0.5, "ratio_to": "tcp-c",
	})
	check(d.Goals[0], map[string]any{
		"work": "write stream", "size": 1048576.0, "against": "tcp-c", "median": 0.45, "goal": 0.85, "aim": 0.95, "verdict": "missed",
	})
}

func TestLatenciesHavePercentilesInTheirUnit(t *testing.T) {
	g := polling()
	s := newSamples()
	for _, w := range g.all() {
		s.add(w, 0, Sample{Messages: 1, Total: 1, Elapsed: time.Second, Trips: [4]time.Duration{2000, 4000, 6000, 8000}})
	}
	for _, r := range documentOf([]group{g}, s).Results {
		if r.Median != 1000 || r.P50 != 1000 || r.P90 != 2000 || r.P99 != 3000 || r.P999 != 4000 {
			t.Errorf("half of 2, 4, 6 and 8 us came out as %+v", r.Figures)
		}
	}
}

func TestWrongCommandLineIsRefusedWithTheRemedy(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--nonsense"}, "--help"},
		{[]string{"write"}, "unexpected argument"},
		{[]string{"--only", "no such thing"}, "--list"},
		{[]string{"--only", "("}, "--only"},
		{[]string{"--rounds", "-1"}, "--rounds"},
	} {
		var out, errs strings.Builder
		if status := command(t.Context(), c.args, &out, &errs); status != exitUsage {
			t.Errorf("%q: status %d, want %d", c.args, status, exitUsage)
		}
		if !strings.Contains(errs.String(), c.want) || out.Len() > 0 {
			t.Errorf("%q: said %q, which does not mention %q", c.args, errs.String(), c.want)
		}
	}
}

func TestHelpGoesToStandardOutput(t *testing.T) {
	var out strings.Builder
	if status := command(t.Context(), []string{"--help"}, &out, io.Discard); status != exitOK || !strings.Contains(out.String(), "-quick") {
		t.Errorf("status %d, output %q", status, out.String())
	}
	if _, err := parse([]string{"-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h gives %v", err)
	}
}
