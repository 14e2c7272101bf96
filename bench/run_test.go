package main

import (
	"slices"
	"testing"
)

// A round is repeated for its baseline's sake alone.
func TestRoundsWhoseBaselineIsOutsideItsBoundsAreFound(t *testing.T) {
	s := newSamples()
	for round, tcp := range []uint64{100, 126, 100, 79, 124, 81, 100} {
		s.add(aGroup.Baseline, round, Sample{Messages: tcp, Elapsed: maxSize})
		s.add(aGroup.Others[0], round, Sample{Messages: 7 * uint64(round+1), Elapsed: maxSize})
	}
	if got := s.restless(aGroup); !slices.Equal(got, []int{1, 3}) {
		t.Errorf("restless rounds = %v, want 1 and 3", got)
	}
	s.forget(aGroup, 1)
	for _, w := range aGroup.all() {
		if len(s.Of[w][1]) != 0 || len(s.Of[w][2]) != 1 {
			t.Errorf("%v: round 1 is still there, or another is not", w)
		}
	}
	s.add(aGroup.Baseline, 1, Sample{Messages: 101, Elapsed: maxSize})
	if got := s.restless(aGroup); !slices.Equal(got, []int{3}) {
		t.Errorf("after a repeat, restless rounds = %v, want 3", got)
	}
}

func TestAGroupWithoutABaselineIsNeverRestless(t *testing.T) {
	if got := newSamples().restless(footprint()); got != nil {
		t.Errorf("restless rounds = %v", got)
	}
}
