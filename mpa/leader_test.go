package mpa

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestAReaderSeesWhetherSomebodyCame(t *testing.T) {
	l := newLeader()
	for i, visits := range []int{0, 1, 0, 4, 1, 0} {
		for range visits {
			l.visit()
		}
		if got := l.came(); got != (visits > 0) {
			t.Errorf("step %d, %d visits: %v", i, visits, got)
		}
	}
}

// The reader sleeps for those who have come many times in a row, and for those who then
// stayed away sooner than they had come, only after twice as many.
func TestAReaderSleepsForThoseWhoLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader()
		row := func() int {
			for n := 0; ; n++ {
				if l.lasts() {
					return n
				}
				l.visit()
				l.came()
			}
		}
		for i, v := range []struct {
			need, stay int
		}{{16, 16}, {16, 15}, {32, 0}, {64, 63}, {128, 128}, {64, 1000}, {32, 32}, {16, 0},
			{32, 0}, {64, 0}, {128, 0}, {128, 128}, {64, 0}} {
			if n := row(); n != v.need {
				t.Errorf("step %d: sleeps after %d visits, expected %d", i, n, v.need)
			}
			sleeping(&l, func() {
				for range v.stay {
					l.visit()
				}
			})
		}
		for range ledLong - 1 {
			l.visit()
			l.came()
		}
		l.came()
		if n := row(); n != ledMost {
			t.Errorf("sleeps %d visits after one time that nobody came, expected %d", n, ledMost)
		}
	})
}

// What lay there while nobody came has had to wait: the reader takes longer to trust
// those who come again. It is no matter if it came when the reader had its seat, or had
// been given it back.
func TestAReaderRemembersWhatNobodyCameFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader()
		for i, v := range []struct {
			to     seat
			waited bool
			need   int
		}{
			{lapsed, true, 16}, {readers, false, 16}, {lapsed, false, 64}, {lapsed, true, 32},
			{readers, false, 16}, {lapsed, false, 64}, {lapsed, false, 128}, {lapsed, false, 128},
		} {
			done := make(chan struct{})
			go func() {
				l.sleep(new(atomic.Bool))
				close(done)
			}()
			synctest.Wait()
			for range l.need {
				l.visit()
			}
			l.reclaim(v.to)
			<-done
			l.found(v.waited)
			l.found(false)
			if l.need != v.need {
				t.Errorf("step %d: sleeps after %d visits, expected %d", i, l.need, v.need)
			}
		}
	})
}

// sleeping has the reader sleep, calls others, and gives its seat back.
func sleeping(l *leader, others func()) {
	done := make(chan struct{})
	go func() {
		l.sleep(new(atomic.Bool))
		close(done)
	}()
	synctest.Wait()
	others()
	l.reclaim(readers)
	<-done
}

// One at a time has the seat; who comes in vain sleeps, and the reader sees to what he
// sleeps for.
func TestASeatIsOnesAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader()
		for range ledLong {
			l.visit()
			l.came()
		}
		for range 2 {
			if l.take() {
				t.Fatal("the reader's seat was taken")
			}
		}
		if l.lasts() {
			t.Error("the reader leaves to nobody what comes next")
		}
		l.sleep(new(atomic.Bool)) // not at all
		if l.found(true); !l.lasts() {
			t.Error("the reader keeps what has come")
		}
		sleeping(&l, func() {
			for range 3 {
				if !l.take() {
					t.Error("a free seat cannot be taken")
				}
				l.reclaim(readers)
				synctest.Wait()
				if l.seat.Load() != taken {
					t.Error("the reader took the seat of somebody who waits")
				}
				l.leave(free)
			}
		})
		for _, v := range []struct {
			twice bool
			to    seat
		}{{false, readers}, {true, readers}, {true, free}} {
			sleeping(&l, func() {
				l.take()
				for range 2 {
					if v.twice && l.take() {
						t.Error("the seat was taken twice")
					}
				}
				l.leave(v.to)
				synctest.Wait()
				if seat := l.seat.Load(); seat != readers {
					t.Errorf("the seat is %d, expected the reader's", seat)
				}
			})
		}
		closing := new(atomic.Bool)
		closing.Store(true)
		l.sleep(closing)
	})
}

// The watchdog finds a seat neglected that is free for a whole nap.
func TestAWatchdogFindsWhatIsNeglected(t *testing.T) {
	l := newLeader()
	see := func(when string, want bool) {
		t.Helper()
		if got := l.neglected(); got != want {
			t.Errorf("%s: %v, expected %v", when, got, want)
		}
	}
	see("the reader's", false)
	l.visit()
	l.seat.Store(free)
	see("just left", false)
	see("left", true)
	l.visit()
	see("visited", false)
	l.take()
	see("taken", false)
	for i := range 2 * ledIdle {
		if l.long() != (i+1 >= ledIdle) {
			t.Errorf("after %d naps: %v", i, l.long())
		}
		see("taken", false)
	}
	l.leave(free)
	l.take()
	see("taken again", false)
	if l.long() {
		t.Error("a wait that has just begun is long")
	}
	l.leave(free)
	see("given back", false)
	see("nobody since", true)
}
