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

// aComparison and twoRounds are small made-up results: Weft at 5 then 8, TCP at
// a mean of 10 then 20 octets a nanosecond.
var aComparison = Comparison{
	Bandwidth,
	Workload{Transport: Weft, Shape: Stream, Op: Write, Size: 1000, CRC: true, Batch: true},
	Workload{Transport: TCP, Shape: Stream, Op: Octets, Size: 1000},
}

func twoRounds() *Samples {
	s := newSamples()
	add := func(w Workload, round int, messages uint64) {
		s.add(w, round, Sample{Messages: messages, Total: messages, Elapsed: time.Microsecond, CPU: time.Duration(messages) * 7})
	}
	add(aComparison.Weft, 0, 5)
	add(aComparison.TCP, 0, 8)
	add(aComparison.TCP, 0, 12)
	add(aComparison.Weft, 1, 8)
	add(aComparison.TCP, 1, 20)
	add(aComparison.TCP, 1, 20)
	return s
}

func TestResultTakesRatiosInsideARound(t *testing.T) {
	r := twoRounds().compare(aComparison)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	near := func(name string, got, want Summary) {
		t.Helper()
		for _, p := range [][2]float64{{got.Median, want.Median}, {got.Min, want.Min}, {got.Max, want.Max}} {
			if d := p[0]/p[1] - 1; d > 1e-9 || d < -1e-9 {
				t.Errorf("%s = %v, want %v", name, got, want)
				return
			}
		}
	}
	near("Weft", r.WeftFigure, Summary{6.5e9, 5e9, 8e9})
	near("TCP", r.TCPFigure, Summary{15e9, 10e9, 20e9})
	near("ratio", r.Ratio, Summary{0.45, 0.4, 0.5}) // not 6.5/15
	near("noise", r.Noise, Summary{1.25, 1, 1.5})
	if r.WeftCPU != 7 || r.TCPCPU != 7 {
		t.Errorf("CPU a message = %v and %v ns, want 7", r.WeftCPU, r.TCPCPU)
	}
}

func TestFailedWorkloadSpoilsItsComparisonOnly(t *testing.T) {
	s := twoRounds()
	s.Failed[aComparison.Weft] = errors.New("no luck")
	other := aComparison
	other.Weft.CRC = false
	s.Of[other.Weft] = s.Of[aComparison.Weft]
	all := results([]group{{aComparison, other}}, s)
	if all[0].Err == nil || all[1].Err != nil {
		t.Errorf("errors = %v, %v; want the first only", all[0].Err, all[1].Err)
	}

	var out strings.Builder
	if err := writeTables(&out, all); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "no luck"); n != 1 {
		t.Errorf("the reason is given %d times, want once:\n%s", n, out.String())
	}
}

func TestTableShowsMedianExtremesAndRatio(t *testing.T) {
	var out strings.Builder
	if err := writeTables(&out, []Result{twoRounds().compare(aComparison)}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"write", "1000B", "on", "6.5 (5..8)", "15 (10..20)", "0.45 (0.40..0.50)", "1.00..1.50", "higher is better"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
}

func TestDocumentCarriesTheFiguresOfEachComparison(t *testing.T) {
	r := twoRounds().compare(aComparison)
	failed := Result{Comparison: aComparison, Err: errors.New("no luck")}
	var out strings.Builder
	if err := newDocument(&Run{Rounds: 2, Sample: time.Second}, "reno", []Result{r, failed}).write(&out); err != nil {
		t.Fatal(err)
	}
	var d struct {
		System  map[string]any
		Results []map[string]any
	}
	if err := json.Unmarshal([]byte(out.String()), &d); err != nil {
		t.Fatal(err)
	}
	if d.System["congestion_control"] != "reno" || d.System["rounds"] != 2.0 {
		t.Errorf("system = %v", d.System)
	}
	if len(d.Results) != 2 {
		t.Fatalf("%d results, want 2", len(d.Results))
	}
	for key, want := range map[string]any{
		"metric": "bandwidth", "op": "write", "size": 1000.0, "crc": true, "unit": "bytes_per_second", "better": "higher",
		"weft": r.WeftFigure.Median, "tcp": r.TCPFigure.Median, "ratio": r.Ratio.Median, "spread": r.Ratio.spread(),
	} {
		if got := d.Results[0][key]; got != want {
			t.Errorf("%s = %v, want %v", key, got, want)
		}
	}
	if _, has := d.Results[1]["ratio"]; has || d.Results[1]["error"] != "no luck" {
		t.Errorf("a failed comparison has figures: %v", d.Results[1])
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
		{[]string{"--plot", "results.gif"}, ".svg, .png"},
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
