package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the test's own program be the second process.
func TestMain(m *testing.M) {
	if os.Getenv(peerVariable) != "" {
		if err := runPeer(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestEveryComparisonRunsBetweenTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	file, picture := filepath.Join(dir, "results.json"), filepath.Join(dir, "results.svg")
	var out, errs strings.Builder
	args := []string{"--rounds", "1", "--sample", "2ms", "--no-pin", "--json", file, "--plot", picture}
	if status := command(t.Context(), args, &out, &errs); status != exitOK {
		t.Fatalf("status %d\n%s%s", status, out.String(), errs.String())
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d Document
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	if want := len(comparisons()); len(d.Results) != want {
		t.Errorf("%d results, want %d", len(d.Results), want)
	}
	for _, e := range d.Results {
		if e.Figures == nil || e.Weft <= 0 || e.TCP <= 0 || e.Ratio <= 0 {
			t.Errorf("no figures in %+v", e)
		}
	}
	if st, err := os.Stat(picture); err != nil || st.Size() == 0 {
		t.Errorf("the plot: %v", err)
	}
}

// Without a file for the results nothing is measured: this would take minutes.
func TestResultsThatCannotBeWrittenAreNotMeasured(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "missing", "results")
	for _, args := range [][]string{{"--json", nowhere + ".json"}, {"--plot", nowhere + ".svg"}} {
		var out, errs strings.Builder
		if status := command(t.Context(), args, &out, &errs); status != exitError || !strings.Contains(errs.String(), nowhere) {
			t.Errorf("%q: status %d, said %q", args, status, errs.String())
		}
	}
}

func TestJSONReplacesTheTablesOnStandardOutput(t *testing.T) {
	var out, errs strings.Builder
	args := []string{"--rounds", "1", "--sample", "1ms", "--no-pin", "--json", "-", "--only", "pingpong send 64B /"}
	if status := command(t.Context(), args, &out, &errs); status != exitOK {
		t.Fatalf("status %d\n%s", status, errs.String())
	}
	var d Document
	if err := json.Unmarshal([]byte(out.String()), &d); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	if len(d.Results) != 1 {
		t.Errorf("%d results, want 1", len(d.Results))
	}
}
