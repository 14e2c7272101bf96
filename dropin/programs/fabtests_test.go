package main

import (
	"slices"
	"testing"
)

func TestTheTestsThatFailAreNamed(t *testing.T) {
	const said = "fi_msg -p \"verbs\":                Pass\nfi_multi_ep -Q -p \"verbs\":       Fail\nfi_rdm -p \"verbs\":      Excluded\n  a note:  of a Fail\n"
	if got, want := failures(said), []string{`fi_multi_ep -Q -p "verbs"`}; !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
}
