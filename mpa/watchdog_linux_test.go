package mpa

import (
	"testing"
	"testing/synctest"
	"time"
)

// The watchdog gives back a seat that nobody comes to, and any whose reader has a
// deadline to look at. The reader is told which of the two.
func TestAWatchdogSaysWhyItGivesBackASeat(t *testing.T) {
	for _, v := range []struct {
		name  string
		come  bool
		limit time.Time
		want  seat
	}{
		{"nobody comes", false, time.Time{}, lapsed},
		{"somebody comes", true, time.Time{}, free},
		{"the reader has a deadline", true, time.Unix(1<<40, 0), readers},
	} {
		s := &socket{leader: newLeader(), deadline: &readDeadline{until: v.limit}}
		s.leader.seat.Store(free)
		if v.come {
			s.leader.visit()
		}
		s.tend()
		if seat := s.leader.seat.Load(); seat != v.want {
			t.Errorf("%s: the seat is %d, expected %d", v.name, seat, v.want)
		}
	}
}

// The watchdog ends a wait whose context is done, and one that has become long, and
// interrupts nobody else.
func TestAWatchdogEndsWaits(t *testing.T) {
	done := make(chan struct{})
	close(done)
	for _, v := range []struct {
		name  string
		waits bool
		done  <-chan struct{}
		naps  int // so far
		ends  bool
	}{
		{"one that may go on", true, make(chan struct{}), 0, false},
		{"nearly long", true, nil, ledIdle - 2, false},
		{"long", true, nil, ledIdle - 1, true},
		{"its context is done", true, done, 0, true},
		{"it is over", false, nil, ledIdle - 1, false},
	} {
		s := &socket{leader: newLeader(), deadline: &readDeadline{nc: &fed{}}}
		s.leader.take() // in vain: a visit
		s.leader.found(true)
		s.leader.seat.Store(taken)
		s.leader.seen, s.leader.naps = s.leader.visits.Load()-1, v.naps
		s.patience.set(v.waits, v.done)
		s.tend()
		if ends := s.deadline.calm(); ends != v.ends {
			t.Errorf("%s: ended: %v, expected %v", v.name, ends, v.ends)
		}
	}
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
