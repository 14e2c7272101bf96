package verbs_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// wantEntries fails the test unless every query of a CQ returns that capacity.
func wantEntries(t *testing.T, s *side, cq *verbs.CQ, want, total int) {
	t.Helper()
	if a := must(cq.Query())(t); a.Entries != want || cq.Entries() != want {
		t.Errorf("the CQ has %d and %d entries, expected %d", a.Entries, cq.Entries(), want)
	}
	if u := s.rnic.Usage(); u.CQEntries != total {
		t.Errorf("all CQs together have %d entries, expected %d", u.CQEntries, total)
	}
}

// fill posts n requests that complete at once, with IDs from first on.
func fill(t *testing.T, qp *verbs.QP, first uint64, n int) {
	t.Helper()
	for i := range n {
		check(t, qp.PostSend(verbs.SendWR{ID: first + uint64(i), Op: verbs.OpSend}))
	}
}

// A CQ is resized with completions on it: they stay there in order, and the next completion
// is lost exactly when the new size is used up.
//
// Claims: V-5.3.2-1 V-5.3.3-3 V-5.3.3-4 V-9.2.3.1-5 V-9.2.3.2-1 V-9.2.3.3-4
// Claims: V-9.2.3.3-2 V-9.2.3.2-2
func TestACQIsResizedWithWhatIsOnIt(t *testing.T) {
	for _, tt := range []struct {
		name           string
		there, to, old int
		want           error
	}{
		{"to more", 5, 9, 8, nil},
		{"to far more", 8, 1000, 8, nil},
		{"to fewer", 5, 7, 8, nil},
		{"to as many as there are", 5, 5, 8, nil},
		{"to one fewer than there are", 5, 4, 8, verbs.ErrShrink},
		{"to one fewer than there are, of a ring that holds more", 6, 5, 8, verbs.ErrShrink},
		{"to one", 0, 1, 8, nil},
		{"to none", 0, 0, 8, verbs.ErrModifier},
		{"to as many as before", 8, 8, 8, nil},
		{"beyond the limit", 3, 1001, 8, verbs.ErrCQEntries},
		{"beyond what all may have", 3, 992, 8, verbs.ErrResources},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const others = 10 // entries of another CQ
			limits := verbs.Limits{CQEntries: 1000}
			if tt.want == verbs.ErrResources {
				limits.TotalCQEntries = 1000
			}
			s := &side{t: t, came: make(chan struct{}, 1)}
			s.rnic = must(verbs.Open(verbs.Config{Limits: limits}))(t)
			defer s.rnic.Close()
			s.listen()
			s.pd = must(s.rnic.AllocPD())(t)
			s.recvCQ = must(s.rnic.CreateCQ(verbs.CQConfig{Entries: others}))(t)
			cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: tt.old}))(t)
			qp := s.flusher(verbs.QPConfig{SendCQ: cq, SendDepth: 4096})
			fill(t, qp, 0, 3)
			take(t, cq, 3) // so that the oldest is not the first of the ring
			fill(t, qp, 3, tt.there)

			got, err := cq.Resize(tt.to)
			now := tt.to
			if tt.want != nil {
				wantError(t, err, tt.want)
				now = tt.old
			} else if check(t, err); got != tt.to {
				t.Errorf("%d entries were returned, expected %d", got, tt.to)
			}
			wantEntries(t, s, cq, now, now+others)
			s.wantEvents() // none
			fill(t, qp, uint64(3+tt.there), now-tt.there)
			s.wantEvents() // it holds so many
			fill(t, qp, 9999, 1)
			s.wantEvents(verbs.EventCQOverflow) // and no more
			for i := range now {
				if wc, err := cq.PollOne(); err != nil || wc.ID != uint64(3+i) {
					t.Fatalf("completion %d has ID %d (%v)", i, wc.ID, err)
				}
			}
			_, err = cq.PollOne()
			wantError(t, err, verbs.ErrCQEmpty)
		})
	}
}

