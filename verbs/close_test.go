package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// A graceful close waits for the work of both sides, leaves both Idle with their
// receives flushed, and lets them be connected again.
//
// Claims: DDP-6.2.1-2 DDP-6.2.1-5 DDP-3-12 DDP-6.2.1-1 DDP-6.2.1-6
// Claims: V-6.2.1-1 V-6.2.1.2-2 V-6.2.2.2-3 V-6.2.5-5 V-6.2.5-6 V-6.2.5-12 V-6.6.2.1-1 V-6.1.1-4
// Claims: V-9.5.3-2 V-6.6.2-1 V-6.6.2.1-2
// Claims: R-2.4-4 R-6.2-1 R-6.2-2
func TestACloseWaitsForWorkAndLeavesTheQueuePairsIdle(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := newSide(t, reads), newSide(t, reads)
		for round := range 3 {
			if round == 1 {
				w.connect(t, b.qp, a.qp, cm.Params{}) // the other way round
			} else {
				w.connect(t, a.qp, b.qp, cm.Params{})
			}
			x, y := a, b
			if round == 1 {
				x, y = b, a
			}
			y.receives(10, 3, 100)
			x.receives(20, 2, 100)
			x.post(x.write(1, y, 1000, 500000), x.read(2, y, 1000, 500000), x.send(3, 600000, 100)) // apart from each other and the receives
			check(t, x.qp.Close(t.Context()))
			wantDone(t, x.sendCQ, done{1, verbs.Success}, done{2, verbs.Success}, done{3, verbs.Success})
			wantDone(t, x.recvCQ, done{20, verbs.Flushed}, done{21, verbs.Flushed})
			reach(t, y.qp, verbs.Idle)
			wantDone(t, y.recvCQ, done{10, verbs.Success}, done{11, verbs.Flushed}, done{12, verbs.Flushed})
			for _, s := range []*side{x, y} {
				if s.qp.State() != verbs.Idle || s.qp.Err() != nil {
					t.Errorf("after a graceful close: %v, %v", s.qp.State(), s.qp.Err())
				}
			}
			check(t, x.qp.Close(t.Context())) // it is closed
		}
		a.wantEvents(verbs.EventLLPCloseComplete, verbs.EventLLPCloseComplete, verbs.EventLLPCloseComplete)
	})
}

// While the queue pair closes nothing can be posted, and the state cannot be
// changed (Verbs §6.2.5).
//
// Claims: V-6.2.5-2 V-6.2.5-4 V-6.2.5-5
func TestNothingIsPostedInClosing(t *testing.T) {
	bubble(t, reads, reads, func(t *testing.T, s *table) {
		s.a.receives(1, 2, 8)
		s.y.Hold() // the peer's FIN
		closed := make(chan error, 1)
		go func() { closed <- s.a.qp.Close(t.Context()) }()
		quiesce()
		if at := s.a.qp.State(); at != verbs.Closing {
			t.Fatalf("the state is %v", at)
		}
		wantError(t, s.a.qp.PostSend(s.a.write(1, s.b, 0, 8)), verbs.ErrState)
		wantError(t, s.a.qp.PostRecv(verbs.RecvWR{}), verbs.ErrState)
		wantError(t, s.a.qp.Terminate(), verbs.ErrState)
		wantError(t, s.a.qp.Reset(), verbs.ErrState)
		wantNone(t, s.a.recvCQ)
		s.y.Resume()
		check(t, <-closed)
		wantDone(t, s.a.recvCQ, done{1, verbs.Flushed}, done{2, verbs.Flushed})
		s.a.wantEvents(verbs.EventLLPCloseComplete)
	})
}

// Close does not lose what is posted while it waits for the queue to be empty.
func TestCloseWaitsForWhatIsPostedMeanwhile(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		for range 20 {
			a, b := linked(t, w, verbs.QPConfig{SendDepth: 64}, verbs.QPConfig{})
			posted := make(chan int)
			go func() {
				n := 0
				for ; n < 64; n++ {
					if err := a.qp.PostSend(a.write(uint64(n), b, 0, 100)); err != nil {
						wantError(t, err, verbs.ErrState)
						break
					}
				}
				posted <- n
			}()
			check(t, a.qp.Close(t.Context())) // gracefully, whenever that was
			n := nettest.Await(t, posted)
			a.qp.Abort() // what came so late that the queue pair was Idle again is held
			flushed := false
			for _, wc := range take(t, a.sendCQ, n) {
				if flushed && wc.Status == verbs.Success {
					t.Fatalf("request %d: %v, behind one that was flushed", wc.ID, wc.Status)
				}
				flushed = flushed || wc.Status == verbs.Flushed
			}
			a.wantEvents(verbs.EventLLPCloseComplete)
			check(t, a.rnic.Close())
			check(t, b.rnic.Close())
		}
	})
}

