package main

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-rdma/weft/verbs"
)

// Statuses of completions (enum ibv_wc_status).
const (
	ok, protection, flushed, retries = 0, 4, 5, 12
)

// An acked is a queue pair of the rc persona without a stream, whose completions a test
// makes up.
type acked struct {
	q *queuePair
	r *ring
}

func newAcked(t testing.TB, b *bed) *acked {
	a := &acked{q: b.newQP(), r: &ring{completionQueue: b.cq}}
	if !a.q.sends.acks.on {
		t.Fatal("a queue pair of the rc persona has no acks")
	}
	return a
}

// complete is the completion of what verbs was given for a slot.
func (a *acked) complete(id uint64, op verbs.Op, status verbs.Status) bool {
	return a.r.sink(&verbs.WC{QPNum: a.q.qp.Num(), ID: id, Op: op, Status: status})
}

func (a *acked) note(slots ...uint64) {
	for _, s := range slots {
		a.q.sends.acks.note(s, false)
	}
}

func TestAnAnswerCompletesWhatIsInFrontOfIt(t *testing.T) {
	anEngine(t, true)
	a := newAcked(t, newBed(t))
	a.note(0, 1, 2)
	a.complete(1|ackRead, verbs.OpRead, verbs.Success)
	if got := a.r.take(); !slices.Equal(got, []taken{{0, ok}, {1, ok}}) {
		t.Errorf("%+v, expected 0 and 1", got)
	}
	a.complete(2|ackRead, verbs.OpRead, verbs.Success)
	if got := a.r.take(); !slices.Equal(got, []taken{{2, ok}}) {
		t.Errorf("%+v, expected 2", got)
	}
}

// TestALocalRequestDoesNotAcknowledge completes one that the peer does not see, behind one
// that it has not acknowledged.
func TestALocalRequestDoesNotAcknowledge(t *testing.T) {
	anEngine(t, true)
	a := newAcked(t, newBed(t))
	a.note(0)
	a.q.sends.acks.note(1, true)
	a.complete(1, verbs.OpBind, verbs.Success)
	if got := a.r.take(); len(got) > 0 {
		t.Errorf("%+v, expected nothing", got)
	}
	a.complete(0|ackRead, verbs.OpRead, verbs.Success)
	if got := a.r.take(); !slices.Equal(got, []taken{{0, ok}, {1, ok}}) {
		t.Errorf("%+v, expected 0 and 1", got)
	}
}

func TestTheFirstOpenRequestGetsTheReason(t *testing.T) {
	anEngine(t, true)
	a := newAcked(t, newBed(t))
	a.note(0, 1, 2)
	a.complete(0|ackRead, verbs.OpRead, verbs.Success)
	a.complete(2|ackRead, verbs.OpRead, verbs.Flushed)
	if got := a.r.take(); !slices.Equal(got, []taken{{0, ok}}) {
		t.Errorf("%+v, expected 0: the end of the stream is to say why", got)
	}
	a.q.settle()
	if got := a.r.take(); !slices.Equal(got, []taken{{1, retries}, {2, flushed}}) {
		t.Errorf("%+v", got)
	}
}

func TestARequestThatFailsHereKeepsItsOwnReason(t *testing.T) {
	anEngine(t, true)
	a := newAcked(t, newBed(t))
	a.note(0, 2)
	a.complete(1, verbs.OpWrite, verbs.AccessViolation) // unsignaled
	a.complete(2|ackRead, verbs.OpRead, verbs.Flushed)
	a.q.settle()
	if got := a.r.take(); !slices.Equal(got, []taken{{0, flushed}, {1, protection}, {2, flushed}}) {
		t.Errorf("%+v", got)
	}
}

// TestWhatIsPostedAfterTheEndIsFlushed and completes once, whatever its parts do.
func TestWhatIsPostedAfterTheEndIsFlushed(t *testing.T) {
	anEngine(t, true)
	a := newAcked(t, newBed(t))
	a.q.settle()
	a.complete(0|partial, verbs.OpWrite, verbs.Flushed)
	a.complete(0, verbs.OpImmediate, verbs.Flushed)
	a.complete(1, verbs.OpWrite, verbs.Flushed)
	if got := a.r.take(); !slices.Equal(got, []taken{{0, flushed}, {1, flushed}}) {
		t.Errorf("%+v", got)
	}
}

// FuzzAcks makes up what becomes of requests: each that the program wants a completion
// for completes once, in order, also if the stream breaks.
func FuzzAcks(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 2, 3})
	f.Add([]byte{0, 0, 0, 9, 2, 6, 3})
	f.Add([]byte{0, 1, 4, 0, 8, 3})
	if errno := start(true, 1); errno != 0 {
		f.Fatal(errno)
	}
	f.Cleanup(stop)
	b := newBed(f)
	f.Fuzz(func(t *testing.T, steps []byte) {
		b.t = t
		a := newAcked(t, b)
		defer a.q.destroy(t)
		posted, done := uint64(0), []taken(nil)
		for _, step := range steps {
			if posted == queueDepth {
				break
			}
			slot := uint64(step >> 2)
			switch step % 4 {
			case 0:
				a.note(posted)
				posted++
			case 1, 2:
				if slot < posted {
					status := []verbs.Status{verbs.Success, verbs.Flushed}[step%2]
					if !a.q.sends.acks.broken || status != verbs.Success {
						a.complete(slot|ackRead, verbs.OpRead, status)
					}
				}
			}
			done = append(done, a.r.take()...)
		}
		a.q.settle()
		done = append(done, a.r.take()...)
		next := uint64(0)
		for _, c := range done {
			if c.id == next {
				next++
			} else if c.id > next {
				t.Fatalf("%+v: %d comes before %d", done, c.id, next)
			}
		}
		if next != posted {
			t.Fatalf("%+v: %d were posted", done, posted)
		}
	})
}

// The peer's message lacks a receive, and is in front of the answer that completes a request of
// this side's: the program may post the receive only then.
func TestARequestCompletesBehindAMessageWithoutAReceive(t *testing.T) {
	w := newWaited(t)
	within := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !done(); runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	within("there is no connection", func() bool {
		w.q.mu.Lock()
		defer w.q.mu.Unlock()
		return w.q.conn != nil
	})
	w.q.retriesOfPeer(retriesForEver)
	w.peer.request(0, 1, 1, 0)
	atomic.AddUint64((*uint64)(&w.peer.sends.queue.tail), 1)
	w.peer.takeSends()
	w.q.send(w.peer)
	within("the request has not completed", func() bool { return w.q.open() == 0 })
	if w.peer.open() != 1 {
		t.Errorf("the peer's request has completed without a receive: %v", w.peer.qp.Err())
	}
	atomic.AddUint64((*uint64)(&w.q.receives.queue.tail), 1)
	w.q.takeReceives()
	within("the peer's request has not completed", func() bool { return w.peer.open() == 0 })
}
