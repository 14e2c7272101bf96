package verbs_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// What happens in each state to requests that are posted, and how the state is reached.
//
// Claims: R-7-3 DDP-3-3 DDP-3-10
// Claims: V-6.2.1-1 V-6.2.1-2 V-6.2.1.3-1 V-6.2.3-6 V-6.2.4-3 V-6.2.4-6 V-6.1.4-4 V-8.2.4-2
// Claims: V-9.5.2-2 V-6.2.1-5 V-8.2.4-4
func TestEachStateTreatsPostsAsTheVerbsSay(t *testing.T) {
	post := func(t *testing.T, s *side, id uint64) {
		t.Helper()
		check(t, s.qp.PostSend(verbs.SendWR{ID: id, Op: verbs.OpSend}))
		check(t, s.qp.PostRecv(verbs.RecvWR{ID: id}))
	}
	flushed := func(t *testing.T, s *side, ids ...uint64) {
		t.Helper()
		for _, id := range ids {
			wantDone(t, s.sendCQ, done{id, verbs.Flushed})
			wantDone(t, s.recvCQ, done{id, verbs.Flushed})
		}
	}
	bubble(t, reads, reads, func(t *testing.T, s *table) {
		a := s.a
		s.y.Hold()
		a.post(a.read(1, s.b, 0, 8))
		check(t, a.qp.PostRecv(verbs.RecvWR{ID: 1}))
		check(t, a.qp.Terminate())
		post(t, a, 2) // Terminate
		quiesce()
		if at := a.qp.State(); at != verbs.Terminate {
			t.Fatalf("the state is %v", at)
		}
		wantNone(t, a.sendCQ)
		wantError(t, a.qp.Reset(), verbs.ErrState)
		s.y.Resume()
		flushed(t, a, 1, 2)
		reach(t, a.qp, verbs.Error)
		post(t, a, 3) // Error
		flushed(t, a, 3)
		check(t, a.qp.Reset())
		post(t, a, 4) // Idle
		quiesce()
		wantNone(t, a.sendCQ)
		wantNone(t, a.recvCQ)
		if at, err := a.qp.State(), a.qp.Err(); at != verbs.Idle || err != nil {
			t.Errorf("%v, %v after Reset", at, err)
		}
		a.qp.Abort() // Idle to Error
		flushed(t, a, 4)
		check(t, a.qp.Reset())
		post(t, a, 5)
		check(t, a.qp.Destroy())
		quiesce()
		wantNone(t, a.sendCQ) // what was held in Idle is dropped
		for _, err := range []error{
			a.qp.PostSend(verbs.SendWR{Op: verbs.OpSend}), a.qp.PostRecv(verbs.RecvWR{}), a.qp.Reset(), a.qp.Terminate(), a.qp.Destroy(),
		} {
			wantError(t, err, verbs.ErrQP)
		}
		a.qp.Abort()
		wantNone(t, a.recvCQ)
		wantError(t, a.qp.Establish(nil, verbs.Terms{}), verbs.ErrQP)
	})
}

// WaitState returns when its state is reached, and when its context ends.
func TestWaitStateEndsWithItsContext(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	if at, err := s.qp.WaitState(t.Context(), verbs.RTS, verbs.Idle); at != verbs.Idle || err != nil {
		t.Errorf("%v, %v", at, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if at, err := s.qp.WaitState(ctx, verbs.RTS); at != verbs.Idle || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", at, err)
	}
}

// A queue pair that is destroyed enters no other state.
func TestWaitStateEndsWithItsQueuePair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSide(t, verbs.QPConfig{})
		ended := make(chan error, 1)
		go func() {
			_, err := s.qp.WaitState(t.Context(), verbs.RTS)
			ended <- err
		}()
		synctest.Wait()
		if err := s.qp.Destroy(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case err := <-ended:
			if !errors.Is(err, verbs.ErrQP) {
				t.Errorf("%v, expected %v", err, verbs.ErrQP)
			}
		default:
			t.Fatal("it waits still")
		}
		if at, err := s.qp.WaitState(t.Context(), verbs.RTS, verbs.Idle); at != verbs.Idle || err != nil {
			t.Errorf("%v, %v, expected its last state", at, err)
		}
	})
}

// Establish accepts only an Idle queue pair, and terms within the limits. If it fails, the
// LLP stream remains the caller's.
func TestEstablishRefusesWhatItCannotTake(t *testing.T) {
	bubble(t, reads, reads, func(t *testing.T, s *table) {
		other := newSideOf(t, verbs.Config{Limits: verbs.Limits{IRD: 4, ORD: 4}}, reads)
		x, y := iwarptest.Pipe()
		mc := newMPA(x)
		wantError(t, s.a.qp.Establish(mc, verbs.Terms{}), verbs.ErrState)
		wantError(t, other.qp.Establish(nil, verbs.Terms{}), verbs.ErrLLP)
		wantError(t, other.qp.Establish(mc, verbs.Terms{IRD: 5}), verbs.ErrIRD)
		wantError(t, other.qp.Establish(mc, verbs.Terms{ORD: 5}), verbs.ErrORD)
		wantError(t, other.qp.Establish(mc, verbs.Terms{ORD: -1}), verbs.ErrORD)
		wantError(t, other.qp.Establish(mc, verbs.Terms{IRD: -1}), verbs.ErrIRD)
		dead := other.newQP(reads)
		check(t, dead.Destroy())
		wantError(t, dead.Establish(mc, verbs.Terms{}), verbs.ErrQP)
		if dead.Ready() != nil {
			t.Error("a queue pair without a stream has something to be ready")
		}
		if at := other.qp.State(); at != verbs.Idle {
			t.Errorf("the state is %v", at)
		}
		check(t, mc.Close()) // still the caller's
		if _, err := y.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("octets were sent: %v", err)
		}
	})
}
