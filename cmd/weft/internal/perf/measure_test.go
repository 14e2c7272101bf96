package perf

import (
	"testing"
	"time"
)

func TestARunIsMeantToEndWellBeforeThePeerEndsIt(t *testing.T) {
	for _, tt := range []struct {
		duration       time.Duration
		meters, rounds int
		want           time.Duration
	}{
		{30 * time.Second, 84, 5, 30 * time.Second / (84 * 6)},
		{30 * time.Second, 0, 5, 30 * time.Second},
		{4 * time.Minute, 4, 1, 30 * time.Second},
		{4*time.Minute + 8, 4, 1, runLimit / 4},
		{24 * time.Hour, 4, 5, runLimit / 4},
	} {
		cfg := Config{Duration: tt.duration, Rounds: tt.rounds}
		if got := cfg.window(tt.meters); got != tt.want {
			t.Errorf("%d meters, %d rounds, %v: a window of %v, want %v", tt.meters, tt.rounds, tt.duration, got, tt.want)
		}
	}
}
