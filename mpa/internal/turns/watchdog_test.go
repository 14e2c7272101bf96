package turns

import (
	"testing"
	"testing/synctest"
	"time"
)

// The watchdog finds a connection neglected that had no visitor for a whole nap.
func TestAWatchdogFindsWhatIsNeglected(t *testing.T) {
	r := New(newPipe(), nil)
	see := func(when string, want bool) {
		t.Helper()
		if got := r.neglected(); got != want {
			t.Errorf("%s: %v, expected %v", when, got, want)
		}
	}
	r.tally.visit()
	see("the reader waits", false)
	r.apply(Sleep)
	see("it has fallen asleep", false)
	see("nobody came", true)
	r.tally.visit()
	see("somebody did", false)
	for range 2 {
		r.apply(Come)
		r.leads.Add(1)
		see("somebody leads", false)
		if r.watched.naps != 0 {
			t.Error("a wait that has just begun is taken for a long one")
		}
		for range longNaps {
			see("the same", false)
		}
		if r.watched.naps != longNaps {
			t.Errorf("the wait lasts %d naps, expected %d", r.watched.naps, longNaps)
		}
		r.apply(Done)
		see("it is over", false)
	}
	see("nobody since", true)
}

// A watchdog that has no timer of the system's sleeps.
func TestAWatchdogWithoutATimerSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		(&watchdog{}).wait()
		if d := time.Since(began); d != nap {
			t.Errorf("%v, expected %v", d, nap)
		}
	})
}
