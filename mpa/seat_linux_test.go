package mpa

// The seat of one socket, and what it tells those who come for it.

import (
	"context"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The reader leaves its seat to those who come each time that it has waited for little.
func TestAReaderLeavesTheWaitForLittle(t *testing.T) {
	for _, v := range []struct {
		name   string
		s      *socket
		n      int
		parked bool
		come   bool
		leaves bool
		limit  time.Time
	}{
		{"", &socket{}, 100, true, true, true, time.Time{}},
		{"much", &socket{}, bulkRead - 1, true, true, true, time.Time{}},
		{"too much", &socket{}, bulkRead, true, true, false, time.Time{}},
		{"it was there", &socket{}, 100, false, true, false, time.Time{}},
		{"nobody comes", &socket{}, 100, true, false, false, time.Time{}},
		{"it polls", &socket{spin: 1}, 100, true, true, false, time.Time{}},
		{"one processor", &socket{bound: true}, 100, true, true, false, time.Time{}},
		{"a ULPDU is being placed", &socket{sink: &collector{}}, 100, true, true, false, time.Time{}},
		{"it has a deadline", &socket{}, 100, true, true, false, time.Now()},
	} {
		s := v.s
		s.leader, s.ahead, s.deadline = newLeader(), &readAhead{}, &readDeadline{until: v.limit}
		for i := range 3 * ledLong {
			s.n, s.parked = v.n, v.parked
			if v.come {
				s.leader.visit()
			}
			if got, want := s.awaited(), v.leaves && i+1 >= ledLong; got != want {
				t.Errorf("%s: %v after %d times, expected %v", v.name, got, i+1, want)
			}
		}
		s.ahead.end = 1
		s.leader.visit()
		if s.n, s.parked = v.n, v.parked; s.awaited() {
			t.Errorf("%s: it leaves with octets of a ULPDU", v.name)
		}
	}
}

// A wait that was over before the connection was closed leaves the seat to the reader.
func TestTheReaderOfAClosedConnectionHasItsSeat(t *testing.T) {
	s := &socket{leader: newLeader(), deadline: &readDeadline{}}
	s.leader.seat.Store(taken)
	s.close()
	if s.leader.seat.Load() != taken {
		t.Fatal("who waited lost the seat")
	}
	s.unlead()
	if seat := s.leader.seat.Load(); seat != readers {
		t.Errorf("the seat is %d, expected the reader's", seat)
	}
}

// Closing does not wait for the watchdog.
func TestClosingGivesBackAFreeSeat(t *testing.T) {
	s := &socket{leader: newLeader()}
	s.leader.seat.Store(free)
	s.close()
	if seat := s.leader.seat.Load(); seat != readers {
		t.Errorf("the seat is %d, expected the reader's", seat)
	}
}

// The watchdog is told of the context, and of one that is done nobody need tell.
func TestAWaitHasItsContext(t *testing.T) {
	l := newLed(t, Params{})
	l.lead()
	s := l.socket()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		l.in.Await(ctx)
		close(over)
	}()
	for {
		s.patience.mu.Lock()
		waits, done := s.patience.waits, s.patience.done
		s.patience.mu.Unlock()
		if waits {
			if done != ctx.Done() {
				t.Error("it is not the context that the watchdog looks at")
			}
			break
		}
		runtime.Gosched()
	}
	cancel()
	<-over
	l.in.Unlead()
	if s.patience.mu.Lock(); s.patience.waits {
		t.Error("the watchdog may end a wait that is over")
	}
	s.patience.mu.Unlock()
	(&socket{}).await(ctx) // has no connection to wait for
	_ = l.out.CloseWrite()
	<-l.done
}

// An unwaiting is a RawConn that does not wait, and keeps whether it would have.
type unwaiting struct {
	syscall.RawConn
	waits []bool
}

func (g *unwaiting) Read(f func(uintptr) bool) error {
	return g.Control(func(fd uintptr) { g.waits = append(g.waits, !f(fd)) })
}

// Each wait is for octets that are not there yet, and only for those.
func TestAWaitLooksFirst(t *testing.T) {
	a, b := tcpPair(t)
	c := NewConn(b, Params{})
	s := c.transport.(*socket)
	g := &unwaiting{RawConn: s.rc}
	s.rc = g
	s.await(context.Background())
	s.await(context.Background())
	if _, err := a.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	_ = g.Control(func(fd uintptr) {
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1) // it has come
	})
	s.await(context.Background())
	if want := []bool{true, true, false}; !slices.Equal(g.waits, want) {
		t.Errorf("waits: %v, expected %v", g.waits, want)
	}
}

// The reader notes what lay there, and those who poll are noticed.
func TestASocketTellsItsLeader(t *testing.T) {
	a, b := tcpPair(t)
	c := NewConn(b, Params{Spin: 1})
	s := c.transport.(*socket)
	h := &c.reader.readAhead
	h.half.Lock()
	defer h.half.Unlock()
	if _, _ = s.look(h); s.leader.visits.Load() != 1 {
		t.Error("one who polls was not noticed")
	}
	if _, err := a.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	_ = s.rc.Control(func(fd uintptr) {
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
	})
	s.spin, s.leader.alone = 0, true
	if n, err := s.read(h); n != 1 || err != nil || s.leader.alone || s.leader.need != ledMissed*ledLong {
		t.Errorf("%d octets, %v: the reader trusts those who come %d times", n, err, s.leader.need)
	}
}
