package main

import (
	"errors"
	"strings"
	"testing"
)

func TestTheTableHasALineForEachProgram(t *testing.T) {
	a, b := &row{name: "a", pkg: "p"}, &row{name: "b", pkg: "q"}
	rs := results{{row: a, persona: "rnic"}, {row: a, persona: "rc", err: errors.New("x")}, {row: b, persona: "rc", missing: errors.New("apt-get install q")}}
	if got := rs.markdown(); !strings.Contains(got, "| `a` | p | ok | fails |\n| `b` | q | - | not run |\n") {
		t.Error(got)
	}
	var out strings.Builder
	if !rs.summary(&out) || out.String() != "failed: rc  a\nnot run: apt-get install q\n1 passed, 1 failed, 1 not run\n" {
		t.Error(out.String())
	}
}

func TestRowsAreComplete(t *testing.T) {
	names := map[string]bool{}
	for _, r := range rows {
		if names[r.name] {
			t.Errorf("%s is there twice", r.name)
		}
		names[r.name] = true
		if r.pkg == "" || r.client == "" && r.scene == nil || len(r.personas) == 0 {
			t.Errorf("%s is not complete", r.name)
		}
	}
}

func TestTheTableReplacesWhatIsBetweenTheMarks(t *testing.T) {
	page := "a\n" + tableBegins + "old\n" + tableEnds + "b\n"
	got, err := between(page, "| new |\n")
	if want := "a\n" + tableBegins + "\n| new |\n\n" + tableEnds + "b\n"; got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if again, err := between(got, "| new |\n"); again != got || err != nil {
		t.Errorf("again: %q, %v", again, err)
	}
	if _, err := between("a\n", ""); err == nil {
		t.Error("a page without marks was taken")
	}
}

func TestWhatAProgramSaidLastIsWhole(t *testing.T) {
	if got := lastLines("a\nb: 1 %\rb: 2 %\n\nc\n", 2); got != "b: 2 %\nc" {
		t.Errorf("%q", got)
	}
}
