package main

import (
	"errors"
	"strings"
	"testing"
)

func TestTheTableHasALineForEachProgram(t *testing.T) {
	a, b := &row{name: "a", pkg: "p"}, &row{name: "b", pkg: "q"}
	rs := results{{row: a, persona: "rnic"}, {row: a, persona: "rc", err: errors.New("x")}, {row: b, persona: "rc", missing: true}}
	if got := rs.markdown(); !strings.Contains(got, "| `a` | p | ok | fails |\n| `b` | q | - | not run |\n") {
		t.Error(got)
	}
	var out strings.Builder
	if !rs.summary(&out) || out.String() != "1 passed, 1 failed\nnot installed: apt-get install q\n" {
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
		if r.pkg == "" || r.client == "" && r.run == nil || len(r.personas) == 0 {
			t.Errorf("%s is not complete", r.name)
		}
	}
}
