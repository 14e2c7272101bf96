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

func TestAPeerIsWaitedForAtLengthOnceAMessage(t *testing.T) {
	for _, c := range []struct {
		messages, asked, vain uint64
		often                 bool
	}{
		{0, 0, 0, false}, // it has sent nothing
		{1, 0, 0, true},  // it may ask behind its first
		{1, 0, 1, false}, // it did not
		{2, 0, 1, false},
		{100, 99, 0, true},
		{100, 60, 0, true},
		{100, 60, 100, false},
		{101, 60, 100, true},
		{100, 20, 0, false},
	} {
		h := habit{vain: c.vain}
		if got := h.often(c.messages, c.asked); got != c.often {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
