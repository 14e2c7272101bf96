package verbs_test

import (
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// A window goes through its states, by all four ways to invalidate it.
//
// Claims: V-7.10.2-2 V-7.10.2-8 V-7.10.3-1 V-7.10.4-2 V-9.2.6.7-1 V-9.2.6.8-1 V-7.2-2 V-7.2-3 V-5.2-1 V-7.1-2 V-7.2.2-1
// Claims: V-9.2.6-2 V-9.2.6.7-2 V-9.2.6.8-2 V-9.3.1.1-10 V-9.3.1.1-19 V-7.10.5-1 V-7.2-4
func TestAWindowIsBoundAndInvalidatedAgainAndAgain(t *testing.T) {
	for _, tt := range []struct {
		name string
		op   verbs.Op
		by   func(s *table) *side
	}{
		{"Invalidate", verbs.OpInvalidate, func(s *table) *side { return s.a }},
		{"Read with Invalidate", verbs.OpReadInvalidate, func(s *table) *side { return s.a }},
		{"Send with Invalidate", verbs.OpSendInvalidate, func(s *table) *side { return s.b }},
		{"Send with SE and Invalidate", verbs.OpSendSEInvalidate, func(s *table) *side { return s.b }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, able, able, func(t *testing.T, s *table) {
				s.a.post(s.a.write(0, s.b, 0, 0)) // so that the responder may send
				wantDone(t, s.a.sendCQ, done{0, verbs.Success})
				mw, mr := s.a.window(), s.a.mrOf(verbs.MRConfig{Buf: s.a.buf[:100], Access: bindable, VA: 1 << 40})
				index := mw.STag().Index()
				unbound := verbs.MWAttributes{Index: index, PD: s.a.pd}
				for round := range uint64(3) {
					if got := must(mw.Query())(t); got != unbound || mw.Valid() {
						t.Errorf("round %d: unbound it is %+v", round, got)
					}
					b := mw.Binding(mr, 10, 20, verbs.RemoteWrite)
					b.ZeroBased = round == 1
					s.a.post(bind(1, b))
					wantDone(t, s.a.sendCQ, done{1, verbs.Success})
					want := verbs.MWAttributes{
						Index: index, Valid: true, PD: s.a.pd, Key: uint8(round) + 1, Access: verbs.RemoteWrite, QP: s.a.qp.Num(),
						Region: mr.STag().Index(), Base: 1<<40 + 10, Length: 20, ZeroBased: b.ZeroBased,
					}
					if b.ZeroBased {
						want.Base = 0
					}
					if got := must(mw.Query())(t); got != want || mw.STag() != b.Window || !mw.Valid() || mw.PD() != s.a.pd {
						t.Errorf("round %d: bound it is %+v, expected %+v", round, got, want)
					}
					// The peer writes through it, by the key of this round.
					s.b.buf[0] = 'A' + byte(round)
					s.b.post(verbs.SendWR{ID: 2, Op: verbs.OpWrite, Flags: verbs.Signaled, SGL: []verbs.SGE{s.b.mr.SGE(0, 1)}, Remote: verbs.Remote{STag: b.Window, TO: want.Base + 19}})
					wantDone(t, s.b.sendCQ, done{2, verbs.Success})
					quiesce()
					if s.a.buf[29] != 'A'+byte(round) {
						t.Errorf("round %d: the peer's octet is not there: %v", round, s.a.qp.Err())
					}
					wantError(t, mr.Deallocate(), verbs.ErrMRWindows)

					by := tt.by(s)
					wr := verbs.SendWR{ID: 3, Op: tt.op, Flags: verbs.Signaled, Invalidate: b.Window, Remote: s.b.mr.Remote(0)}
					if tt.op == verbs.OpReadInvalidate {
						wr.SGL = []verbs.SGE{{STag: b.Window, TO: want.Base, Length: 4}}
					}
					if by == s.b {
						s.a.receives(10, 1, 0)
					}
					by.post(wr)
					wantDone(t, by.sendCQ, done{3, verbs.Success})
					if by == s.b {
						if wc := wantDone(t, s.a.recvCQ, done{10, verbs.Success}); !wc[0].HasInvalidated || wc[0].Invalidated != b.Window {
							t.Errorf("round %d: the completion says that %v was invalidated", round, wc[0].Invalidated)
						}
					}
				}
				check(t, mr.Deallocate())
				check(t, mw.Deallocate())
				wantError(t, mw.Deallocate(), verbs.ErrSTag)
				wantError(t, last(mw.Query()), verbs.ErrSTag)
			})
		})
	}
}

