package verbs_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// flusher makes a queue pair each of whose posts completes at once as Flushed:
// completions without a peer.
func (s *side) flusher(cfg verbs.QPConfig) *verbs.QP {
	s.t.Helper()
	qp := s.newQP(cfg)
	qp.Abort()
	return qp
}

// Claims: V-9.3.2.1-1 V-9.3.2.1-6
// Claims: V-9.3.1.1-3 V-9.3.2.1-5
func TestPollTakesCompletionsInTheOrderOfTheirMaking(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	qp := s.flusher(verbs.QPConfig{SendDepth: 10})
	if n := s.sendCQ.Poll(make([]verbs.WC, 4)); n != 0 {
		t.Errorf("an empty CQ gave %d completions", n)
	}
	for i := range 10 {
		check(t, qp.PostSend(verbs.SendWR{ID: uint64(i) + 1<<63, Op: verbs.OpSend}))
	}
	if n := s.sendCQ.Poll(nil); n != 0 {
		t.Errorf("no room was given, and %d completions taken", n)
	}
	var wcs [4]verbs.WC
	for i := 0; i < 10; {
		n := s.sendCQ.Poll(wcs[:])
		if n != min(4, 10-i) {
			t.Fatalf("%d completions, expected %d", n, min(4, 10-i))
		}
		for _, wc := range wcs[:n] {
			if wc.ID != uint64(i)+1<<63 || wc.QP != qp || wc.Status != verbs.Flushed || wc.Op != verbs.OpSend {
				t.Errorf("completion %d is %+v", i, wc)
			}
			i++
		}
	}
}

// Claims: V-5.3-3 V-5.3.1-2
// Claims: V-9.2.3.1-3
func TestAPolledCompletionMakesRoomForAnother(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 3}))(t)
	if cq.Entries() != 3 {
		t.Fatalf("%d entries, expected 3", cq.Entries())
	}
	qp := s.flusher(verbs.QPConfig{SendCQ: cq})
	for i := range uint64(3) {
		check(t, qp.PostSend(verbs.SendWR{ID: i, Op: verbs.OpSend}))
	}
	var wcs [3]verbs.WC
	next := uint64(0)
	for range 50 {
		for n := 1; n <= len(wcs); n++ { // so many at a time
			if got := cq.Poll(wcs[:n]); got != n {
				t.Fatalf("%d were polled, expected %d", got, n)
			}
			for _, wc := range wcs[:n] {
				if wc.ID != next {
					t.Fatalf("polled %d, expected %d", wc.ID, next)
				}
				check(t, qp.PostSend(verbs.SendWR{ID: next + 3, Op: verbs.OpSend}))
				next++
			}
		}
	}
	s.wantEvents() // no overflow
}

// Claims: R-8.1.1-11
// Claims: V-10.4.1-4 S-6.4.6-1
// Claims: V-5.3-4 V-5.3.1-5 V-5.3.1-6 V-10.4.3-4
// Claims: V-9.2.1.2-27 V-9.5.3-34 V-9.5.3-35 V-8.3.3-11
func TestOverflowEndsTheQueuePairsOfTheCQAndNoOthers(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := newSide(t, reads), newSide(t, reads)
		small := must(a.rnic.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
		victims := [2]*verbs.QP{a.newQP(verbs.QPConfig{SendCQ: small}), a.newQP(verbs.QPConfig{RecvCQ: small})}
		peers := [2]*verbs.QP{b.newQP(verbs.QPConfig{}), b.newQP(verbs.QPConfig{})}
		for i, qp := range victims {
			w.connect(t, qp, peers[i], cm.Params{})
		}
		w.connect(t, a.qp, b.qp, cm.Params{})

		// The second completion finds the CQ full.
		_, err := victims[0].PostSends([]verbs.SendWR{a.write(1, b, 0, 10), a.write(2, b, 0, 10)})
		check(t, err)
		for i, qp := range victims {
			reach(t, qp, verbs.Error)
			reach(t, peers[i], verbs.Error)
			var term *rdmap.TerminateError
			if err := peers[i].Err(); !errors.As(err, &term) || term.Layer != 0 || term.EType != 2 || term.Code != 7 {
				t.Errorf("peer %d got %v, expected 0/2/07", i, err)
			}
		}
		events := a.wantEvents(verbs.EventCQOverflow, a.orderOf(victims[:], 0), a.orderOf(victims[:], 1))
		if events[0].CQ != small {
			t.Error("the overflow is of another CQ")
		}
		wantDone(t, small, done{1, verbs.Success})

		if s := a.qp.State(); s != verbs.RTS {
			t.Fatalf("a queue pair with another CQ is %v", s)
		}
		a.post(a.write(3, b, 0, 100000), a.read(4, b, 0, 100000))
		wantDone(t, a.sendCQ, done{3, verbs.Success}, done{4, verbs.Success})
	})
}

// orderOf is the event that came i-th after the overflow: the CQ's queue pairs
// are ended in no particular order.
func (s *side) orderOf(victims []*verbs.QP, i int) verbs.EventID {
	s.t.Helper()
	limit := time.After(patience)
	for {
		s.mu.Lock()
		n := len(s.events)
		var qp *verbs.QP
		if n > i+1 {
			qp = s.events[i+1].QP
		}
		s.mu.Unlock()
		if n > i+1 {
			if qp == victims[0] {
				return verbs.EventCQSQ
			}
			return verbs.EventCQRQ
		}
		select {
		case <-s.came:
		case <-limit:
			s.t.Fatalf("%d events came, expected %d", n, i+2)
		}
	}
}