// Requests complete while the CQ is resized up and down again and again: each
// completion comes once and in its order.
//
// Claims: V-5.3.3-1 V-5.3.3-2 V-9.2.3.3-1
func TestResizingACQUnderLoadLosesNothing(t *testing.T) {
	nettest.CheckLeaks(t)
	const posters, each, window = 3, 2000, 20
	s := newSide(t, verbs.QPConfig{})
	cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: posters * window}))(t)
	var working sync.WaitGroup
	credits := map[uint32]chan struct{}{}
	for range posters {
		qp := s.flusher(verbs.QPConfig{SendCQ: cq, SendDepth: window})
		credit := make(chan struct{}, each+window)
		credits[qp.Num()] = credit
		for range window {
			credit <- struct{}{}
		}
		working.Go(func() {
			for i := range each {
				<-credit
				if err := qp.PostSend(verbs.SendWR{ID: uint64(i), Op: verbs.OpSend}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	stop := make(chan struct{})
	var resizer sync.WaitGroup
	resizer.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			// Never fewer than can be there.
			if _, err := cq.Resize(posters*window + n%300); err != nil {
				t.Error(err)
			}
			if _, err := cq.Resize(0); !errors.Is(err, verbs.ErrModifier) {
				t.Error(err)
			}
			runtime.Gosched()
		}
	})
	next := map[uint32]uint64{}
	for range posters * each {
		wc := take(t, cq, 1)[0]
		if wc.ID != next[wc.QPNum] {
			t.Fatalf("queue pair %d: completion %d, expected %d", wc.QPNum, wc.ID, next[wc.QPNum])
		}
		next[wc.QPNum]++
		credits[wc.QPNum] <- struct{}{}
	}
	nettest.AwaitGroup(t, &working)
	close(stop)
	nettest.AwaitGroup(t, &resizer)
	wantNone(t, cq)
	s.wantEvents() // none
	if st := cq.Stats(); st.Lost != 0 || st.Flushed != posters*each {
		t.Errorf("%+v", st)
	}
}

// A queue pair that comes to a CQ which is full is ended by its first completion
// there, like those before it.
func TestACQThatStaysFullEndsEachQueuePairThatCompletesThere(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := newSide(t, reads), newSide(t, reads)
		cq := must(a.rnic.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
		fill(t, a.flusher(verbs.QPConfig{SendCQ: cq}), 0, 2)
		a.wantEvents(verbs.EventCQOverflow)
		for i := range 2 {
			qp := a.newQP(verbs.QPConfig{SendCQ: cq})
			w.connect(t, qp, b.newQP(reads), cm.Params{})
			check(t, qp.PostSend(a.write(1, b, 0, 10)))
			reach(t, qp, verbs.Error)
			want := []verbs.EventID{verbs.EventCQOverflow, verbs.EventCQSQ, verbs.EventCQSQ}
			a.wantEvents(want[:2+i]...)
		}
	})
}

// Claims: V-9.3.2.1-2
// Claims: V-9.3.2.1-4
func TestPollingAnEmptyCQSaysThatItIsEmpty(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	_, err := s.sendCQ.PollOne()
	wantError(t, err, verbs.ErrCQEmpty)
	qp := s.flusher(verbs.QPConfig{})
	fill(t, qp, 7, 1)
	if wc := must(s.sendCQ.PollOne())(t); wc.ID != 7 || wc.QP != qp || wc.QPNum != qp.Num() {
		t.Errorf("%+v", wc)
	}
	_, err = s.sendCQ.PollOne()
	wantError(t, err, verbs.ErrCQEmpty)
	if n := testing.AllocsPerRun(10, func() { _, _ = s.sendCQ.PollOne() }); n > 0 {
		t.Errorf("finding nothing allocates %v times", n)
	}
}

