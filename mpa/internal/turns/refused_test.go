package turns

import (
	"testing"
	"testing/synctest"
	"time"
)

// In the middle of a ULPDU the reader polls while visitors are refused. Without them it waits in
// the network poller.
func TestAReaderHurriesWhileVisitorsAreRefused(t *testing.T) {
	turns := New(newPipe(), nil)
	if turns.Hurry() {
		t.Error("it tries again although nobody was refused")
	}
	for range 3 * refusedTries {
		turns.Refused()
		if !turns.Hurry() {
			t.Fatal("it waits although somebody was refused")
		}
	}
	for i := range refusedTries {
		if again := turns.Hurry(); again != (i < refusedTries-1) {
			t.Errorf("try %d after the last one refused: %t", i+1, again)
		}
	}
	turns.Refused()
	turns.Hurry()
	turns.Hurried()
	if turns.Hurry() {
		t.Error("it tries again in the next wait, although nobody was refused since")
	}
	turns.Refused()
	turns.Close()
	if turns.Hurry() {
		t.Error("it tries again although the connection is about to be closed")
	}
}

// A peer that stalls does not cost the reader a processor: it sleeps between tries, and then waits,
// each time anew.
func TestAReaderThatHurriesInVainSleepsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := New(newPipe(), nil)
		for range 2 {
			turns.Refused()
			turns.Hurry()
			time.Sleep(PollFor)
			began, tries := time.Now(), 0
			for turns.Refused(); tries <= refusedPauses && turns.Hurry(); turns.Refused() {
				tries++
			}
			want := refusedPause<<refusedPauses - refusedPause
			if got := time.Since(began); tries != refusedPauses || got != want {
				t.Errorf("%d tries in %v, expected %d in %v", tries, got, refusedPauses, want)
			}
		}
	})
}
