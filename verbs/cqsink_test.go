package verbs_test

import (
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/verbs"
)

// sunk makes a CQ whose completions go into the channel, as far as it has room.
func (s *side) sunk(room int) (*verbs.CQ, chan verbs.WC) {
	s.t.Helper()
	got := make(chan verbs.WC, room)
	cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 1, Sink: func(wc *verbs.WC) bool {
		select {
		case got <- *wc:
			return true
		default:
			return false
		}
	}}))(s.t)
	return cq, got
}

// More requests than the queues are deep end in the Sink, in their order: with its
// return their places are free.
func TestASinkTakesCompletionsAndFreesTheirPlaces(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		const n = 40
		a, b := newSide(t, verbs.QPConfig{}), newSide(t, verbs.QPConfig{})
		sendCQ, sent := a.sunk(n)
		recvCQ, received := b.sunk(n)
		from := a.newQP(verbs.QPConfig{SendCQ: sendCQ, SendDepth: 2})
		to := b.newQP(verbs.QPConfig{RecvCQ: recvCQ, RecvDepth: 2})
		w.connect(t, from, to, cm.Params{})
		for i := range uint64(n) {
			check(t, to.PostRecv(verbs.RecvWR{ID: 100 + i, SGL: []verbs.SGE{b.mr.SGE(0, 64)}}))
			send := a.send(i, 0, int(i))
			if i%2 == 0 {
				send.Flags = 0 // no completion, and its place is freed by the next
			}
			check(t, from.PostSend(send))
			wc := nettest.Await(t, received)
			if wc.ID != 100+i || wc.Bytes != uint32(i) || wc.QPNum != to.Num() || wc.QP != to || wc.Err() != nil {
				t.Fatalf("receive %d completed as %+v", i, wc)
			}
			if i%2 == 1 {
				if wc := nettest.Await(t, sent); wc.ID != i || wc.Op != verbs.OpSend || wc.QPNum != from.Num() {
					t.Fatalf("send %d completed as %+v", i, wc)
				}
			}
			if recvCQ.Poll(make([]verbs.WC, 1)) > 0 || sendCQ.Poll(nil) > 0 {
				t.Fatal("a completion was given to the Sink and can be polled, too")
			}
		}
	})
}

// The consumer of a Sink may see a completion before the Sink returns, and post the next
// receive at once: there is room for it.
func TestAReceiveIsFreeBeforeASinkHasItsCompletion(t *testing.T) {
	for _, shared := range []bool{false, true} {
		w := wires[0]
		a, b := newSide(t, verbs.QPConfig{}), newSide(t, verbs.QPConfig{})
		var post func(id uint64) error
		posted := make(chan error, 1)
		cq := must(b.rnic.CreateCQ(verbs.CQConfig{Entries: 1, Sink: func(wc *verbs.WC) bool {
			if wc.Status != verbs.Success {
				return true // the end of the queue pair flushes the second
			}
			done := make(chan error)
			go func() { done <- post(2) }()
			posted <- <-done
			return true
		}}))(t)
		cfg := verbs.QPConfig{RecvCQ: cq, RecvDepth: 1}
		if shared {
			cfg.SRQ, cfg.RecvDepth = must(b.pd.CreateSRQ(verbs.SRQConfig{WRs: 1}))(t), 0
		}
		to := b.newQP(cfg)
		post = func(id uint64) error {
			wr := verbs.RecvWR{ID: id, SGL: []verbs.SGE{b.mr.SGE(0, 64)}}
			if shared {
				return cfg.SRQ.PostRecv(wr)
			}
			return to.PostRecv(wr)
		}
		w.connect(t, a.qp, to, cm.Params{})
		check(t, post(1))
		check(t, a.qp.PostSend(a.send(1, 0, 8)))
		if err := nettest.Await(t, posted); err != nil {
			t.Errorf("shared %v: %v", shared, err)
		}
	}
}

func TestASinkIsGivenTheReasonOfAnError(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	cq, got := s.sunk(1)
	check(t, s.flusher(verbs.QPConfig{SendCQ: cq}).PostSend(verbs.SendWR{ID: 7, Op: verbs.OpSend}))
	if wc := nettest.Await(t, got); wc.Status != verbs.Flushed || wc.Err() == nil || wc.ID != 7 {
		t.Errorf("the completion is %+v: %v", wc, wc.Err())
	}
}

// A completion that a Sink refuses is lost as in a full CQ, and ends the queue pair.
func TestASinkWithoutRoomIsAnOverflow(t *testing.T) {
	w := wires[0]
	a, b := newSide(t, verbs.QPConfig{}), newSide(t, verbs.QPConfig{})
	cq, got := a.sunk(1)
	from := a.newQP(verbs.QPConfig{SendCQ: cq})
	w.connect(t, from, b.qp, cm.Params{})
	b.receives(0, 2, 8)
	for i := range uint64(2) {
		check(t, from.PostSend(a.send(i, 0, 8)))
	}
	reach(t, from, verbs.Error)
	if wc := nettest.Await(t, got); wc.ID != 0 || wc.Status != verbs.Success {
		t.Errorf("the completion before the overflow is %+v", wc)
	}
	a.wantEvents(verbs.EventCQOverflow, verbs.EventCQSQ)
}

// Receives that complete together go to the Sink, too, however many entries there are.
func TestASinkTakesTheCompletionsOfShortSends(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		const n = 40
		a, b := newSide(t, verbs.QPConfig{SendDepth: n}), newSide(t, verbs.QPConfig{})
		received := make(chan verbs.WC, n)
		cq := must(b.rnic.CreateCQ(verbs.CQConfig{Entries: 2 * n, Sink: func(wc *verbs.WC) bool {
			received <- *wc
			return true
		}}))(t)
		to := b.newQP(verbs.QPConfig{RecvCQ: cq, RecvDepth: n})
		w.connect(t, a.qp, to, cm.Params{})
		var wrs []verbs.SendWR
		for i := range uint64(n) {
			check(t, to.PostRecv(verbs.RecvWR{ID: i, SGL: []verbs.SGE{b.mr.SGE(0, 64)}}))
			wrs = append(wrs, a.send(i, 0, int(1+i)))
		}
		a.post(wrs...)
		for i := range uint64(n) {
			if wc := nettest.Await(t, received); wc.ID != i || wc.Bytes != uint32(1+i) || wc.QPNum != to.Num() {
				t.Fatalf("receive %d completed as %+v", i, wc)
			}
		}
		if cq.Poll(make([]verbs.WC, 1)) > 0 {
			t.Error("a completion was given to the Sink and can be polled, too")
		}
	})
}