// What a peer may not invalidate ends the stream with the code of the reason, after the
// octets have been placed, and the receive with one status.
//
// Claims: V-7.4.2-6 V-7.8-3 V-7.8-6 V-7.8-7 V-7.8-8 V-7.10.4-1 V-8.2.2.1-1 V-7.2.1-6
// Claims: V-9.5.2-11 V-8.3.2-3
// Claims: R-3.2-4
func TestEachFaultOfARemoteInvalidationHasItsCode(t *testing.T) {
	for _, tt := range []struct {
		name   string
		cfg    verbs.QPConfig
		target func(s *table) memory.STag
		code   uint8
	}{
		{name: "unknown", code: 0, target: func(s *table) memory.STag { return s.a.mr.STag() ^ 0x100 }},
		{name: "by another key", code: 0, target: func(s *table) memory.STag { return s.a.mr.STag() ^ 1 }},
		{name: "bound window by another key", code: 0, target: func(s *table) memory.STag {
			_, r := s.a.bound(0, 8, verbs.RemoteRead)
			return r.STag ^ 1
		}},
		{name: "only local rights", code: 2, target: func(s *table) memory.STag { return s.a.region(0, 8, bindable).STag() }},
		{name: "allocated for local rights", code: 2, target: func(s *table) memory.STag { return must(s.a.pd.AllocMR(1, false))(s.a.t).STag() }},
		{name: "a queue pair without remote rights", code: 2, cfg: verbs.QPConfig{NoRemoteRead: true, NoRemoteWrite: true},
			target: func(s *table) memory.STag { return s.a.mr.STag() }},
		{name: "Shared", code: 9, target: func(s *table) memory.STag {
			must(s.a.mr.RegisterShared(s.a.pd, verbs.SharedConfig{Access: verbs.LocalRead}))(s.a.t)
			return s.a.mr.STag()
		}},
		{name: "with a window", code: 9, target: func(s *table) memory.STag {
			mr := s.a.region(0, 8, allRights|verbs.BindWindow)
			s.a.post(bind(1, s.a.window().Binding(mr, 0, 8, verbs.RemoteRead)))
			wantDone(s.a.t, s.a.sendCQ, done{1, verbs.Success})
			return mr.STag()
		}},
		{name: "region of another domain", code: 9, target: func(s *table) memory.STag {
			return must(must(s.a.rnic.AllocPD())(s.a.t).Register(s.a.buf, allRights))(s.a.t).STag()
		}},
		{name: "unbound window of another domain", code: 9, target: func(s *table) memory.STag {
			return must(must(s.a.rnic.AllocPD())(s.a.t).AllocMW())(s.a.t).STag()
		}},
		{name: "window of another queue pair", code: 9, target: func(s *table) memory.STag {
			qp, peer := s.a.newQP(able), newSide(s.a.t, able)
			x, y := iwarptest.Pipe()
			join(s.a.t, qp, peer.qp, x, y, cm.Params{})
			b := s.a.window().Binding(s.a.region(0, 8, bindable), 0, 8, verbs.RemoteWrite)
			check(s.a.t, qp.PostSend(bind(1, b)))
			wantDone(s.a.t, s.a.sendCQ, done{1, verbs.Success})
			return b.Window
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := tt.cfg
			cfg.IRD, cfg.ORD, cfg.BindWindows = 4, 4, true
			bubble(t, cfg, able, func(t *testing.T, s *table) {
				s.b.receives(1, 1, 0)
				s.a.post(verbs.SendWR{Op: verbs.OpSend}) // so that the responder may send
				quiesce()
				stag := tt.target(s)
				mr, _ := s.a.rnic.QueryMR(stag.Index())
				mw, _ := s.a.rnic.QueryMW(stag.Index())
				s.a.receives(10, 2, 8)
				copy(s.b.buf, "payload!")
				wr := s.b.send(7, 0, 8)
				wr.Op, wr.Invalidate = verbs.OpSendInvalidate, stag
				s.b.post(wr)
				wantDone(t, s.a.recvCQ, done{10, verbs.InvalidateRefused}, done{11, verbs.Flushed})
				wantTerminate(t, s.a.qp, false, 0, 1, tt.code)
				if got := string(s.a.buf[:8]); got != "payload!" {
					t.Errorf("the message placed %q", got)
				}
				s.a.wantEvents() // none: the completion reported it
				mr2, _ := s.a.rnic.QueryMR(stag.Index())
				mw2, _ := s.a.rnic.QueryMW(stag.Index())
				if mr != mr2 || mw != mw2 {
					t.Errorf("it changed from %+v %+v to %+v %+v", mr, mw, mr2, mw2)
				}
			})
		})
	}
}

// An STag that is Invalid already may be invalidated, locally and by the peer.
//
// Claims: V-7.8-4 V-7.2.2-1
// Claims: V-7.2-4
func TestInvalidatingWhatIsInvalidSucceeds(t *testing.T) {
	bubble(t, able, able, func(t *testing.T, s *table) {
		s.a.post(s.a.write(0, s.b, 0, 0))
		wantDone(t, s.a.sendCQ, done{0, verbs.Success})
		mr, mw := must(s.a.pd.AllocMR(3, true))(t), s.a.window()
		for _, stag := range []memory.STag{mr.STag(), mr.STag() ^ 7, mw.STag(), mw.STag() ^ 7} {
			s.a.receives(10, 1, 0)
			s.a.post(inval(1, stag))
			wantDone(t, s.a.sendCQ, done{1, verbs.Success})
			s.b.post(verbs.SendWR{ID: 2, Op: verbs.OpSendInvalidate, Flags: verbs.Signaled, Invalidate: stag})
			wantDone(t, s.b.sendCQ, done{2, verbs.Success})
			wantDone(t, s.a.recvCQ, done{10, verbs.Success})
		}
		if a := must(mr.Query())(t); a.Valid || a.Entries != 3 || !a.RemoteAccess || a.PD != s.a.pd {
			t.Errorf("it is %+v", a)
		}
	})
}
