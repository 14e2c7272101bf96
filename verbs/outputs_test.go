package verbs_test

import (
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/verbs"
)

// A verb that fails gives no handle: its outputs are those of success (Verbs §9.2).
//
// Claims: V-9.2.1.1-3 V-9.2.2.1-2 V-9.2.3.1-3 V-9.2.4.1-2 V-9.2.5.1-9 V-9.2.6.1-3 V-9.2.6.2-9 V-9.2.6.6-5 V-9.2.6.7-2
func TestAVerbThatFailsGivesNoHandle(t *testing.T) {
	b := newBench(t)
	nothing := func(handle any, err error) {
		t.Helper()
		if err == nil || !reflect.ValueOf(handle).IsZero() {
			t.Errorf("%T %[1]v was returned, with the error %v", handle, err)
		}
	}
	nothing(verbs.Open(verbs.Config{Name: b.rnic.Name()}))
	nothing(b.rnic.CreateCQ(verbs.CQConfig{}))
	nothing(b.gone.CreateSRQ(verbs.SRQConfig{WRs: 1}))
	nothing(b.gone.CreateQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq}))
	nothing(b.gone.AllocMR(1, false))
	nothing(b.gone.RegisterMR(verbs.MRConfig{Buf: b.buf, Access: verbs.LocalRead}))
	nothing(b.twin.RegisterShared(b.gone, verbs.SharedConfig{Access: allRights}))
	nothing(b.gone.AllocMW())
	nothing(b.rnic.SetCompletionHandler(func(*verbs.CQ) {}, b.handle+1))
	check(t, b.rnic.Close())
	nothing(b.rnic.AllocPD())
}

// operation is a signaled request of the operation, of a for b, and what the receive
// completes as that it uses up at b, if it does; Op of that is 0 otherwise.
func operation(s *table, id uint64, op verbs.Op) (wr verbs.SendWR, received verbs.WC) {
	s.a.t.Helper()
	wr = verbs.SendWR{ID: id, Op: op, Flags: verbs.Signaled, Remote: s.b.mr.Remote(0), SGL: []verbs.SGE{s.a.mr.SGE(0, 8)}}
	message := verbs.WC{QP: s.b.qp, QPNum: s.b.qp.Num(), Op: verbs.OpRecv, Bytes: 8}
	switch op {
	case verbs.OpSend:
		received = message
	case verbs.OpSendSE:
		received = message
		received.Solicited = true
	case verbs.OpSendInvalidate, verbs.OpSendSEInvalidate:
		wr.Invalidate = s.b.region(0, 8, allRights).STag()
		received = message
		received.HasInvalidated, received.Invalidated, received.Solicited = true, wr.Invalidate, op == verbs.OpSendSEInvalidate
	case verbs.OpImmediate, verbs.OpImmediateSE:
		wr.Immediate = [8]byte{1, 7: 8}
		received = message
		received.Op, received.Immediate, received.Solicited = verbs.OpRecvImmediate, wr.Immediate, op == verbs.OpImmediateSE
	case verbs.OpReadInvalidate:
		wr.SGL[0] = s.a.region(0, 8, allRights).SGE(0, 8)
	case verbs.OpInvalidate:
		wr.Invalidate = s.a.region(0, 8, allRights).STag()
	case verbs.OpBind:
		wr = bind(id, s.a.window().Binding(s.a.region(0, 8, bindable), 0, 8, verbs.RemoteRead))
	case verbs.OpFastRegister:
		wr = fast(id, must(s.a.pd.AllocMR(1, true))(s.a.t).FastRegister(s.a.buf[:8], verbs.LocalRead))
	}
	return wr, received
}

