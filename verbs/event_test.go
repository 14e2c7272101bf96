package verbs_test

import (
	"sync"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// Verbs §9.4.2: one handler, replaced by the next; without one, events are lost.
//
// Claims: V-8.3.3-1 V-8.3.3-2
// Claims: V-9.4.2-1 V-9.4.2-2
// Claims: V-9.4.2-3
func TestTheAsyncHandlerIsReplaced(t *testing.T) {
	bubble(t, reads, reads, func(t *testing.T, s *table) {
		var mu sync.Mutex
		calls := map[string]int{}
		handler := func(name string) func(verbs.Event) {
			return func(verbs.Event) {
				mu.Lock()
				calls[name]++
				mu.Unlock()
			}
		}
		a := s.a.rnic
		overflow := func() {
			cq := must(a.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
			qp := s.a.flusher(verbs.QPConfig{SendCQ: cq})
			for range 3 {
				check(t, qp.PostSend(verbs.SendWR{Op: verbs.OpSend}))
			}
			quiesce()
		}
		a.SetAsyncHandler(handler("first"))
		overflow()
		a.SetAsyncHandler(handler("second"))
		overflow()
		overflow()
		a.SetAsyncHandler(nil)
		overflow()
		if calls["first"] != 1 || calls["second"] != 2 {
			t.Errorf("calls %v, expected 1 of the first and 2 of the second", calls)
		}
	})
}

// An event that happens while a handler is busy goes to the handler that is set
// when it happens.
func TestAnEventGoesToTheHandlerOfItsTime(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	overflow := func() *verbs.CQ {
		cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
		qp := s.flusher(verbs.QPConfig{SendCQ: cq})
		for range 2 {
			check(t, qp.PostSend(verbs.SendWR{Op: verbs.OpSend}))
		}
		return cq
	}
	busy, release, events := make(chan struct{}), make(chan struct{}), make(chan *verbs.CQ, 1)
	s.rnic.SetAsyncHandler(func(verbs.Event) {
		close(busy)
		<-release
	})
	overflow()
	nettest.Await(t, busy)
	s.rnic.SetAsyncHandler(func(e verbs.Event) { events <- e.CQ })
	cq := overflow()
	close(release)
	if got := nettest.Await(t, events); got != cq {
		t.Error("another CQ's event")
	}
}

// The state of an event is committed before its handler runs: the handler sees it, and may
// use every verb.
func TestAnEventIsToldAfterItsStateWasEntered(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		for _, tt := range []struct {
			name  string
			end   func(peer *side)
			event verbs.EventID
			in    func(verbs.State) bool
			use   func(t *testing.T, qp *verbs.QP)
		}{
			{"graceful close, and connect again", func(peer *side) { check(peer.t, peer.qp.Close(peer.t.Context())) }, verbs.EventLLPCloseComplete,
				func(s verbs.State) bool { return s == verbs.Idle },
				func(t *testing.T, qp *verbs.QP) {
					other := newSide(t, reads)
					w.connect(t, qp, other.qp, cm.Params{})
				}},
			{"Terminate message, and reset", func(peer *side) { check(peer.t, peer.qp.Terminate()) }, verbs.EventTerminateReceived,
				func(s verbs.State) bool { return s == verbs.Terminate || s == verbs.Error },
				func(t *testing.T, qp *verbs.QP) {
					reach(t, qp, verbs.Error)
					for qp.Reset() != nil { // until it is flushed
						wantError(t, qp.Reset(), verbs.ErrFlushing)
					}
				}},
			{"lost, and destroyed", func(peer *side) { peer.qp.Abort() }, verbs.EventLLPReset,
				func(s verbs.State) bool { return s == verbs.Error || s == verbs.Idle },
				func(t *testing.T, qp *verbs.QP) { check(t, qp.Destroy()) }},
		} {
			t.Run(tt.name, func(t *testing.T) {
				a, b := newSide(t, reads), newSide(t, reads)
				handled := make(chan struct{})
				var once sync.Once
				a.rnic.SetAsyncHandler(func(e verbs.Event) {
					once.Do(func() {
						defer close(handled)
						if s := e.QP.State(); !tt.in(s) {
							t.Errorf("the state at %v is %v", e.ID, s)
						}
						if e.ID != tt.event && w.name == "TCP" {
							t.Errorf("the event is %v, expected %v", e.ID, tt.event)
						}
						tt.use(t, e.QP)
					})
				})
				w.connect(t, b.qp, a.qp, cm.Params{}) // b may send at once
				tt.end(b)
				nettest.Await(t, handled)
			})
		}
	})
}

