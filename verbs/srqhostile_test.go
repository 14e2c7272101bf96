package verbs_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// A peer that takes all the receives it can get is found out before they are
// gone: the limit raises an event, and the completions and counts show which peer it is. Its queue pair
// is ended, and the others go on (RFC 5042 §6.4.3.1, Verbs §10.4.2).
//
// Claims: R-8.1.2-8 DDP-8.3.2-5 S-6.4.3.1-1 V-10.4.2-3 V-10.4.2-4
// Claims: S-6.4.3.1-2 S-A-4
func TestAPeerThatDrainsTheSharedQueueIsFoundOut(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		s := newSharing(t, verbs.SRQConfig{WRs: 64, Limit: 16}, 4, verbs.QPConfig{})
		s.receives(0, 64, 8)
		for i, e := range s.ends {
			n := 2
			if i == 2 { // the greedy one
				n = 43
			}
			for range n {
				e.send(8)
			}
		}
		s.wantLow(1)
		s.wantPosted(15)
		var greedy *sharingEnd
		for _, e := range s.ends {
			var wcs [64]verbs.WC
			n := e.cq.Poll(wcs[:])
			for _, wc := range wcs[:n] {
				if wc.QPNum != e.qp.Num() {
					t.Errorf("a completion of queue pair %d at the CQ of %d", wc.QPNum, e.qp.Num())
				}
			}
			if got := e.qp.Stats().Received.Messages; got != uint64(n) {
				t.Errorf("queue pair %d counts %d messages, %d completed", e.qp.Num(), got, n)
			}
			if n > 8 {
				greedy = e
			}
		}
		if greedy != s.ends[2] {
			t.Fatal("the greedy peer was not found")
		}
		greedy.qp.Abort()
		quiesce()
		for _, e := range s.ends {
			if e != greedy {
				e.send(8)
				if wc := take(t, e.cq, 1)[0]; wc.Status != verbs.Success {
					t.Errorf("another queue pair's message: %v", wc.Status)
				}
			}
		}
		s.wantPosted(12)
	})
}

// A segment that claims a message far ahead takes no receive, and ends its own
// stream only.
//
// Claims: V-10.4.2-6
// Claims: V-10.4.2-10
func TestAMessageNumberFarAheadTakesNoSharedReceive(t *testing.T) {
	for _, msn := range []uint32{0, 2, 100, 1 << 31, 1<<32 - 1} {
		bubbleOf(t, func(t *testing.T) {
			s := newSharing(t, verbs.SRQConfig{WRs: 8}, 1, verbs.QPConfig{})
			e, p := s.raw(verbs.QPConfig{})
			s.receives(0, 8, 100)
			check(t, p.Send(iwarptest.Send(msn, 1)))
			quiesce()
			check(t, p.Close())
			reach(t, e.qp, verbs.Error)
			wantNone(t, e.cq)
			s.wantPosted(8)
			s.ends[0].send(8)
			quiesce()
			wantDone(t, s.ends[0].cq, done{0, verbs.Success})
		})
	}
}

// Without receives a stream is ended with 1/2/02, or, where that was asked for,
// waits; those that wait are served in the order of their coming, whatever
// becomes of others, and each keeps its messages in order.
//
// Claims: V-6.3.5-5
// Claims: V-13.2-4
func TestQueuePairsThatPauseForASharedReceiveAreServedInLine(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		s := newSharing(t, verbs.SRQConfig{WRs: 8}, 4, verbs.QPConfig{PauseOnEmptyRQ: true})
		hasty := s.join(s.pd, verbs.QPConfig{})
		hasty.send(8)
		quiesce()
		reach(t, hasty.qp, verbs.Error)
		s.wantEvents(verbs.EventRQMSNRange)

		for _, i := range []int{2, 0, 3, 1, 2} {
			s.ends[i].send(8)
			quiesce()
		}
		s.ends[0].qp.Abort() // it was the second in the line
		quiesce()
		for id, to := range []int{2, 3, 1, 2} {
			s.receives(uint64(id), 1, 8)
			quiesce()
			wantDone(t, s.ends[to].cq, done{uint64(id), verbs.Success})
		}
		s.receives(4, 1, 8)
		quiesce()
		s.wantPosted(1)
		for _, e := range s.ends {
			wantNone(t, e.cq)
		}
	})
}

// A receive that is handed to a queue pair in the moment of its end has not been
// used: it serves the next one in the line, or stays.
//
// Claims: V-6.3.6-4
func TestAReceiveHandedOverAtTheEndIsGivenBack(t *testing.T) {
	for range 20 {
		bubbleOf(t, func(t *testing.T) {
			s := newSharing(t, verbs.SRQConfig{WRs: 8}, 2, verbs.QPConfig{PauseOnEmptyRQ: true})
			s.ends[0].send(8)
			quiesce()
			s.ends[1].send(8)
			quiesce()
			s.ends[0].qp.Abort()
			s.receives(0, 2, 8)
			quiesce()
			wantNone(t, s.ends[0].cq)
			if wc := take(t, s.ends[1].cq, 1)[0]; wc.Status != verbs.Success {
				t.Errorf("the one behind it: %v", wc.Status)
			}
			s.wantPosted(1)
		})
	}
}

