package verbs_test

import (
	"bytes"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// allStates are those of Verbs §6.2.
var allStates = []verbs.State{verbs.Idle, verbs.RTS, verbs.Closing, verbs.Terminate, verbs.Error}

// Create QP makes a queue pair in Idle with the attributes it was given, and Query returns
// all of them in every state.
//
// Claims: V-6.1.1-2 V-6.1.1-3 V-6.1.1-6 V-6.1.1-8 V-6.1.1-9 V-6.1.1-10 V-6.1.2-1 V-6.2.1-3 V-6.2.4-1 V-6.5-6
// Claims: V-9.2.5.1-1 V-9.2.5.1-10 V-9.2.5.1-12 V-9.2.5.2-1 V-9.2.5.2-7
// Claims: V-9.2.5.1-2 V-9.2.5.1-3 V-9.2.5.1-4 V-9.2.5.1-9 V-9.2.5.2-3
func TestQueryTellsWhatTheQueuePairIsInEveryState(t *testing.T) {
	for _, state := range allStates {
		synctest.Test(t, func(t *testing.T) {
			s := enact(t, state, nil)
			a := s.a
			want := verbs.QPAttributes{
				Num: a.qp.Num(), State: state, PD: a.pd, SendCQ: a.sendCQ, RecvCQ: a.recvCQ,
				SendDepth: 16, RecvDepth: 16, SendSGEs: 4, WriteSGEs: 4, RecvSGEs: 4, IRD: 4, ORD: 4,
				RemoteRead: true, RemoteWrite: true, RemoteAtomic: true, Extensions: true,
			}
			got := query(t, a.qp)
			if stream := state == verbs.RTS || state == verbs.Closing || state == verbs.Terminate; (got.LLP != nil) != stream {
				t.Errorf("%v: the stream is %v", state, got.LLP)
			}
			if (got.Terminate != nil) != (state == verbs.Terminate) {
				t.Errorf("%v: the Terminate message is % x", state, got.Terminate)
			}
			got.LLP, got.Terminate, got.TerminateError, got.TerminateLocal = nil, nil, nil, false
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%v: it is\n%+v, expected\n%+v", state, got, want)
			}
		})
	}
	s := newSide(t, reads)
	nums := map[uint32]bool{s.qp.Num(): true}
	for i := range 20 {
		cfg := verbs.QPConfig{
			SendCQ: s.sendCQ, RecvCQ: s.recvCQ, SendDepth: 1 + i, RecvDepth: 50 - i, SendSGEs: 2 + i, WriteSGEs: 1 + i%3, RecvSGEs: 1 + i/2,
			IRD: i, ORD: 20 - i, NoRemoteRead: i%2 == 0, NoRemoteWrite: i%3 == 0, BindWindows: i%4 == 0, Privileged: i%5 == 0,
		}
		qp := must(s.pd.CreateQP(cfg))(t)
		want := verbs.QPAttributes{
			Num: qp.Num(), PD: s.pd, SendCQ: s.sendCQ, RecvCQ: s.recvCQ, SendDepth: cfg.SendDepth, RecvDepth: cfg.RecvDepth,
			SendSGEs: cfg.SendSGEs, WriteSGEs: cfg.WriteSGEs, RecvSGEs: cfg.RecvSGEs, IRD: cfg.IRD, ORD: cfg.ORD,
			RemoteRead: !cfg.NoRemoteRead, RemoteWrite: !cfg.NoRemoteWrite, RemoteAtomic: !cfg.NoRemoteRead && !cfg.NoRemoteWrite,
			BindWindows: cfg.BindWindows, Privileged: cfg.Privileged,
		}
		if got := query(t, qp); !reflect.DeepEqual(got, want) {
			t.Errorf("it is\n%+v, expected\n%+v", got, want)
		}
		if nums[qp.Num()] || qp.Num() == 0 {
			t.Errorf("the QP ID %d is another's, or 0", qp.Num())
		}
		nums[qp.Num()] = true
		qp.Abort()
		check(t, qp.PostRecv(verbs.RecvWR{})) // flushed at once
		if wc := take(t, s.recvCQ, 1)[0]; wc.QP != qp || wc.QPNum != qp.Num() {
			t.Errorf("the completion names %d, expected %d", wc.QPNum, qp.Num())
		}
		// Lists are as long as was asked for, of each kind.
		check(t, qp.Reset())
		for op, most := range map[verbs.Op]int{verbs.OpSend: cfg.SendSGEs, verbs.OpWrite: cfg.WriteSGEs} {
			if cfg.SendDepth > 1 {
				check(t, qp.PostSend(verbs.SendWR{Op: op, SGL: make([]verbs.SGE, most)}))
				wantError(t, qp.PostSend(verbs.SendWR{Op: op, SGL: make([]verbs.SGE, most+1)}), verbs.ErrSGLLength)
				qp.Abort()
				take(t, s.sendCQ, 1)
				check(t, qp.Reset())
			}
		}
	}
}