// Each violation by the peer is one event, once, with the Terminate that was
// sent for it.
//
// Claims: V-8.3.3-2
// Claims: V-6.2.2-6 V-6.2.2.3-3 V-6.2.2.3-4 V-6.6.2.5-1
// Claims: V-8.3-1
// Claims: R-3.2-7 R-3.2-10 R-7-1
func TestAViolationIsOneEvent(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		for _, tt := range []struct {
			name  string
			wr    func(a, b *side) verbs.SendWR
			event verbs.EventID
		}{
			{"no receive", func(a, b *side) verbs.SendWR { return a.send(1, 0, 8) }, verbs.EventRQMSNRange},
			{"unknown STag", func(a, b *side) verbs.SendWR {
				wr := a.write(1, b, 0, 8)
				wr.Remote.STag ^= 1
				return wr
			}, verbs.EventProtectionSTag},
			{"bounds", func(a, b *side) verbs.SendWR {
				wr := a.write(1, b, 0, 8)
				wr.Remote.TO = uint64(len(b.buf)) - 7
				return wr
			}, verbs.EventProtectionBounds},
			{"wrap", func(a, b *side) verbs.SendWR {
				wr := a.write(1, b, 0, 8)
				wr.Remote.TO = 1<<64 - 7
				return wr
			}, verbs.EventProtectionWrap},
			{"Read of an unknown STag", func(a, b *side) verbs.SendWR {
				wr := a.read(1, b, 0, 8)
				wr.Remote.STag ^= 1
				return wr
			}, verbs.EventIRRQSTag},
			{"Read out of bounds", func(a, b *side) verbs.SendWR {
				wr := a.read(1, b, 0, 8)
				wr.Remote.TO = uint64(len(b.buf)) - 7
				return wr
			}, verbs.EventIRRQBounds},
			{"Read of the right to write", func(a, b *side) verbs.SendWR {
				wr := a.read(1, b, 0, 8)
				wr.Remote = b.region(0, 8, verbs.LocalWrite|verbs.RemoteWrite).Remote(0)
				return wr
			}, verbs.EventIRRQAccess},
			{"Read that wraps", func(a, b *side) verbs.SendWR {
				wr := a.read(1, b, 0, 8)
				wr.Remote.TO = 1<<64 - 7
				return wr
			}, verbs.EventIRRQWrap},
			{"misaligned atomic", func(a, b *side) verbs.SendWR { return a.atomic(1, verbs.OpFetchAdd, b, 4, 0, verbs.Atomic{}) }, verbs.EventNoLastBit},
		} {
			a, b := linked(t, w, reads, reads)
			a.post(tt.wr(a, b))
			reach(t, b.qp, verbs.Error)
			reach(t, a.qp, verbs.Error)
			e := b.wantEvents(tt.event)[0]
			if term, ok := e.Err.(*rdmap.TerminateError); !ok || term.Remote || e.QP != b.qp || b.qp.Err() != e.Err {
				t.Errorf("%s: the event is %+v; the queue pair's error is %v", tt.name, e, b.qp.Err())
			}
			received := a.wantEvents(verbs.EventTerminateReceived)[0].Err.(*rdmap.TerminateError)
			if own := b.qp.Err().(*rdmap.TerminateError); own.Layer != received.Layer || own.EType != received.EType || own.Code != received.Code {
				t.Errorf("%s: sent %v, received %v", tt.name, own, received)
			}
		}
	})
}

// Verbs §13.2: the option that waits for a receive instead of ending the stream.
//
// Claims: V-13.2-4
func TestAPausedQueuePairGoesOnWithTheNextReceive(t *testing.T) {
	cfg := verbs.QPConfig{PauseOnEmptyRQ: true, IRD: 4, ORD: 4}
	bubble(t, reads, cfg, func(t *testing.T, s *table) {
		copy(s.a.buf, "the message that waits")
		copy(s.a.buf[1000:], "the message that waits")
		s.a.post(s.a.send(1, 0, 22), s.a.send(2, 0, 22), s.a.write(3, s.b, 1000, 22))
		quiesce()
		if at := s.b.qp.State(); at != verbs.RTS {
			t.Fatalf("the state is %v", at)
		}
		for i := range uint64(2) {
			check(t, s.b.qp.PostRecv(verbs.RecvWR{ID: 10 + i, SGL: []verbs.SGE{s.b.mr.SGE(100*int(i), 22)}}))
			wantDone(t, s.b.recvCQ, done{10 + i, verbs.Success})
		}
		quiesce()
		for _, off := range []int{0, 100, 1000} {
			if got := string(s.b.buf[off : off+22]); got != "the message that waits" {
				t.Errorf("at %d is %q", off, got)
			}
		}
		// It is not deaf to its own end meanwhile.
		s.a.post(s.a.send(4, 0, 22))
		quiesce()
		check(t, s.b.qp.Destroy())
	})
}