// Each kind of work request completes as what it is, under its ID and on its queue
// pair, when it succeeds and when it is flushed; a message completes a receive of the
// peer's, and nothing else does.
//
// Claims: V-9.3.2.1-8 V-9.5.2-1 V-9.5.2-2 V-9.3.2.1-5 V-9.3.1.1-3 V-9.3.1.1-4 V-9.5-1 V-8.1.2.3-1
// Claims: R-3.2-2 R-3.2-3 R-3.2-5 X-6.1-1 D-10.3-14
func TestEachOperationCompletesAsWhatItIs(t *testing.T) {
	for op := verbs.OpSend; op < verbs.OpRecv; op++ {
		t.Run(op.String(), func(t *testing.T) {
			bubble(t, able, able, func(t *testing.T, s *table) {
				const id = 1<<64 - 1
				is := func(wc verbs.WC) {
					t.Helper()
					if wc.Op != op || wc.QP != s.a.qp || wc.QPNum != s.a.qp.Num() {
						t.Errorf("it completed as %v of queue pair %d: %v", wc.Op, wc.QPNum, wc.Status)
					}
				}
				s.b.receives(8, 1, 8)
				wr, received := operation(s, id, op)
				s.a.post(wr)
				is(wantDone(t, s.a.sendCQ, done{id, verbs.Success})[0])
				quiesce()
				if received.Op == 0 {
					wantNone(t, s.b.recvCQ)
				} else {
					wc := wantDone(t, s.b.recvCQ, done{8, verbs.Success})[0]
					if got := (verbs.WC{
						QP: wc.QP, QPNum: wc.QPNum, Op: wc.Op, Bytes: wc.Bytes, Solicited: wc.Solicited,
						HasInvalidated: wc.HasInvalidated, Invalidated: wc.Invalidated, Immediate: wc.Immediate,
					}); got != received {
						t.Errorf("the receive completed as %+v, expected %+v", got, received)
					}
				}
				s.a.wantEvents()
				s.b.wantEvents()

				s.a.qp.Abort()
				wr, _ = operation(s, id-1, op)
				s.a.post(wr)
				is(wantDone(t, s.a.sendCQ, done{id - 1, verbs.Flushed})[0])
			})
		})
	}
}

// A completion handler is called with the CQ that its completion is on, which has
// its RNIC.
//
// Claims: V-9.4.1-5
func TestACompletionHandlerIsGivenItsCQ(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSide(t, verbs.QPConfig{})
		var called []*verbs.CQ
		handler := s.handler(func(cq *verbs.CQ) { called = append(called, cq) })
		for range 3 {
			cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 1, Handler: handler}))(t)
			qp := s.flusher(verbs.QPConfig{SendCQ: cq})
			check(t, cq.RequestNotify(verbs.NotifyNext))
			called = nil
			check(t, qp.PostSend(verbs.SendWR{Op: verbs.OpSend}))
			quiesce()
			if len(called) != 1 || called[0] != cq || called[0].RNIC() != s.rnic {
				t.Errorf("called with %v, expected %p alone", called, cq)
			}
		}
	})
}

// No verb of a CQ lists the queue pairs that it serves; a completion names its own
// (Verbs §5.3.2).
//
// Claims: V-5.3.2-2
func TestOnlyCompletionsTellWhatACQServes(t *testing.T) {
	for _, attributes := range []reflect.Type{reflect.TypeFor[verbs.CQAttributes](), reflect.TypeFor[verbs.CQConfig]()} {
		for i := range attributes.NumField() {
			if f := attributes.Field(i); f.Type.Kind() == reflect.Pointer || f.Type.Kind() == reflect.Slice {
				t.Errorf("%v.%s is a %v", attributes, f.Name, f.Type)
			}
		}
	}
	cq := reflect.TypeFor[*verbs.CQ]()
	for i := range cq.NumMethod() {
		m := cq.Method(i).Type
		for j := range m.NumOut() {
			if out := m.Out(j); out == reflect.TypeFor[*verbs.QP]() || out.Kind() == reflect.Slice {
				t.Errorf("%v.%s gives a %v", cq, cq.Method(i).Name, out)
			}
		}
	}
	s := newSide(t, verbs.QPConfig{})
	for range 2 {
		qp := s.flusher(verbs.QPConfig{})
		check(t, qp.PostSend(verbs.SendWR{Op: verbs.OpSend}))
		if wc := must(s.sendCQ.PollOne())(t); wc.QP != qp || wc.QPNum != qp.Num() {
			t.Errorf("the completion is of queue pair %d, expected %d", wc.QPNum, qp.Num())
		}
	}
}