// Query returns the Terminate message at both ends, in Terminate and in Error, as it was on
// the wire, and which side sent it. It does not before, nor for the next stream.
//
// Claims: V-6.2.2.3-2 V-6.2.3-13 V-9.2.5.2-5 V-6.6.2.5-3
// Claims: V-8.3.3-3
func TestBothEndsTellOfTheTerminateMessage(t *testing.T) {
	for name, end := range map[string]func(s *table){
		"of its own accord": func(s *table) { check(s.a.t, s.a.qp.Terminate()) },
		"for a violation":   func(s *table) { s.b.post(s.b.send(1, 0, 8)) },
	} {
		bubble(t, reads, reads, func(t *testing.T, s *table) {
			s.a.post(verbs.SendWR{Op: verbs.OpWrite}) // so that b may send
			quiesce()
			for _, qp := range []*verbs.QP{s.a.qp, s.b.qp} {
				if q := query(t, qp); q.Terminate != nil || q.TerminateError != nil {
					t.Errorf("%s: % x before", name, q.Terminate)
				}
			}
			s.x.Hold()
			end(s)
			quiesce()
			sent := query(t, s.a.qp)
			if sent.State != verbs.Terminate || len(sent.Terminate) < 4 {
				t.Fatalf("%s: it is %v, with % x", name, sent.State, sent.Terminate)
			}
			s.x.Resume()
			quiesce()
			a, b := query(t, s.a.qp), query(t, s.b.qp)
			if a.State != verbs.Error || b.State != verbs.Error {
				t.Fatalf("%s: they are %v and %v", name, a.State, b.State)
			}
			for _, q := range []verbs.QPAttributes{sent, a, b} {
				if !bytes.Equal(q.Terminate, sent.Terminate) || q.TerminateLocal != (q.Num == a.Num && q.PD == a.PD) || q.TerminateError.Code != a.TerminateError.Code {
					t.Errorf("%s: % x (of its own: %v), expected % x", name, q.Terminate, q.TerminateLocal, sent.Terminate)
				}
			}
			a.Terminate[0] ^= 0xFF // a copy
			if q := query(t, s.a.qp); !bytes.Equal(q.Terminate, sent.Terminate) {
				t.Errorf("%s: the consumer can change it", name)
			}
			check(t, s.a.qp.Reset())
			if q := query(t, s.a.qp); q.Terminate != nil || q.TerminateLocal {
				t.Errorf("%s: % x in Idle", name, q.Terminate)
			}
		})
	}
}

