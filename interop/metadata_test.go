package main

import (
	"strings"
	"testing"
)

// The verdict is that of the median of the rounds' ratios.
func TestTheVerdictOnFilesIsThatOfTheMedianRatio(t *testing.T) {
	theirs := []float64{100, 200, 100}
	for _, test := range []struct {
		own  []float64
		want string
	}{
		{[]float64{79, 1000, 79}, "| 100 | 79 | 0.79 (0.79..5.00) | >= 0.8 | >= 1.2 | missed |"},
		{[]float64{80, 240, 10}, "| 100 | 80 | 0.80 (0.10..1.20) | >= 0.8 | >= 1.2 | met |"},
		{[]float64{120, 240, 10}, "| 100 | 120 | 1.20 (0.10..1.20) | >= 0.8 | >= 1.2 | aim met |"},
	} {
		if got := metadataRow("stat", theirs, test.own); got != "| stat "+test.want {
			t.Errorf("%v: %s", test.own, got)
		}
	}
}

// The work is done, in order, and what is not known is refused.
func TestWorkOnFilesIsDone(t *testing.T) {
	dir := t.TempDir()
	for _, work := range works {
		if err := workOnFiles(work, dir, 3); err != nil {
			t.Fatal(err)
		}
	}
	for _, work := range []string{"stat", "remove"} {
		if err := workOnFiles(work, dir, 1); err == nil {
			t.Errorf("%s of a file that was removed succeeds", work)
		}
	}
	if err := workOnFiles("rename", dir, 1); err == nil || !strings.Contains(err.Error(), "create, stat, remove") {
		t.Errorf("unknown work: %v", err)
	}
}