// What a queue pair enables is for its peer: its own lists go by local rights alone
// (Verbs §8.1.2.2).
//
// Claims: V-8.1.2.2-3 V-7.4.1-3
func TestAQueuePairThatEnablesNothingSendsAndReceives(t *testing.T) {
	none := verbs.QPConfig{NoRemoteRead: true, NoRemoteWrite: true}
	bubble(t, none, reads, func(t *testing.T, s *table) {
		copy(s.a.buf, "to the peer")
		copy(s.b.buf[100:], "to this one")
		source, sink := s.a.region(0, 11, verbs.LocalRead), s.a.region(200, 11, verbs.LocalWrite)
		s.b.receives(1, 1, 11)
		check(t, s.a.qp.PostRecv(verbs.RecvWR{ID: 2, SGL: []verbs.SGE{sink.SGE(0, 11)}}))
		s.a.post(verbs.SendWR{ID: 3, Op: verbs.OpSend, Flags: verbs.Signaled, SGL: []verbs.SGE{source.SGE(0, 11)}},
			verbs.SendWR{ID: 4, Op: verbs.OpWrite, Flags: verbs.Signaled, SGL: []verbs.SGE{source.SGE(0, 11)}, Remote: s.b.mr.Remote(50)})
		wantDone(t, s.a.sendCQ, done{3, verbs.Success}, done{4, verbs.Success})
		wantDone(t, s.b.recvCQ, done{1, verbs.Success})
		quiesce()
		s.b.post(s.b.send(5, 100, 11))
		wantDone(t, s.a.recvCQ, done{2, verbs.Success})
		if sent, written, received := string(s.b.buf[:11]), string(s.b.buf[50:61]), string(s.a.buf[200:211]); sent != "to the peer" || written != sent || received != "to this one" {
			t.Errorf("sent %q, wrote %q, received %q", sent, written, received)
		}
	})
}

// What a queue pair that is no more has left on its CQ takes room there until the CQ
// has been polled, and none after that (Verbs §6.1.4).
//
// Claims: V-6.1.4-8
func TestPollingFreesTheRoomOfADestroyedQueuePair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const entries = 4
		s := newSide(t, verbs.QPConfig{})
		cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: entries}))(t)
		for range 3 {
			qp := s.flusher(verbs.QPConfig{SendCQ: cq})
			fill(t, qp, 0, entries)
			check(t, qp.Destroy())
			for cq.Poll(make([]verbs.WC, 1)) > 0 {
			}
			next := s.flusher(verbs.QPConfig{SendCQ: cq})
			fill(t, next, 10, entries)
			quiesce()
			s.wantEvents() // there is room for all
			wantDone(t, cq, done{10, verbs.Flushed}, done{11, verbs.Flushed}, done{12, verbs.Flushed}, done{13, verbs.Flushed})
			check(t, next.Destroy())
		}
	})
}

// A region that has shared its memory is a Shared one for good, also when the others
// are gone (Verbs §4).
//
// Claims: V-4-5
func TestARegionThatWasSharedStaysShared(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	mr := s.region(0, 8, allRights)
	if must(mr.Query())(t).Shared {
		t.Error("it is Shared from the beginning")
	}
	twin := must(mr.RegisterShared(s.pd, verbs.SharedConfig{Access: verbs.LocalRead}))(t)
	if !must(twin.Query())(t).Shared {
		t.Error("what shares its memory is not Shared")
	}
	check(t, twin.Deallocate())
	if !must(mr.Query())(t).Shared {
		t.Error("it is Shared no more")
	}
}
