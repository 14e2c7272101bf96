package verbs_test

import (
	"errors"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// Connections die at random points, in random ways, with both sides posting
// everything at each other; the queue pairs are used again and again. Every
// signaled request completes exactly once and in the order of posting, every
// receive does, and a Success is never behind something else.
//
// Claims: DDP-3-3 R-5.5-18 DDP-6.2.2-2
// Claims: V-6.2.3-11 V-6.2.4-4 V-8.2.4-1
func TestEveryRequestCompletesOnceHoweverConnectionsDie(t *testing.T) {
	nettest.CheckLeaks(t)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range 16 {
		cfg := verbs.QPConfig{SendDepth: 32, RecvDepth: 32, IRD: 4, ORD: 4, PauseOnEmptyRQ: rng.IntN(2) == 0, SetAside: rng.IntN(2) * 2000}
		a, b := newSide(t, cfg), newSide(t, cfg)
		for range 2 {
			if !liveAndDie(t, a, b, rng, round) {
				t.Fatalf("seed %#x, round %d", seed, round)
			}
		}
		check(t, a.rnic.Close())
		check(t, b.rnic.Close())
	}
}

// liveAndDie connects two sides, has both work until the connection is dead, and checks
// the completions.
func liveAndDie(t *testing.T, a, b *side, rng *rand.Rand, round int) bool {
	var x, y net.Conn
	var death func()
	at := uint64(rng.IntN(1 << rng.IntN(18)))
	if round%2 == 0 {
		x, y = nettest.TCPPair(t, "tcp4")
		death = func() {
			end := []*side{a, b}[rng.IntN(2)]
			switch rng.IntN(3) {
			case 0:
				end.qp.Abort()
			case 1:
				_ = end.qp.Terminate() // it may be over
			default:
				_ = x.Close()
			}
		}
	} else {
		p, q := iwarptest.Pipe()
		x, y = p, q
		victim := []*iwarptest.Conn{p, q}[rng.IntN(2)]
		at += 200 // beyond the start-up
		switch rng.IntN(3) {
		case 0:
			victim.ResetAfter(at)
		case 1:
			victim.FinAfter(at)
		default:
			victim.Corrupt(at, 0x10)
		}
		death = func() { a.qp.Abort() } // if that did not do
	}
	join(t, a.qp, b.qp, x, y, cm.Params{})
	var moved atomic.Uint64
	var workers [2]worker
	var wg sync.WaitGroup
	for i, s := range []*side{a, b} {
		w := &workers[i]
		w.t, w.s, w.peer, w.moved = t, s, []*side{b, a}[i], &moved
		w.rng = rand.New(rand.NewPCG(rng.Uint64(), 1))
		wg.Go(w.post)
		wg.Go(func() { w.poll(s.sendCQ, &w.sent) })
		wg.Go(func() { w.poll(s.recvCQ, &w.received) })
	}
	wg.Go(func() {
		for moved.Load() < at>>8 {
			if a.qp.State() != verbs.RTS || b.qp.State() != verbs.RTS {
				break
			}
			runtime.Gosched()
		}
		death()
	})
	nettest.AwaitGroup(t, &wg)
	ok := true
	for i := range workers {
		ok = workers[i].finish() && ok
	}
	return ok
}

// Each use of a side's memory has its own, as the consumer's part of the rules
// wants it; receives begin at 0.
const (
	sourceOff = 1 << 16 * (iota + 1)
	sinkOff
	targetOff
	wordOff
	foundOff
)

// A worker posts to one side until it is no longer in RTS.
type worker struct {
	t              *testing.T
	s, peer        *side
	rng            *rand.Rand
	moved          *atomic.Uint64 // completions of both sides
	signaled       []uint64       // IDs of those that are to complete; nextID-1 is the last of all
	nextID, nextRX uint64
	sent, received []verbs.WC
}

func (w *worker) post() {
	ops := []verbs.Op{verbs.OpSend, verbs.OpSendSE, verbs.OpWrite, verbs.OpRead, verbs.OpFetchAdd, verbs.OpImmediate}
	for w.s.qp.State() == verbs.RTS {
		for w.s.qp.PostRecv(verbs.RecvWR{ID: w.nextRX, SGL: []verbs.SGE{w.s.mr.SGE(0, 5000)}}) == nil {
			w.nextRX++
		}
		wr := verbs.SendWR{ID: w.nextID, Op: ops[w.rng.IntN(len(ops))]}
		if w.rng.IntN(3) > 0 || w.nextID%8 == 0 {
			wr.Flags = verbs.Signaled
		}
		switch wr.Op {
		case verbs.OpImmediate:
		case verbs.OpFetchAdd:
			wr.SGL, wr.Remote = []verbs.SGE{w.s.mr.SGE(foundOff, 8)}, w.peer.mr.Remote(wordOff)
		case verbs.OpRead:
			wr.SGL, wr.Remote = []verbs.SGE{w.s.mr.SGE(sinkOff, w.rng.IntN(5000))}, w.peer.mr.Remote(sourceOff)
		default:
			wr.SGL, wr.Remote = []verbs.SGE{w.s.mr.SGE(sourceOff, w.rng.IntN(5000))}, w.peer.mr.Remote(targetOff)
		}
		if err := w.s.qp.PostSend(wr); err != nil {
			if !errors.Is(err, verbs.ErrFull) && !errors.Is(err, verbs.ErrState) {
				w.t.Error(err)
			}
			runtime.Gosched()
			continue
		}
		if wr.Flags != 0 {
			w.signaled = append(w.signaled, wr.ID)
		}
		w.nextID++
	}
}

// poll takes completions until the queue pair has ended and none is left.
func (w *worker) poll(cq *verbs.CQ, into *[]verbs.WC) {
	var wcs [16]verbs.WC
	for {
		over := w.s.qp.State() != verbs.RTS
		n := cq.Poll(wcs[:])
		*into = append(*into, wcs[:n]...)
		w.moved.Add(uint64(n))
		switch {
		case n == 0 && over:
			return
		case n == 0:
			runtime.Gosched()
		}
	}
}

// finish waits for the end of the stream and compares what completed with what
// was posted. The queue pair is Idle then.
func (w *worker) finish() bool {
	qp := w.s.qp
	if _, err := qp.WaitState(w.t.Context(), verbs.Idle, verbs.Error); err != nil {
		w.t.Error(err)
		return false
	}
	qp.Abort() // what was posted to an Idle queue pair would wait for the next stream
	for qp.State() == verbs.Error && qp.Reset() != nil {
		continue // until it is flushed
	}
	w.poll(w.s.sendCQ, &w.sent)
	w.poll(w.s.recvCQ, &w.received)
	ok := true
	complain := func(format string, args ...any) {
		w.t.Helper()
		w.t.Errorf(format, args...)
		ok = false
	}
	if len(w.received) != int(w.nextRX) {
		complain("%d receives completed of %d", len(w.received), w.nextRX)
	}
	flushed := false
	for i, wc := range w.received {
		if wc.ID != uint64(i) || flushed && wc.Status == verbs.Success {
			complain("receive %d completes as %d: %v", i, wc.ID, wc.Status)
			break
		}
		flushed = flushed || wc.Status != verbs.Success
	}
	// Flushed requests complete whether signaled or not.
	next, culprits := 0, 0
	flushed = false
	last := int64(-1)
	for _, wc := range w.sent {
		if int64(wc.ID) <= last || flushed && wc.Status == verbs.Success {
			complain("request %d: %v, after %d", wc.ID, wc.Status, last)
			break
		}
		last = int64(wc.ID)
		flushed = flushed || wc.Status != verbs.Success
		if wc.Status != verbs.Success && wc.Status != verbs.Flushed {
			culprits++
		}
		if next < len(w.signaled) && w.signaled[next] == wc.ID {
			next++
		} else if wc.Status == verbs.Success {
			complain("request %d, which is unsignaled, completes with success", wc.ID)
		}
	}
	if next != len(w.signaled) {
		complain("%d of %d signaled requests completed; the first that did not is %d", next, len(w.signaled), w.signaled[next])
	}
	if culprits > 1 {
		complain("%d requests have failed by themselves", culprits)
	}
	return ok
}