// Many queue pairs share a queue while connections die at random and are made again, and
// the queue grows and shrinks. Every receive completes once or stays posted, the messages
// of each stream arrive in order and without a gap, and no death affects another stream.
//
// Claims: V-6.3.2-1 V-6.3.2-2 V-6.3.5-5 V-6.3.6-2
func TestManyQueuePairsShareAQueueWhileConnectionsDie(t *testing.T) {
	nettest.CheckLeaks(t)
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	const (
		pairs    = 12
		most     = 96
		messages = 4000
	)
	a, b := newSide(t, verbs.QPConfig{}), newSide(t, verbs.QPConfig{})
	srq := must(b.pd.CreateSRQ(verbs.SRQConfig{WRs: most, SGEs: 1, Limit: 8}))(t)
	// The completion queues are shared, so that they spin for all connections or for none.
	spin := time.Duration(seed%2) * time.Millisecond
	cq := must(b.rnic.CreateCQ(verbs.CQConfig{Entries: 2 * most, Spin: spin}))(t)
	sent := must(b.rnic.CreateCQ(verbs.CQConfig{Entries: 16, Spin: spin}))(t)
	drop := must(a.rnic.CreateCQ(verbs.CQConfig{Entries: pairs * 64, Spin: spin}))(t)
	var (
		total  atomic.Uint64 // messages that arrived
		over   atomic.Bool
		posted atomic.Uint64
		wg     sync.WaitGroup
	)
	// Senders: each connects, sends numbered messages, dies, and starts again.
	for i := range pairs {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() {
			buf := make([]byte, 16)
			mr := must(a.pd.Register(buf, verbs.LocalRead))(t)
			for !over.Load() {
				qa := must(a.pd.CreateQP(verbs.QPConfig{SendCQ: drop, RecvCQ: drop, SendDepth: 16}))(t)
				qb := must(b.pd.CreateQP(verbs.QPConfig{SendCQ: sent, RecvCQ: cq, SRQ: srq, PauseOnEmptyRQ: true}))(t)
				w := wires[rng.IntN(len(wires))]
				w.spin = 0 // the queues have their own
				w.connect(t, qa, qb, cm.Params{})
				for n := uint64(0); n < uint64(rng.IntN(200)) && !over.Load(); n++ {
					binary.BigEndian.PutUint64(buf, uint64(qb.Num()))
					binary.BigEndian.PutUint64(buf[8:], n)
					if qa.PostSend(verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, SGL: []verbs.SGE{mr.SGE(0, 16)}}) != nil {
						break
					}
					for idle := false; !idle; { // its buffer is free when it has completed
						idle = qa.State() != verbs.RTS || qa.Stats().Sends.Messages > n
						runtime.Gosched()
					}
				}
				[]func(){qa.Abort, qb.Abort, func() { _ = qb.Terminate() }}[rng.IntN(3)]()
				check(t, errors.Join(qa.Destroy(), qb.Destroy()))
				for drop.Poll(make([]verbs.WC, 64)) > 0 {
				}
			}
		})
	}
	// One posts, one changes the queue.
	wg.Go(func() {
		for !over.Load() {
			id := posted.Load()
			switch err := srq.PostRecv(verbs.RecvWR{ID: id, SGL: []verbs.SGE{b.mr.SGE(int(id%(1<<15))*16, 16)}}); {
			case err == nil:
				posted.Add(1)
			case errors.Is(err, verbs.ErrFull):
				runtime.Gosched()
			default:
				t.Error(err)
				return
			}
		}
	})
	wg.Go(func() {
		rng := rand.New(rand.NewPCG(seed, pairs))
		for !over.Load() {
			if _, err := srq.Modify(verbs.SRQModify{WRs: new(8 + rng.IntN(most-8)), Arm: true}); err != nil && !errors.Is(err, verbs.ErrShrink) {
				t.Error(err)
				return
			}
			runtime.Gosched()
		}
	})
	seen := map[uint64]bool{}
	next := map[uint32]uint64{}
	take := func() int {
		var wcs [32]verbs.WC
		n := cq.Poll(wcs[:])
		for _, wc := range wcs[:n] {
			if seen[wc.ID] {
				t.Errorf("receive %d completes twice", wc.ID)
			}
			seen[wc.ID] = true
			if wc.Status != verbs.Success {
				if wc.Status != verbs.Flushed {
					t.Errorf("receive %d: %v", wc.ID, wc.Status)
				}
				continue
			}
			total.Add(1)
			got := b.buf[wc.ID%(1<<15)*16:]
			qp, n := uint32(binary.BigEndian.Uint64(got)), binary.BigEndian.Uint64(got[8:])
			if qp != wc.QPNum || n != next[wc.QPNum] {
				t.Errorf("queue pair %d got message %d of %d, expected %d", wc.QPNum, n, qp, next[wc.QPNum])
			}
			next[wc.QPNum]++
		}
		return n
	}
	for total.Load() < messages && !t.Failed() {
		if take() == 0 {
			runtime.Gosched()
		}
	}
	over.Store(true)
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	for done := false; !done; {
		select {
		case <-ended:
			done = true
		default:
			take()
			runtime.Gosched()
		}
	}
	for take() > 0 {
	}
	left := must(srq.Query())(t)
	if uint64(len(seen)+left.Posted) != posted.Load() || left.Posted+left.Free != left.WRs || left.QPs != 0 {
		t.Errorf("%d receives were posted, %d completed; left is %+v", posted.Load(), len(seen), left)
	}
}
