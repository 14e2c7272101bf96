package perf

import (
	"bytes"
	"testing"
)

func TestPatternCheckNamesTheFirstWrongOctet(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 64, 1000} {
		b := make([]byte, n)
		fill(b, 42)
		if err := check(b, 42); err != nil {
			t.Errorf("%d bytes as filled: %v", n, err)
		}
		for at := range b {
			b[at] ^= 0x10
			if check(b, 42) == nil {
				t.Errorf("byte %d of %d changed, and check did not see it", at, n)
			}
			b[at] ^= 0x10
		}
	}
	b := make([]byte, 16)
	fill(b, 1)
	b[11]++
	if err := check(b, 1); err == nil || !bytes.Contains([]byte(err.Error()), []byte("byte 11 of 16")) {
		t.Errorf("byte 11 of 16 changed, but: %v", err)
	}
}

func TestPatternsOfNeighbouringSeedsAndPlacesDiffer(t *testing.T) {
	a, b := make([]byte, 64), make([]byte, 64)
	fill(a, 1<<32)
	fill(b, 1<<32+1)
	if bytes.Equal(a[:8], b[:8]) || bytes.Equal(a[:8], a[8:16]) || bytes.Equal(a[8:16], b[:8]) {
		t.Error("messages or places share a pattern")
	}
	if check(a[8:], 1<<32) == nil {
		t.Error("a shifted pattern passed")
	}
	if check(make([]byte, 8), 0) == nil {
		t.Error("cleared memory passed for a pattern")
	}
}
