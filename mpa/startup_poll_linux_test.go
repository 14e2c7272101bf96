package mpa

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/mpa/internal/turns"
)

func TestPollingEndsWhenThereIsSomethingAndWhenItIsLate(t *testing.T) {
	for _, tt := range []struct {
		name  string
		late  time.Duration
		ready int // the call that finds something
		ran   int // the yield in which another program runs
		want  bool
	}{
		{"it is there", -time.Hour, 1, 0, true},
		{"it comes", time.Hour, 100, 0, true},
		{"it comes while others run", time.Hour, 100, 50, false},
		{"it is late", -time.Hour, 2, 0, false},
	} {
		calls, yields := 0, 0
		ready := func() bool { calls++; return calls >= tt.ready }
		yield := func() bool { yields++; return yields == tt.ran }
		if got := pollUntil(time.Now().Add(tt.late), ready, yield); got != tt.want {
			t.Errorf("%s: %t after %d calls, expected %t", tt.name, got, calls, tt.want)
		}
	}
}

// What is there at the first look says nothing about polling: peers that are prompt must not
// have this side poll for those that say nothing.
func TestPollingHasNotPaidWhereNothingWasPolledFor(t *testing.T) {
	a, b := tcpPair(t)
	if _, err := a.Write([]byte("xy")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(b, make([]byte, 1)); err != nil { // and the other is there
		t.Fatal(err)
	}
	odds := turns.NewOdds()
	for odds.Due() {
		odds.Note(false)
	}
	for range 100 { // some of them probe
		pollIfDue(b, odds)
	}
	due := 0
	for range 2 {
		if odds.Due() { // once at most, to probe
			due++
		}
	}
	if due > 1 {
		t.Error("it polls although that has never paid")
	}
}

// In a bubble of testing/synctest the clock stands still while somebody polls.
func TestPollingEndsThoughTheClockStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		ready := func() bool { calls++; return calls > 10*turns.MostPolls }
		if pollUntil(time.Now().Add(turns.PollFor), ready, func() bool { return false }) {
			t.Errorf("%d polls, expected at most %d", calls, turns.MostPolls)
		}
	})
}