// A queue pair with a shared receive queue has no receives of its own, and a limit.
//
// Claims: V-9.2.5.1-5 V-9.2.5.1-6 V-9.2.5.1-11 V-9.2.5.2-4 V-9.2.5.2-6 V-9.2.5.3-5
// Claims: V-9.2.5.1-2 V-9.2.5.3-2
func TestQueryTellsOfTheSharedReceiveQueue(t *testing.T) {
	s := newSide(t, reads)
	srq := must(s.pd.CreateSRQ(verbs.SRQConfig{WRs: 8}))(t)
	wantLimit := func(qp *verbs.QP, limit int, armed bool) {
		t.Helper()
		if q := query(t, qp); q.SRQ != srq || q.RecvDepth != 0 || q.RecvSGEs != 0 || q.RQLimit != limit || q.RQLimitArmed != armed {
			t.Errorf("it is %+v, expected a limit of %d, armed: %v", q, limit, armed)
		}
	}
	wantLimit(s.newQP(verbs.QPConfig{SRQ: srq, RecvDepth: 1 << 30, RecvSGEs: 1 << 30}), 0, false)
	qp := s.newQP(verbs.QPConfig{SRQ: srq, RQLimit: 3})
	wantLimit(qp, 3, true)
	for range 2 { // armed or not
		m := must(qp.Modify(verbs.Idle, verbs.QPModify{ArmRQLimit: true}))(t)
		if m.RecvDepth != 0 {
			t.Errorf("Modify returns a RecvDepth of %d", m.RecvDepth)
		}
		wantLimit(qp, 3, true)
	}
	must(qp.Modify(verbs.Idle, verbs.QPModify{RQLimit: new(5)}))(t)
	wantLimit(qp, 5, true)
	if q := query(t, s.qp); q.SRQ != nil || q.RQLimit != 0 || q.RQLimitArmed {
		t.Errorf("without an S-RQ it is %+v", q)
	}
}

// A pool of Reads is used up by the queue pairs that exist, and each that can exist
// can have one.
//
// Claims: V-6.5-1 V-6.5-3 V-6.5-10 V-9.2.1.2-30 V-9.2.5.1-13 V-9.2.5.1-14
func TestPoolsOfReadsAreSharedByQueuePairs(t *testing.T) {
	r := must(verbs.Open(verbs.Config{Limits: verbs.Limits{TotalIRD: 6, TotalORD: 5}}))(t)
	t.Cleanup(func() { _ = r.Close() })
	a := must(r.Query())(t)
	if a.Limits.TotalIRD != 6 || a.Limits.TotalORD != 5 || a.Limits.QPs != 5 {
		t.Errorf("the limits are %+v", a.Limits)
	}
	pd := must(r.AllocPD())(t)
	cq := must(r.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
	create := func(ird, ord int) (*verbs.QP, error) {
		return pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, IRD: ird, ORD: ord})
	}
	var qps []*verbs.QP
	for range a.Limits.QPs {
		qps = append(qps, must(create(1, 1))(t))
	}
	_, err := create(0, 0)
	wantLimit(t, err, verbs.ErrResources, "Limits.QPs")
	check(t, qps[0].Destroy())
	check(t, qps[1].Destroy())
	must(create(3, 2))(t)
	_, err = create(1, 0)
	wantLimit(t, err, verbs.ErrResources, "Limits.TotalIRD")
	_, err = create(0, 1)
	wantLimit(t, err, verbs.ErrResources, "Limits.TotalORD")
	if u := r.Usage(); u.IRD != 6 || u.ORD != 5 || u.QPs != 4 {
		t.Errorf("usage is %+v", u)
	}
	must(create(0, 0))(t)
	wide := must(verbs.Open(verbs.Config{}))(t) // without pools each has its own
	t.Cleanup(func() { _ = wide.Close() })
	if l := must(wide.Query())(t).Limits; l.TotalIRD != 0 || l.TotalORD != 0 || l.IRD < 1 || l.ORD < 1 {
		t.Errorf("the limits are %+v", l)
	}
}

