package mpa

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAReaderSeesWhetherSomebodyCame(t *testing.T) {
	l := newLeader()
	for i, v := range []struct {
		visits uint32
		came   bool
	}{{0, false}, {1, true}, {1, false}, {5, true}, {0, true}, {0, false}} {
		if got := l.came(v.visits); got != v.came {
			t.Errorf("step %d, %d visits: %v, expected %v", i, v.visits, got, v.came)
		}
	}
}

// Who has come for long is left alone for a nap at a time, or until he leaves; who has
// not, or has left meanwhile, for a moment.
func TestAReaderSleepsWhileOthersPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader()
		visits := uint32(0)
		follow := func() time.Duration {
			visits++
			if !l.came(visits) {
				t.Fatal("a visit was not seen")
			}
			began := time.Now()
			l.follow()
			return time.Since(began)
		}
		for range ledLong - 1 {
			if d := follow(); d != 0 {
				t.Fatalf("slept %v after %d visits", d, visits)
			}
		}
		for range 3 {
			if d := follow(); d != nap {
				t.Errorf("slept %v while somebody comes all the time, expected %v", d, nap)
			}
		}
		time.AfterFunc(nap/4, l.left)
		if d := follow(); d != nap/4 {
			t.Errorf("slept %v, expected to be woken after %v", d, nap/4)
		}
		if d := follow(); d != 0 {
			t.Errorf("slept %v right after somebody left", d)
		}
		l.came(visits)
		for range ledLong - 1 {
			if d := follow(); d != 0 {
				t.Fatalf("slept %v after a pause", d)
			}
		}
	})
}
