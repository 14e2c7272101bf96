package fairness

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestWhoGoesOnIsToldByWhatPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Passage
		octets := uint64(1000)
		for _, step := range []struct {
			more uint64
			want time.Duration
		}{
			{0, 0}, {0, time.Second}, {someOctets - 1, 2 * time.Second}, {1, 0}, {0, time.Second}, {10 * someOctets, 0},
		} {
			octets += step.more
			if got := p.Idle(octets); got != step.want {
				t.Errorf("after %d more octets it is idle for %v, want %v", step.more, got, step.want)
			}
			time.Sleep(time.Second)
		}
	})
}
