package verbs_test

import (
	"context"
	"sync"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/verbs"
)

// flush has n receives of a queue pair completed, with IDs from first on.
func (s *side) flush(first uint64, n int) {
	s.t.Helper()
	qp := s.newQP(verbs.QPConfig{RecvDepth: n})
	for i := range n {
		check(s.t, qp.PostRecv(verbs.RecvWR{ID: first + uint64(i)}))
	}
	qp.Abort()
}

// After a break out of the loop the other completions remain in the CQ, for the next loop
// or for Poll.
func TestALoopTakesNoMoreThanItIsGiven(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	s.flush(1, 9)
	user := must(s.recvCQ.User())(t)
	next := uint64(1)
	for i, loop := range []func(func(verbs.WC) bool){
		s.recvCQ.Completions(t.Context()), user.Completions(t.Context()), s.recvCQ.Completions(t.Context()),
	} {
		last := next + 1
		for wc := range loop {
			if wc.ID != next {
				t.Errorf("completion %d, expected %d", wc.ID, next)
			}
			if shown, of := wc.QP != nil, i != 1; shown != of {
				t.Errorf("loop %d: the queue pair is shown: %v, expected %v", i, shown, of)
			}
			if next++; wc.ID == last {
				break
			}
		}
	}
	wantDone(t, s.recvCQ, done{7, verbs.Flushed}, done{8, verbs.Flushed}, done{9, verbs.Flushed})
	wantNone(t, s.recvCQ)
}

// The loop ends with its context, at once and whatever is there, and with the CQ.
func TestALoopEndsWithItsContextAndWithTheCQ(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	s.flush(1, 3)
	for wc := range s.recvCQ.Completions(ctx) {
		if wc.ID == 2 {
			cancel()
		}
	}
	wantError(t, context.Cause(ctx), context.Canceled)
	wantDone(t, s.recvCQ, done{3, verbs.Flushed})

	ctx, cancel = context.WithCancel(t.Context())
	go cancel()
	for wc := range s.recvCQ.Completions(ctx) { // of nothing
		t.Errorf("completion %d", wc.ID)
	}

	cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
	destroyed := make(chan error, 1)
	go func() { destroyed <- cq.Destroy() }()
	for wc := range cq.Completions(t.Context()) {
		t.Errorf("completion %d", wc.ID)
	}
	check(t, nettest.Await(t, destroyed))
	_, err := cq.PollOne()
	wantError(t, err, verbs.ErrCQ)
	for range new(verbs.UserCQ).Completions(t.Context()) {
		t.Error("a view of nothing has a completion")
	}
}

// Of several concurrent loops exactly one gets each completion.
func TestLoopsShareTheCompletions(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	const all = 1000
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var loops sync.WaitGroup
	seen := map[uint64]int{}
	for range 4 {
		loops.Go(func() {
			for wc := range s.recvCQ.Completions(ctx) {
				mu.Lock()
				if seen[wc.ID]++; len(seen) == all {
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	s.flush(1, all)
	nettest.AwaitGroup(t, &loops)
	for id, n := range seen {
		if n != 1 {
			t.Errorf("completion %d came %d times", id, n)
		}
	}
	wantNone(t, s.recvCQ)
}