func TestCloseEndsWithItsContext(t *testing.T) {
	for _, tt := range []struct {
		name string
		work bool // a Read stays unanswered, or else only the peer's FIN is missing
	}{{"work outstanding", true}, {"peer does not close", false}} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, reads, reads, func(t *testing.T, s *table) {
				s.y.Hold()
				want := []done{}
				if tt.work {
					s.a.post(s.a.read(1, s.b, 0, 8))
					want = append(want, done{1, verbs.Flushed})
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				wantError(t, s.a.qp.Close(ctx), context.DeadlineExceeded)
				if at := s.a.qp.State(); at != verbs.Error {
					t.Errorf("the state is %v", at)
				}
				wantDone(t, s.a.sendCQ, want...)
			})
		})
	}
}

// Closing and Terminate are bounded (Verbs §6.2): a peer that does not close is
// left after CloseTimeout, whatever it does.
//
// Claims: V-6.2.3-5 V-6.2.3-9 V-6.2.5-9 V-6.2.5-10 V-6.6.2.2-1
// Claims: V-9.5.3-5
func TestAPeerCannotHoldUpTheEnd(t *testing.T) {
	for _, tt := range []struct {
		name   string
		begin  func(a *side)
		events []verbs.EventID
	}{
		{"Closing", func(a *side) { go func() { _ = a.qp.Close(a.t.Context()) }() }, []verbs.EventID{verbs.EventLLPLost}},
		{"Terminate", func(a *side) { check(a.t, a.qp.Terminate()) }, []verbs.EventID{verbs.EventBadClose}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := newSideOf(t, verbs.Config{CloseTimeout: time.Minute}, reads), newSide(t, reads)
				x, y := iwarptest.Pipe()
				join(t, a.qp, b.qp, x, y, cm.Params{})
				quiesce()
				y.Hold()
				begun := time.Now()
				tt.begin(a)
				if at, err := a.qp.WaitState(t.Context(), verbs.Error); err != nil {
					t.Fatal(at, err)
				}
				if took := time.Since(begun); took != time.Minute {
					t.Errorf("it took %v, expected one minute", took)
				}
				a.wantEvents(tt.events...)
				var term *rdmap.TerminateError // of our own, which came first
				if err := a.qp.Err(); !errors.As(err, &term) && !strings.Contains(err.Error(), "in time") {
					t.Errorf("the error is %v, expected one that names the time limit", err)
				}
			})
		})
	}
}

// A responder may not send before the initiator has (RFC 5044 §7.1.2): then the
// stream is reset in place of a Terminate message (Verbs §6.6.2.2).
func TestATerminateThatMayNotBeSentResets(t *testing.T) {
	for _, tt := range []struct {
		name   string
		end    func(b *side) error
		events []verbs.EventID // b's
	}{
		{"Terminate", func(b *side) error { return b.qp.Terminate() }, []verbs.EventID{verbs.EventBadClose}},
		{"the queue pair fails", func(b *side) error { return b.qp.Fail() }, []verbs.EventID{verbs.EventQPCatastrophic}},
		{"a CQ fails", func(b *side) error { return b.recvCQ.Fail() }, []verbs.EventID{verbs.EventCQOperation, verbs.EventCQRQ}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, reads, reads, func(t *testing.T, s *table) {
				check(t, tt.end(s.b))
				quiesce()
				reach(t, s.a.qp, verbs.Error)
				reach(t, s.b.qp, verbs.Error)
				s.a.wantEvents(verbs.EventLLPReset)
				s.b.wantEvents(tt.events...)
			})
		})
	}
}

