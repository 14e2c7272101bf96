package main

import "testing"

func TestAPeerThatDoesNotAskIsWaitedForMoreAndMoreSeldom(t *testing.T) {
	var h habit
	waits := func(n int) (times int) {
		for range n {
			if h.asks() {
				times++
				h.saw(false)
			}
		}
		return times
	}
	if n := waits(leastSkip); n != 1 {
		t.Errorf("a peer that has never asked is waited for %d times", n)
	}
	if n := waits(1 << 20); n > 30 {
		t.Errorf("then %d times", n)
	}
	h = habit{}
	for range 100 {
		if !h.asks() {
			t.Fatal("a peer that asks is not waited for")
		}
		h.saw(true)
	}
	h.saw(false)
	if n := waits(leastSkip); n != 0 {
		t.Error("what a peer did long ago counts")
	}
}