// Claims: V-8.3.3-12
func TestEveryOverflowIsReported(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
	qp := s.flusher(verbs.QPConfig{SendCQ: cq, SendDepth: 100})
	want := []verbs.EventID{}
	for range 3 {
		for range 5 {
			check(t, qp.PostSend(verbs.SendWR{Op: verbs.OpSend}))
		}
		want = append(want, verbs.EventCQOverflow)
		s.wantEvents(want...)
		if n := cq.Poll(make([]verbs.WC, 5)); n != 1 {
			t.Fatalf("%d completions, expected 1", n)
		}
	}
}

func TestEachCompletionGoesToOneOfManyWaiters(t *testing.T) {
	nettest.CheckLeaks(t)
	s := newSide(t, verbs.QPConfig{})
	const waiters, posters, each = 8, 4, 500
	var seen [posters * each]atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	var total atomic.Int32
	credits := make(chan struct{}, posters*(each+2))
	for range waiters {
		wg.Go(func() {
			var wcs [3]verbs.WC
			for s.sendCQ.Wait(ctx) == nil {
				n := s.sendCQ.Poll(wcs[:])
				for _, wc := range wcs[:n] {
					seen[wc.ID].Add(1)
					credits <- struct{}{}
				}
				if total.Add(int32(n)) == posters*each {
					cancel()
				}
			}
		})
	}
	for p := range posters {
		qp := s.flusher(verbs.QPConfig{SendDepth: each})
		for range 2 {
			credits <- struct{}{}
		}
		wg.Go(func() {
			for i := range each {
				select {
				case <-credits:
				case <-ctx.Done():
					return
				}
				if err := qp.PostSend(verbs.SendWR{ID: uint64(p*each + i), Op: verbs.OpSend}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	nettest.AwaitGroup(t, &wg)
	for id := range seen {
		if n := seen[id].Load(); n != 1 {
			t.Errorf("completion %d came %d times", id, n)
		}
	}
}

func TestOneCompletionWakesOneWaiterAndTheOthersWaitOn(t *testing.T) {
	nettest.CheckLeaks(t)
	s := newSide(t, verbs.QPConfig{})
	qp := s.flusher(verbs.QPConfig{})
	const waiters = 5
	took := make(chan uint64)
	for range waiters {
		go func() {
			var wc [1]verbs.WC
			for s.sendCQ.Poll(wc[:]) == 0 {
				if err := s.sendCQ.Wait(t.Context()); err != nil {
					t.Error(err)
					break
				}
			}
			took <- wc[0].ID
		}()
	}
	for i := range uint64(waiters) {
		check(t, qp.PostSend(verbs.SendWR{ID: i, Op: verbs.OpSend}))
		if got := nettest.Await(t, took); got != i {
			t.Errorf("completion %d, expected %d", got, i)
		}
	}
}

// Claims: V-5.3.4-3
func TestWaitEndsWithItsContextAndWithTheCQ(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSide(t, verbs.QPConfig{})
		cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantError(t, cq.Wait(ctx), context.DeadlineExceeded)
		ended := make(chan error, 4)
		for range cap(ended) {
			go func() { ended <- cq.Wait(t.Context()) }()
		}
		quiesce()
		check(t, cq.Destroy())
		for range cap(ended) {
			wantError(t, <-ended, verbs.ErrCQ)
		}
		wantError(t, cq.Wait(t.Context()), verbs.ErrCQ)
		wantError(t, cq.RequestNotify(verbs.NotifyNext), verbs.ErrCQ)
	})
}

func TestSpinningWaitFindsACompletion(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 4, Spin: patience}))(t)
	qp := s.flusher(verbs.QPConfig{SendCQ: cq})
	ended := make(chan error, 1)
	go func() { ended <- cq.Wait(t.Context()) }()
	check(t, qp.PostSend(verbs.SendWR{ID: 1, Op: verbs.OpSend}))
	check(t, nettest.Await(t, ended))
	wantDone(t, cq, done{1, verbs.Flushed})
}

func TestOneOfManyDestroysACQ(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	wantError(t, s.sendCQ.Destroy(), verbs.ErrCQInUse)
	for range 50 {
		cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
		var destroyed, created atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				switch err := cq.Destroy(); {
				case err == nil:
					destroyed.Add(1)
				case !errors.Is(err, verbs.ErrCQ) && !errors.Is(err, verbs.ErrCQInUse):
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			qp, err := s.pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq})
			if err != nil {
				wantError(t, err, verbs.ErrCQ)
				return
			}
			created.Add(1)
			if err := qp.Destroy(); err != nil {
				t.Error(err)
			}
		})
		nettest.AwaitGroup(t, &wg)
		if err := cq.Destroy(); err == nil {
			destroyed.Add(1)
		}
		if destroyed.Load() != 1 {
			t.Fatalf("destroyed %d times; queue pair created: %v", destroyed.Load(), created.Load() == 1)
		}
	}
}

// A work request whose completion was lost is outstanding no more: nobody can poll
// it, and its queue pair can be used again.
func TestALostCompletionKeepsNoPlaceInItsQueue(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
	first := s.newQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 1, RecvDepth: 1})
	other := s.newQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 2, RecvDepth: 2})
	check(t, first.PostRecv(verbs.RecvWR{ID: 7}))
	first.Abort() // which fills the CQ
	for range 2 {
		for range 2 {
			check(t, other.PostSend(verbs.SendWR{Op: verbs.OpSend}))
			check(t, other.PostRecv(verbs.RecvWR{}))
		}
		wantError(t, other.PostSend(verbs.SendWR{Op: verbs.OpSend}), verbs.ErrFull)
		wantError(t, other.PostRecv(verbs.RecvWR{}), verbs.ErrFull)
		other.Abort()
		check(t, other.Reset())
	}
	wantDone(t, cq, done{7, verbs.Flushed})
}