// A stream that failed at the responder before the initiator's first message had
// arrived is no graceful close to the initiator, whose requests may have completed
// long ago.
func TestAFailureBeforeTheFirstMessageIsNoGracefulClose(t *testing.T) {
	damaged := func(at uint64, mask byte) func(s *table) {
		return func(s *table) {
			s.x.Corrupt(s.x.Written()+at, mask)
			s.a.post(s.a.write(1, s.b, 0, 8), s.a.send(2, 0, 8))
		}
	}
	both := []done{{1, verbs.Success}, {2, verbs.Success}}
	for _, tt := range []struct {
		name  string
		begin func(s *table)
		done  []done        // a's completions
		event verbs.EventID // b's
	}{
		{"a length that is too long", damaged(0, 0xFF), both, verbs.EventBadFPDU},
		{"another length", damaged(1, 4), both, verbs.EventCRC},
		{"a header", damaged(5, 1), both, verbs.EventCRC},
		{"payload", damaged(20, 1), both, verbs.EventCRC},
		{"the CRC", damaged(fpdu(14+8)-1, 1), both, verbs.EventCRC},
		{"a queue that waits for the first message", func(s *table) { s.b.post(s.b.send(1, 0, 8)) }, nil, verbs.EventBadLLPClose},
	} {
		for _, closes := range []bool{false, true} {
			if tt.done == nil && !closes {
				continue
			}
			t.Run(fmt.Sprintf("%s, then closed: %t", tt.name, closes), func(t *testing.T) {
				bubble(t, reads, reads, func(t *testing.T, s *table) {
					s.b.receives(1, 2, 8)
					event := verbs.EventLLPReset
					if closes {
						event = verbs.EventLLPLost
						s.x.Hold() // all of it arrives when this side has closed
					}
					tt.begin(s)
					if closes {
						ended := make(chan error, 1)
						go func() { ended <- s.a.qp.Close(t.Context()) }()
						quiesce()
						s.x.Resume()
						if err := <-ended; err == nil {
							t.Error("closed gracefully")
						}
					}
					reach(t, s.a.qp, verbs.Error)
					reach(t, s.b.qp, verbs.Error)
					wantError(t, s.a.qp.Err(), syscall.ECONNRESET)
					wantDone(t, s.a.sendCQ, tt.done...)
					s.a.wantEvents(event)
					s.b.wantEvents(tt.event)
					wantDone(t, s.b.recvCQ, []done{{1, verbs.Flushed}, {2, verbs.Flushed}}...)
				})
			})
		}
	}
}

// Modify QP to Terminate: the peer gets a Terminate message without an error,
// and both sides end in Error with what is outstanding flushed.
//
// Claims: V-6.2.2.3-1 V-6.2.3-8 V-6.2.3-10 V-6.6.2.2-1 V-6.6.2.4-1
// Claims: V-6.6.2-1
// Claims: R-6.2-1
func TestTerminateTellsThePeer(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, reads, reads)
		a.receives(1, 2, 8)
		b.receives(1, 2, 8)
		check(t, a.qp.Terminate())
		wantTold(t, b)
		reach(t, a.qp, verbs.Error)
		a.wantEvents()
		var term *rdmap.TerminateError
		if !errors.As(a.qp.Err(), &term) || term.Remote {
			t.Errorf("the error is %v", a.qp.Err())
		}
		for _, s := range []*side{a, b} {
			wantDone(t, s.recvCQ, done{1, verbs.Flushed}, done{2, verbs.Flushed})
			wantError(t, s.qp.Terminate(), verbs.ErrState)
		}
	})
}

// Modify QP to Error: no message, a reset.
//
// Claims: V-6.2.2.4-1
// Claims: V-4-8 V-6.6.2-1 V-6.4-12
func TestAbortResetsTheStream(t *testing.T) {
	nettest.CheckLeaks(t)
	a, b := linked(t, wires[0], reads, reads)
	a.receives(1, 2, 8)
	a.qp.Abort()
	if at := a.qp.State(); at != verbs.Error {
		t.Errorf("the state is %v", at)
	}
	wantDone(t, a.recvCQ, done{1, verbs.Flushed}, done{2, verbs.Flushed})
	b.wantEvents(verbs.EventLLPReset)
	reach(t, b.qp, verbs.Error)
	wantError(t, b.qp.Err(), syscall.ECONNRESET)
	a.wantEvents()
	a.qp.Abort() // changes nothing
}

// The peer goes in its various ways; what was outstanding is flushed.
//
// Claims: DDP-3-11
// Claims: V-6.2.2.2-1 V-6.2.2.2-2
// Claims: V-9.5.3-2 V-9.5.3-4 V-9.5.3-23 V-4-8 V-6.6.2-1
// Claims: R-6.2-1
func TestThePeersEndIsToldAsWhatItWas(t *testing.T) {
	lost := func(err error) bool { return errors.Is(err, syscall.ECONNRESET) }
	for _, tt := range []struct {
		name  string
		work  bool // a Read is outstanding, or else nothing is
		end   func(s *table)
		event verbs.EventID
		state verbs.State
		err   func(error) bool
	}{
		{"FIN, nothing outstanding", false, func(s *table) { _ = s.y.CloseWrite() },
			verbs.EventLLPCloseComplete, verbs.Idle, func(err error) bool { return err == nil }},
		{"FIN, work outstanding", true, func(s *table) { s.y.FinAfter(s.y.Written()) },
			verbs.EventBadLLPClose, verbs.Error, func(err error) bool {
				term, ok := err.(*rdmap.TerminateError)
				return ok && !term.Remote && term.Layer == 0 && term.EType == 2 && term.Code == 7
			}},
		{"reset, nothing outstanding", false, func(s *table) { _ = s.y.Reset() }, verbs.EventLLPReset, verbs.Error, lost},
		{"reset, work outstanding", true, func(s *table) { s.y.ResetAfter(s.y.Written()) }, verbs.EventLLPReset, verbs.Error, lost},
		{"reset within a message", true, func(s *table) { s.y.ResetAfter(s.y.Written() + 10) }, verbs.EventLLPReset, verbs.Error, lost},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, reads, reads, func(t *testing.T, s *table) {
				s.a.receives(9, 1, 8)
				if tt.work {
					s.x.Hold()
					s.a.post(s.a.read(1, s.b, 0, 8)) // whose answer meets the end
					quiesce()
				}
				tt.end(s)
				s.x.Resume()
				if tt.work {
					wantDone(t, s.a.sendCQ, done{1, verbs.Flushed})
				}
				reach(t, s.a.qp, tt.state)
				s.a.wantEvents(tt.event)
				if err := s.a.qp.Err(); !tt.err(err) {
					t.Errorf("the error is %v", err)
				}
				wantDone(t, s.a.recvCQ, done{9, verbs.Flushed})
				wantError(t, s.a.qp.Close(t.Context()), s.a.qp.Err())
			})
		})
	}
}

