package verbs

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/ddp"
)

// A source is a Poller that finds something when it is there.
type source struct {
	noter
	cq    *CQ
	there bool
	looks int
}

func (s *source) Poll() bool {
	s.looks++
	if !s.there {
		return false
	}
	s.there = false
	s.complete()
	return true
}

// complete adds a completion.
func (s *source) complete() { s.cq.push(&WC{QP: &QP{}}) }

// polls calls Poll until there is a completion, or limit times, and returns the number of empty polls.
func (s *source) polls(limit int, pause time.Duration) (empty int) {
	var wcs [1]WC
	for s.cq.Poll(wcs[:]) == 0 {
		if empty++; empty == limit {
			break
		}
		time.Sleep(pause)
	}
	return empty
}

func newSource(pollers ...ddp.Poller) *source {
	cq := &CQ{entries: 4, ring: make([]WC, 4), empty: emptyPolls{limit: firstLimit}, wake: make(chan struct{}, 1)}
	s := &source{cq: cq}
	for _, p := range append(pollers, s) {
		cq.watch(p)
	}
	return s
}

// A consumer that polls in a loop polls the connections, the sooner the more often they have octets.
func TestAConsumerThatPollsInALoopReceivesWithoutSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.there = true
		if n := s.polls(10*loopPolls, time.Microsecond); n >= 3*loopPolls || s.looks != 1 {
			t.Fatalf("%d empty polls and %d looks into the connection before it was received from, expected fewer than %d and one", n, s.looks, 3*loopPolls)
		}
		for range 10 {
			s.there = true
			s.polls(10*loopPolls, time.Microsecond)
		}
		s.there = true
		if n := s.polls(10, time.Microsecond); n != 0 {
			t.Errorf("%d empty polls after many that received, expected none", n)
		}
	})
}

// A consumer that works between its polls leaves the connections to their readers.
func TestAConsumerThatPausesBetweenPollsDoesNotReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.there = true
		s.polls(loopPolls, time.Microsecond)
		looks := s.looks
		s.polls(2*loopPolls, 2*loopTime/loopPolls) // one row of which is all slow
		after := s.looks
		if s.polls(10*loopPolls, 2*loopTime/loopPolls); s.looks != after {
			t.Errorf("%d looks, and %d more after pauses, expected none", looks, s.looks-after)
		}
	})
}

// Completions that come without a look, as those of Sends do, make looks rarer.
func TestLooksThatFindNothingBecomeRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		for range 100 {
			s.polls(2*firstLimit, 0)
			s.complete()
			s.polls(1, 0)
		}
		before := s.looks
		for range 100 {
			s.polls(2*firstLimit, 0)
			s.complete()
			s.polls(1, 0)
		}
		if got := s.looks - before; got != 0 {
			t.Errorf("%d looks in 100 rows of empty polls, expected none", got)
		}
	})
}

// Before it sleeps, a consumer that has polled connections leaves each of them.
func TestAConsumerThatHasPolledConnectionsLeavesThem(t *testing.T) {
	for _, v := range []struct {
		polls, left int
	}{{1, 0}, {3 * loopPolls, 1}} {
		other := &noter{}
		s := newSource(other)
		s.polls(v.polls, 0)
		for _, n := range []*noter{other, &s.noter} {
			n.calls = nil
		}
		for range 2 {
			s.cq.mu.Lock()
			s.cq.leaveToReaders()
			s.cq.mu.Unlock()
		}
		for _, n := range []*noter{other, &s.noter} {
			if len(n.calls) != v.left {
				t.Errorf("after %d empty polls: %q, expected to be left %d times", v.polls, n.calls, v.left)
			}
		}
	}
}

// A busy source has octets at each look, and never a completion.
type busySource struct {
	noter
	looks int
}

func (s *busySource) Poll() bool { s.looks++; return true }

// Each connection has its turn, however much there is to be received from another one.
func TestLooksTakeTurns(t *testing.T) {
	for _, spin := range []time.Duration{0, 1} {
		one, other := &busySource{}, &busySource{}
		cq := &CQ{cfg: CQConfig{Spin: spin}, entries: 4, ring: make([]WC, 4), empty: emptyPolls{limit: firstLimit}, wake: make(chan struct{}, 1)}
		cq.watch(one)
		cq.watch(other)
		for range 100 * loopPolls {
			cq.Poll(nil)
		}
		if one.looks-other.looks > 1 || other.looks-one.looks > 1 || one.looks < loopPolls {
			t.Errorf("Spin %v: %d looks into one connection, and %d into the other", spin, one.looks, other.looks)
		}
	}
}

// A loop of polls lets other goroutines have the only processor.
func TestALoopOfPollsLetsOthersRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, spin := range []time.Duration{0, 1} {
		s := newSource()
		s.cq.cfg.Spin = spin
		ran, over := make(chan struct{}), false
		go close(ran)
		for n := 0; n < 100*loopPolls && !over; n++ {
			s.cq.Poll(nil)
			select {
			case <-ran:
				over = true
			default:
			}
		}
		if !over {
			t.Errorf("Spin %v: nobody else has run", spin)
		}
	}
}