// Whatever is outstanding, a queue pair can be destroyed in every state, and nothing
// of it completes afterwards.
//
// Claims: V-6.1.4-1 V-6.1.4-2 V-6.1.4-4 V-6.1.4-6 V-9.2.5.4-1
func TestAQueuePairIsDestroyedInEveryState(t *testing.T) {
	for _, state := range allStates {
		synctest.Test(t, func(t *testing.T) {
			s := enact(t, state, func(s *scene) {
				s.a.receives(1, 2, 8)
				if state != verbs.Closing { // where there is none
					s.a.post(s.a.read(1, s.b, 0, 8), s.a.read(2, s.b, 0, 8))
				}
			})
			if state == verbs.Idle {
				s.a.receives(1, 2, 8)
				s.a.post(s.a.send(1, 0, 8))
			}
			check(t, s.a.qp.Destroy())
			quiesce()
			for _, cq := range []*verbs.CQ{s.a.sendCQ, s.a.recvCQ} {
				var wcs [8]verbs.WC
				cq.Poll(wcs[:]) // what there is was there before
				quiesce()
				wantNone(t, cq)
			}
			if s.x != nil {
				if _, err := s.x.Write([]byte("x")); err == nil {
					t.Errorf("%v: the connection is still open", state)
				}
			}
			if u := s.a.rnic.Usage(); u.QPs != 0 || u.IRD != 0 || u.ORD != 0 || s.a.rnic.QP(s.a.qp.Num()) != nil {
				t.Errorf("%v: usage is %+v", state, u)
			}
		})
	}
}

// Nothing goes on the wire in any state but RTS, save the Terminate message and the
// end of the stream.
//
// Claims: V-6.2.2-1 V-6.2.1-2
func TestNothingIsSentButInRTS(t *testing.T) {
	for _, state := range allStates[1:] {
		synctest.Test(t, func(t *testing.T) {
			s := enact(t, state, nil)
			before := s.x.Written()
			err := s.a.qp.PostSend(s.a.send(1, 0, 8))
			quiesce()
			if sent := s.x.Written() - before; (sent > 0) != (state == verbs.RTS) {
				t.Errorf("%v: %d octets were sent (%v)", state, sent, err)
			}
		})
	}
}

// A queue pair with a window bound to it cannot be destroyed, and the attempt changes
// nothing. Windows can be deallocated in Error, too. Closing the RNIC always succeeds.
//
// Claims: V-6.1.4-5 V-9.2.5.4-2
// Claims: V-9.2.5.4-3 V-6.2.4-7
func TestABoundWindowKeepsItsQueuePair(t *testing.T) {
	for _, cut := range []bool{false, true} {
		overWires(t, func(t *testing.T, w wire) {
			a, b := linked(t, w, able, able)
			mw, _ := a.bound(0, 10, verbs.RemoteRead)
			second, _ := a.bound(20, 10, verbs.RemoteRead)
			wantError(t, a.qp.Destroy(), verbs.ErrQPWindows)
			a.post(a.write(5, b, 0, 8)) // it goes on
			wantDone(t, a.sendCQ, done{5, verbs.Success})
			if cut {
				a.qp.Abort()
				reach(t, a.qp, verbs.Error)
				wantError(t, a.qp.Destroy(), verbs.ErrQPWindows)
				check(t, mw.Deallocate())
			} else {
				a.post(inval(6, mw.STag()))
				wantDone(t, a.sendCQ, done{6, verbs.Success})
			}
			wantError(t, a.qp.Destroy(), verbs.ErrQPWindows)
			if cut {
				check(t, a.rnic.Close())
				return
			}
			check(t, second.Deallocate())
			check(t, a.qp.Destroy())
			wantError(t, a.qp.Destroy(), verbs.ErrQP)
		})
	}
}

// The failure of a queue pair is visible in all the places where a program may look.
//
// Claims: V-9.5.2-4 V-9.5.3-37 V-8.3.3-11
func TestAQueuePairThatFailsSaysSo(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, reads, verbs.QPConfig{IRD: 4, ORD: 4, PauseOnEmptyRQ: true})
		a.receives(7, 1, 8)
		a.post(a.send(1, 0, 8), a.read(2, b, 0, 8), a.read(3, b, 0, 8), a.send(4, 0, 8)) // b does not get beyond the first
		wantDone(t, a.sendCQ, done{1, verbs.Success})
		check(t, a.qp.Fail())
		b.receives(1, 2, 8)
		wantDone(t, a.sendCQ, done{2, verbs.LocalCatastrophic}, done{3, verbs.Flushed}, done{4, verbs.Flushed})
		wantDone(t, a.recvCQ, done{7, verbs.Flushed})
		e := a.wantEvents(verbs.EventQPCatastrophic)[0]
		if e.QP != a.qp || e.Resource != verbs.ResourceQP {
			t.Errorf("the event is %+v", e)
		}
		reach(t, b.qp, verbs.Error)
		term := b.wantEvents(verbs.EventTerminateReceived)[0].Err.(*rdmap.TerminateError)
		if term.Layer != 0 || term.EType != 2 || term.Code != 7 || term.DDPHeader != nil {
			t.Errorf("the peer gets %v", term)
		}
		reach(t, a.qp, verbs.Error)
		check(t, a.qp.Fail()) // again
	})
}