// Many goroutines end a queue pair in all ways at once: it ends, once, and
// everything that was posted completes exactly once.
func TestManyMayEndAQueuePairAtOnce(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		for round := range 30 {
			a, b := linked(t, w, verbs.QPConfig{SendDepth: 8, ORD: 4}, reads)
			b.receives(0, 1, 8)
			for i := range uint64(8) {
				a.post(a.read(i, b, 0, 10000))
			}
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			ends := []func(){
				func() { _ = a.qp.Close(ctx) },
				func() { _ = a.qp.Close(t.Context()) },
				func() { _ = a.qp.Terminate() },
				func() { a.qp.Abort() },
				func() { _ = b.qp.Close(ctx) },
				func() { _ = b.qp.Terminate() },
				cancel,
				func() { _, _ = a.qp.WaitState(t.Context(), verbs.Error, verbs.Idle) },
			}
			for i := range ends {
				wg.Go(ends[(i+round)%len(ends)])
			}
			nettest.AwaitGroup(t, &wg)
			if _, err := b.qp.WaitState(t.Context(), verbs.Error, verbs.Idle); err != nil {
				t.Fatal(err)
			}
			flushed := false
			for i, wc := range take(t, a.sendCQ, 8) {
				flushed = flushed || wc.Status == verbs.Flushed
				if wc.ID != uint64(i) || flushed != (wc.Status == verbs.Flushed) {
					t.Fatalf("completion %d is of %d: %v", i, wc.ID, wc.Status)
				}
			}
			wantNone(t, a.sendCQ)
			wantDone(t, b.recvCQ, done{0, verbs.Flushed})
			// And destroyed by many.
			var destroyed int
			var mu sync.Mutex
			for range 3 {
				wg.Go(func() {
					if a.qp.Destroy() == nil {
						mu.Lock()
						destroyed++
						mu.Unlock()
					}
				})
			}
			wg.Go(func() { check(t, b.rnic.Close()) })
			nettest.AwaitGroup(t, &wg)
			if destroyed != 1 {
				t.Fatalf("destroyed %d times", destroyed)
			}
			check(t, a.rnic.Close())
		}
	})
}

// Destroy of a connected queue pair resets the stream and flushes it.
//
// Claims: V-6.1.4-2
func TestDestroyEndsTheStream(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, reads, reads)
		a.receives(1, 1, 8)
		check(t, a.qp.Destroy())
		wantDone(t, a.recvCQ, done{1, verbs.Flushed})
		if _, err := b.qp.WaitState(t.Context(), verbs.Error, verbs.Idle); err != nil {
			t.Fatal(err)
		}
		if u := a.rnic.Usage(); u.QPs != 0 {
			t.Errorf("usage %+v", u)
		}
	})
}

func TestAPeerIsOwedTheAnswerThatConfirmsWhatItSent(t *testing.T) {
	bubble(t, reads, reads, func(t *testing.T, s *table) {
		unconfirmed := func(want bool, when string) {
			t.Helper()
			quiesce()
			if got := s.b.qp.Unconfirmed(); got != want {
				t.Errorf("%s: unconfirmed is %v", when, got)
			}
		}
		s.b.receives(10, 2, 8)
		unconfirmed(false, "at first")
		s.a.post(s.a.send(1, 0, 8))
		unconfirmed(true, "after a Send")
		s.a.post(s.a.read(2, s.b, 0, 8))
		unconfirmed(false, "after a Read")
		s.a.post(s.a.write(3, s.b, 0, 8))
		unconfirmed(true, "after a Write")
		check(t, s.b.qp.Close(t.Context()))
		unconfirmed(false, "without a stream")
	})
}
