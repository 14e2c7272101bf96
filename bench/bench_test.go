package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMain lets the test's own program be the second process.
func TestMain(m *testing.M) {
	if role := os.Getenv(peerVariable); role != "" {
		if err := runAs(role, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestEveryWorkloadRunsBetweenTwoProcesses also makes the page and the
// pictures. Peers that are not installed are left out and named.
func TestEveryWorkloadRunsBetweenTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	file, page := filepath.Join(dir, "results.json"), filepath.Join(dir, "performance.md")
	if err := os.WriteFile(page, []byte("Before.\n"+pageBegin+"old\n"+pageEnd+"After.\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	args := []string{"--rounds", "1", "--sample", "2ms", "--no-pin", "--before", "", "--json", file, "--page", page}
	if status := command(t.Context(), args, &out, &errs); status != exitOK {
		t.Fatalf("status %d\n%s%s", status, out.String(), errs.String())
	}
	d, err := readDocument(file)
	if err != nil {
		t.Fatal(err)
	}
	missing := func(p Peer) bool {
		return slices.ContainsFunc(d.Missing, func(m Missing) bool { return m.Peer == p })
	}
	want := 0
	for _, g := range without(plan(), missing) {
		want += len(g.all())
	}
	if len(d.Results) != want {
		t.Errorf("%d results, want %d", len(d.Results), want)
	}
	for _, r := range d.Results {
		if r.Figures == nil || r.Median <= 0 || r.RatioTo != "" && r.Ratio <= 0 {
			t.Errorf("no figures in %+v", r)
		}
	}
	judged := slices.DeleteFunc(goals(), func(g Goal) bool { return g.Against.Peer == Before })
	if len(d.Missing) == 1 && len(d.Goals) != len(judged) { // Before, which is not asked for
		t.Errorf("%d figures to reach, want %d", len(d.Goals), len(judged))
	}

	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Before.", "After.", "| peer |", bandwidthPicture} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in the page", want)
		}
	}
	if strings.Contains(string(text), "old") {
		t.Error("what was between the marks is still there")
	}
	if st, err := os.Stat(filepath.Join(dir, bandwidthPicture)); err != nil || st.Size() == 0 {
		t.Errorf("the picture: %v", err)
	}
}

func TestWhatWasMeasuredCanBeShownAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.json")
	raw, err := json.Marshal(aDocument())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o666); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	if status := command(t.Context(), []string{"--from", file}, &out, &errs); status != exitOK {
		t.Fatalf("status %d\n%s", status, errs.String())
	}
	if !strings.Contains(out.String(), "0.45 (0.40..0.50)") {
		t.Errorf("the ratio is missing:\n%s", out.String())
	}
}

// A page without the marks may be anything: it is left alone.
func TestPageWithoutMarksIsRefused(t *testing.T) {
	page := filepath.Join(t.TempDir(), "other.md")
	const text = "Something else.\n"
	if err := os.WriteFile(page, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := aDocument().writePage(page); err == nil {
		t.Error("it was written to")
	}
	if left, _ := os.ReadFile(page); string(left) != text {
		t.Errorf("it became %q", left)
	}
}

// Without a file for the results nothing is measured: this would take minutes.
func TestResultsThatCannotBeWrittenAreNotMeasured(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "missing", "results.json")
	var out, errs strings.Builder
	if status := command(t.Context(), []string{"--json", nowhere}, &out, &errs); status != exitError || !strings.Contains(errs.String(), nowhere) {
		t.Errorf("status %d, said %q", status, errs.String())
	}
}

func TestJSONReplacesTheTablesOnStandardOutput(t *testing.T) {
	var out, errs strings.Builder
	args := []string{"--rounds", "1", "--sample", "1ms", "--no-pin", "--json", "-", "--only", "^weft send ping-pong, event-driven 64B$"}
	if status := command(t.Context(), args, &out, &errs); status != exitOK {
		t.Fatalf("status %d\n%s", status, errs.String())
	}
	var d Document
	if err := json.Unmarshal([]byte(out.String()), &d); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	for _, r := range d.Results {
		if r.Placement != unplaced || r.Work != "send ping-pong, event-driven" && r.Op != Octets {
			t.Errorf("not asked for: %+v", r)
		}
	}
}