// Requests that fail with their queue pair complete when the stream has ended: until then
// RDMAP works on them, and a Read Response may still be placed in its sink.
func TestWhatFailsWithTheQueuePairCompletesWhenTheStreamHasEnded(t *testing.T) {
	bubble(t, reads, reads, func(t *testing.T, s *table) {
		s.y.Hold() // the answer, and the end of the stream
		s.a.post(s.a.read(1, s.b, 0, 8), s.a.read(2, s.b, 8, 8))
		quiesce()
		check(t, s.a.qp.Fail())
		quiesce()
		wantNone(t, s.a.sendCQ)
		s.y.Resume()
		reach(t, s.a.qp, verbs.Error)
		quiesce()
		wantDone(t, s.a.sendCQ, done{1, verbs.LocalCatastrophic}, done{2, verbs.Flushed})
		check(t, s.a.qp.Reset())
	})
}

// The Read or atomic that the peer's Terminate message is about completes with
// Remote Termination Error, wherever it stands; all else is flushed.
//
// Claims: R-6.2.1-3
// Claims: V-9.5.2-5 V-6.2.4-5
func TestThePeersTerminateNamesTheRequest(t *testing.T) {
	bad := func(wr verbs.SendWR) verbs.SendWR { wr.Remote.STag ^= 1; return wr }
	for _, tt := range []struct {
		name string
		wrs  func(a, b *side) []verbs.SendWR
		want []verbs.Status
	}{
		{"the only Read", func(a, b *side) []verbs.SendWR { return []verbs.SendWR{bad(a.read(0, b, 0, 8))} }, []verbs.Status{verbs.RemoteTermination}},
		{"the second Read", func(a, b *side) []verbs.SendWR {
			return []verbs.SendWR{a.read(0, b, 0, 8), bad(a.read(1, b, 0, 8)), a.read(2, b, 0, 8)}
		}, []verbs.Status{verbs.Flushed, verbs.RemoteTermination, verbs.Flushed}},
		{"an atomic", func(a, b *side) []verbs.SendWR {
			return []verbs.SendWR{bad(a.atomic(0, verbs.OpFetchAdd, b, 0, 0, verbs.Atomic{})), a.send(1, 0, 0)}
		}, []verbs.Status{verbs.RemoteTermination, verbs.Flushed}},
		{"a Write between", func(a, b *side) []verbs.SendWR {
			return []verbs.SendWR{a.read(0, b, 0, 8), bad(a.write(1, b, 0, 8)), a.read(2, b, 0, 8)}
		}, []verbs.Status{verbs.Flushed, verbs.Flushed, verbs.Flushed}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, reads, reads, func(t *testing.T, s *table) {
				s.y.Hold() // the answers, so that all is outstanding when the end comes
				s.a.post(tt.wrs(s.a, s.b)...)
				quiesce()
				s.y.Resume()
				reach(t, s.a.qp, verbs.Error)
				for i, want := range tt.want {
					wc := take(t, s.a.sendCQ, 1)[0]
					if want == verbs.Flushed && wc.Status == verbs.Success {
						continue // it was answered, or written, before
					}
					if wc.ID != uint64(i) || wc.Status != want {
						t.Errorf("request %d: %v, expected %v", wc.ID, wc.Status, want)
					}
				}
				s.a.wantEvents(verbs.EventTerminateReceived)
			})
		})
	}
}