// Claims: V-5.3.4-2 S-6.4.3.2-1
func TestADestroyedCQTakesNothingWithIt(t *testing.T) {
	nettest.CheckLeaks(t)
	s := newSideOf(t, verbs.Config{Limits: verbs.Limits{TotalCQEntries: 2*4096 + 100}}, verbs.QPConfig{})
	for range 3 { // which do not fit together
		cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 90, Handler: s.handler(func(*verbs.CQ) {})}))(t)
		_, err := s.rnic.CreateCQ(verbs.CQConfig{Entries: 90})
		wantLimit(t, err, verbs.ErrResources, "Limits.TotalCQEntries")
		qp := s.flusher(verbs.QPConfig{SendCQ: cq})
		check(t, cq.RequestNotify(verbs.NotifyNext))
		fill(t, qp, 0, 3)
		wantError(t, cq.Destroy(), verbs.ErrCQInUse)
		check(t, qp.Destroy())
		check(t, cq.Destroy())
		if n := cq.Poll(make([]verbs.WC, 3)); n != 0 {
			t.Errorf("a destroyed CQ gave %d completions", n)
		}
		for name, err := range map[string]error{
			"destroy": cq.Destroy(), "fail": cq.Fail(), "notify": cq.RequestNotify(verbs.NotifyNext), "wait": cq.Wait(t.Context()),
			"query": failure(cq.Query()), "resize": failure(cq.Resize(5)), "poll": failure(cq.PollOne()), "user": failure(cq.User()),
		} {
			if !errors.Is(err, verbs.ErrCQ) {
				t.Errorf("%s: %v, expected %v", name, err, verbs.ErrCQ)
			}
		}
		if u := s.rnic.Usage(); u.CQs != 2 || u.CQEntries != 2*4096 {
			t.Errorf("left behind: %+v", u)
		}
	}
}

// failure is the error of a verb that returns something else as well.
func failure(_ any, err error) error { return err }

// A CQ that fails ends its queue pairs and no others.
//
// Claims: V-9.5.3-39 V-8.3.3-12
func TestAFailedCQEndsItsQueuePairsAndNoOthers(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := newSide(t, reads), newSide(t, reads)
		broken := must(a.rnic.CreateCQ(verbs.CQConfig{Entries: 10}))(t)
		fill(t, a.flusher(verbs.QPConfig{SendCQ: broken}), 3, 1)
		victims := [2]*verbs.QP{a.newQP(verbs.QPConfig{SendCQ: broken}), a.newQP(verbs.QPConfig{RecvCQ: broken})}
		for _, qp := range append(victims[:], a.qp) {
			peer := b.newQP(reads)
			w.connect(t, qp, peer, cm.Params{})
			defer func() {
				var term *rdmap.TerminateError
				if qp == a.qp {
					return
				}
				reach(t, peer, verbs.Error)
				if !errors.As(peer.Err(), &term) || term.Layer != 0 || term.EType != 2 || term.Code != 7 {
					t.Errorf("the peer got %v, expected 0/2/07", peer.Err())
				}
			}()
		}
		waited := make(chan error, 1)
		take(t, broken, 1)
		fill(t, a.flusher(verbs.QPConfig{SendCQ: broken}), 4, 1)
		check(t, broken.Fail())
		events := a.wantEvents(verbs.EventCQOperation, a.orderOf(victims[:], 0), a.orderOf(victims[:], 1))
		if events[0].CQ != broken || events[0].Resource != verbs.ResourceCQ {
			t.Errorf("the event is of %v", events[0].Resource)
		}
		for _, qp := range victims {
			reach(t, qp, verbs.Error)
		}
		if wc := must(broken.PollOne())(t); wc.ID != 4 {
			t.Errorf("what was there before has ID %d, expected 4", wc.ID)
		}
		go func() { waited <- broken.Wait(t.Context()) }()
		_, err := a.pd.CreateQP(verbs.QPConfig{SendCQ: a.sendCQ, RecvCQ: broken})
		for name, err := range map[string]error{
			"poll": failure(broken.PollOne()), "wait": nettest.Await(t, waited), "again": broken.Fail(), "create QP": err,
			"notify": broken.RequestNotify(verbs.NotifyNext), "resize": failure(broken.Resize(50)), "query": failure(broken.Query()),
		} {
			if !errors.Is(err, verbs.ErrCQ) {
				t.Errorf("%s: %v, expected %v", name, err, verbs.ErrCQ)
			}
		}
		// A queue pair that goes on in spite of it ends with its first completion.
		check(t, victims[0].Reset())
		w.connect(t, victims[0], b.newQP(reads), cm.Params{})
		check(t, victims[0].PostSend(a.write(1, b, 0, 10)))
		reach(t, victims[0], verbs.Error)

		a.post(a.write(5, b, 0, 100), a.read(6, b, 0, 100))
		wantDone(t, a.sendCQ, done{5, verbs.Success}, done{6, verbs.Success})
		for _, qp := range a.rnic.QPs() {
			if qp != a.qp {
				check(t, qp.Destroy())
			}
		}
		check(t, broken.Destroy())
	})
}
