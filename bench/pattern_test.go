package main

import (
	"bytes"
	"testing"
)

func TestPatternOfOneSeedIsTheSameAgain(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 4096} {
		buf := make([]byte, n)
		fillPattern(buf, 5)
		if err := checkPattern(buf, 5); err != nil {
			t.Errorf("%d octets: %v", n, err)
		}
	}
}

func TestPatternShowsOneWrongOctet(t *testing.T) {
	buf := make([]byte, 100)
	fillPattern(buf, 5)
	buf[99] ^= 1
	if checkPattern(buf, 5) == nil {
		t.Error("a flipped bit went unnoticed")
	}
}

func TestPatternsOfTwoSeedsDiffer(t *testing.T) {
	a, b := make([]byte, 64), make([]byte, 64)
	fillPattern(a, 1)
	fillPattern(b, 2)
	if bytes.Equal(a, b) {
		t.Error("seeds 1 and 2 give the same pattern: stale data would go unnoticed")
	}
}
