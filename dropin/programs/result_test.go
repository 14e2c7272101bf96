package main

import (
	"errors"
	"strings"
	"testing"
)

func TestTheTableHasALineForEachProgram(t *testing.T) {
	all := []row{{name: "a", pkg: "p", personas: both}, {name: "b", pkg: "q", personas: rc}, {name: "c", pkg: "r", personas: both}, {name: "d", pkg: "s", personas: both}}
	rs := results{{row: &all[0], persona: "rnic"}, {row: &all[0], persona: "rc", err: errors.New("x")}, {row: &all[1], persona: "rc", missing: errors.New("apt-get install q")}}
	before := "| `c` | r | ok: 3 passed | - |\n| `a` | p | fails | ok |\n| `gone` | g | ok | ok |\n"
	want := "| program | package | rnic | rc |\n|---|---|---|---|\n" +
		"| `a` | p | ok | fails |\n| `b` | q | - | not run |\n| `c` | r | ok: 3 passed | not run |\n| `d` | s | not run | not run |\n"
	if got := rs.markdown(all, before); got != want {
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
	table := func(old string) func(string) string {
		return func(before string) string {
			if before != old {
				t.Errorf("the table before is %q, expected %q", before, old)
			}
			return "| new |\n"
		}
	}
	page := "a\n" + tableBegins + "old\n" + tableEnds + "b\n"
	got, err := between(page, table("old\n"))
	if want := "a\n" + tableBegins + "\n| new |\n\n" + tableEnds + "b\n"; got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if again, err := between(got, table("\n| new |\n\n")); again != got || err != nil {
		t.Errorf("again: %q, %v", again, err)
	}
	if _, err := between("a\n", table("")); err == nil {
		t.Error("a page without marks was taken")
	}
}

func TestWhatAProgramSaidLastIsWhole(t *testing.T) {
	if got := lastLines("a\nb: 1 %\rb: 2 %\n\nc\n", 2); got != "b: 2 %\nc" {
		t.Errorf("%q", got)
	}
}
