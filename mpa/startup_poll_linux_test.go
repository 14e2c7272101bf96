package mpa

import (
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
