package mpa

import (
	"testing"
	"time"
)

func TestPollingEndsWhenThereIsSomethingAndWhenItIsLate(t *testing.T) {
	for _, tt := range []struct {
		name  string
		late  time.Duration
		ready int // the call that finds something
		want  bool
	}{
		{"it is there", -time.Hour, 1, true},
		{"it comes", time.Hour, 100, true},
		{"it is late", -time.Hour, 2, false},
	} {
		for _, alone := range []bool{false, true} {
			calls := 0
			ready := func() bool { calls++; return calls >= tt.ready }
			if got := pollUntil(time.Now().Add(tt.late), ready, alone); got != tt.want {
				t.Errorf("%s: %t after %d calls, expected %t", tt.name, got, calls, tt.want)
			}
		}
	}
}
