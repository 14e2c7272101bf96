package verbs_test

import (
	"errors"
	"math"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// bound binds a window of the side's to octets [off, off+n) of its memory, which has
// no remote right but what the window gives.
func (s *side) bound(off, n uint64, access memory.Access) (*verbs.MW, verbs.Remote) {
	s.t.Helper()
	mw, mr := s.window(), s.mrOf(verbs.MRConfig{Buf: s.buf, Access: bindable, VA: 1 << 40})
	b := mw.Binding(mr, off, n, access)
	s.post(bind(99, b))
	wantDone(s.t, s.sendCQ, done{99, verbs.Success})
	return mw, verbs.Remote{STag: b.Window, TO: b.VA}
}

// Each check of Verbs §7.10.6.2, alone; what fails one moves no octet.
//
// Claims: V-7.10.6.2-1 V-7.10.6.2-2 V-7.10.2-3 V-5.2-4 V-8.1.2.2-2
// Claims: R-2.4-2
func TestEachAccessThroughAWindowIsChecked(t *testing.T) {
	const off, n = 1000, 50
	w, r := verbs.OpWrite, verbs.OpRead
	for _, tt := range []struct {
		name   string
		access memory.Access
		cfg    verbs.QPConfig
		op     verbs.Op
		at, n  int // relative to the window
		upset  func(s *table, mw *verbs.MW)
		event  verbs.EventID // 0: it is allowed
	}{
		{name: "all of it written", access: verbs.RemoteWrite, op: w, n: n},
		{name: "all of it read", access: verbs.RemoteRead, op: r, n: n},
		{name: "its last octet written", access: verbs.RemoteRead | verbs.RemoteWrite, op: w, at: n - 1, n: 1},

		{name: "an octet before it written", access: verbs.RemoteWrite, op: w, at: -1, n: 1, event: verbs.EventProtectionBounds},
		{name: "an octet behind it written", access: verbs.RemoteWrite, op: w, at: n, n: 1, event: verbs.EventProtectionBounds},
		{name: "one octet too many written", access: verbs.RemoteWrite, op: w, n: n + 1, event: verbs.EventProtectionBounds},
		{name: "one octet too many read", access: verbs.RemoteRead, op: r, n: n + 1, event: verbs.EventIRRQBounds},
		{name: "an octet before it read", access: verbs.RemoteRead, op: r, at: -1, n: 1, event: verbs.EventIRRQBounds},
		{name: "written without the right", access: verbs.RemoteRead, op: w, n: 1, event: verbs.EventProtectionAccess},
		{name: "read without the right", access: verbs.RemoteWrite, op: r, n: 1, event: verbs.EventIRRQAccess},
		{name: "written through a queue pair that takes no Writes", access: verbs.RemoteWrite, cfg: verbs.QPConfig{NoRemoteWrite: true}, op: w, n: 1,
			event: verbs.EventWriteDisabled},
		{name: "read through a queue pair that takes no Reads", access: verbs.RemoteRead, cfg: verbs.QPConfig{NoRemoteRead: true}, op: r, n: 1,
			event: verbs.EventReadDisabled},
		{name: "written after it was invalidated", access: verbs.RemoteWrite, op: w, n: 1, event: verbs.EventProtectionSTag,
			upset: func(s *table, mw *verbs.MW) {
				s.b.post(inval(1, mw.STag()))
				wantDone(s.b.t, s.b.sendCQ, done{1, verbs.Success})
			}},
		{name: "read after it was deallocated", access: verbs.RemoteRead, op: r, n: 1, event: verbs.EventIRRQSTag,
			upset: func(s *table, mw *verbs.MW) { check(s.b.t, mw.Deallocate()) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := tt.cfg
			cfg.IRD, cfg.ORD, cfg.BindWindows = 4, 4, true
			bubble(t, able, cfg, func(t *testing.T, s *table) {
				s.b.receives(1, 1, 0)
				s.a.post(s.a.send(0, 0, 0)) // so that the responder may send
				mw, remote := s.b.bound(off, n, tt.access)
				if tt.upset != nil {
					tt.upset(s, mw)
				}
				for i := range s.a.buf[:100] {
					s.a.buf[i] = 'a'
				}
				remote.TO += uint64(tt.at)
				s.a.post(verbs.SendWR{ID: 2, Op: tt.op, Flags: verbs.Signaled, SGL: []verbs.SGE{s.a.mr.SGE(0, tt.n)}, Remote: remote})
				quiesce()
				moved := s.b.buf[off+max(tt.at, 0)] == 'a'
				if tt.op == r {
					moved = s.a.buf[0] != 'a'
				}
				if moved != (tt.event == 0) {
					t.Errorf("moved %v", moved)
				}
				if tt.event == 0 {
					s.b.wantEvents()
					return
				}
				s.b.wantEvents(tt.event)
				reach(t, s.b.qp, verbs.Error)
			})
		})
	}
}

// Claims: V-5.2-4 V-7.10.2-3
// Claims: V-10.3-3
func TestAWindowServesThePeerOfOneQueuePair(t *testing.T) {
	for _, op := range []verbs.Op{verbs.OpWrite, verbs.OpRead} {
		bubbleOf(t, func(t *testing.T) {
			mine, other, b := newSide(t, reads), newSide(t, reads), newSide(t, able)
			x, y := iwarptest.Pipe()
			join(t, mine.qp, b.qp, x, y, cm.Params{})
			second := b.newQP(able) // of the same domain
			u, v := iwarptest.Pipe()
			join(t, other.qp, second, u, v, cm.Params{})
			mine.post(mine.write(0, b, 0, 0)) // so that the responder may work
			wantDone(t, mine.sendCQ, done{0, verbs.Success})
			_, remote := b.bound(0, 8, verbs.RemoteRead|verbs.RemoteWrite)
			wr := verbs.SendWR{ID: 1, Op: op, Flags: verbs.Signaled, SGL: []verbs.SGE{mine.mr.SGE(0, 8)}, Remote: remote}
			mine.post(wr)
			wantDone(t, mine.sendCQ, done{1, verbs.Success})
			wr.SGL[0] = other.mr.SGE(0, 8)
			other.post(wr)
			reach(t, second, verbs.Error)
			want := map[verbs.Op]verbs.EventID{verbs.OpWrite: verbs.EventProtectionPD, verbs.OpRead: verbs.EventIRRQPD}[op]
			b.wantEvents(want)
			if at := b.qp.State(); at != verbs.RTS {
				t.Errorf("the window's own queue pair is %v", at)
			}
		})
	}
}

// Claims: V-7.10.6.2-3 V-7.6.3-3
// Claims: V-8.2.2.2-4
func TestNothingIsCheckedWhereNothingIsMoved(t *testing.T) {
	bubble(t, able, able, func(t *testing.T, s *table) {
		mw := s.b.window() // never bound
		for i, stag := range []memory.STag{mw.STag(), s.b.mr.STag() ^ 1, 0xdeadbe00} {
			s.a.post(
				verbs.SendWR{ID: 1, Op: verbs.OpWrite, Flags: verbs.Signaled, Remote: verbs.Remote{STag: stag, TO: math.MaxUint64}},
				verbs.SendWR{ID: 2, Op: verbs.OpRead, Flags: verbs.Signaled, SGL: []verbs.SGE{{STag: stag ^ 0x100, TO: math.MaxUint64}},
					Remote: verbs.Remote{STag: stag, TO: math.MaxUint64}})
			for _, wc := range take(t, s.a.sendCQ, 2) {
				if wc.Status != verbs.Success {
					t.Errorf("STag %d: %v: %v", i, wc.Op, wc.Status)
				}
			}
		}
	})
}

// Claims: V-8.1.3.2-2
func TestAWindowIsNoSTagForAList(t *testing.T) {
	for _, op := range []verbs.Op{verbs.OpSend, verbs.OpWrite, verbs.OpFetchAdd, verbs.OpRecv} {
		t.Run(op.String(), func(t *testing.T) {
			bubble(t, able, able, func(t *testing.T, s *table) {
				_, remote := s.a.bound(0, 8, verbs.RemoteRead|verbs.RemoteWrite)
				sgl := []verbs.SGE{{STag: remote.STag, TO: remote.TO, Length: 8}}
				if op == verbs.OpRecv {
					check(t, s.a.qp.PostRecv(verbs.RecvWR{ID: 7, SGL: sgl}))
					s.a.post(s.a.write(0, s.b, 0, 0)) // so that the responder may send
					s.b.post(s.b.send(1, 0, 8))
					wantDone(t, s.a.recvCQ, done{7, verbs.InvalidSTag})
					wantTerminate(t, s.a.qp, false, 0, 0, 0)
					return
				}
				wantLocalFailure(t, s, verbs.SendWR{Op: op, SGL: sgl, Remote: s.b.mr.Remote(0)}, verbs.InvalidSTag)
			})
		})
	}
}

// The sink of a Read is written by the peer's answer: a window will do, whatever
// QPConfig.ReadSinkLocalWrite says of regions.
//
// Claims: V-8.1.2.2-4 V-7.4.2-5 V-8.2.2.1-2
// Claims: V-8.1.2.2-1
func TestAWindowCanBeTheSinkOfARead(t *testing.T) {
	for _, local := range []bool{false, true} {
		cfg := able
		cfg.ReadSinkLocalWrite = local
		for _, op := range []verbs.Op{verbs.OpRead, verbs.OpReadInvalidate} {
			bubble(t, cfg, able, func(t *testing.T, s *table) {
				mw, sink := s.a.bound(500, 8, verbs.RemoteWrite)
				copy(s.b.buf, "answered")
				s.y.Hold()
				s.a.post(verbs.SendWR{ID: 1, Op: op, Flags: verbs.Signaled, SGL: []verbs.SGE{{STag: sink.STag, TO: sink.TO, Length: 8}}, Remote: s.b.mr.Remote(0)})
				quiesce()
				if !mw.Valid() {
					t.Error("it is Invalid before the answer has come")
				}
				s.y.Resume()
				wantDone(t, s.a.sendCQ, done{1, verbs.Success})
				if got := string(s.a.buf[500:508]); got != "answered" || mw.Valid() != (op == verbs.OpRead) {
					t.Errorf("%v placed %q, valid %v", op, got, mw.Valid())
				}
			})
			bubble(t, cfg, able, func(t *testing.T, s *table) {
				_, sink := s.a.bound(500, 8, verbs.RemoteRead)
				s.a.post(verbs.SendWR{ID: 1, Op: op, SGL: []verbs.SGE{{STag: sink.STag, TO: sink.TO, Length: 8}}, Remote: s.b.mr.Remote(0)})
				reach(t, s.a.qp, verbs.Error)
				s.a.wantEvents(verbs.EventProtectionAccess)
			})
		}
	}
}

// A Bind sends nothing, and takes effect before the request behind it, in the order of the
// queue. So does a Fast-Register.
//
// Claims: V-8.2.2.1-3 V-8.1.2.3.1-1 V-7.3.2.5-7 V-8.1.2.3.3-2
// Claims: V-9.2.6-1 V-9.2.6-2 V-9.3.1.1-16 V-7.1-1 V-7.8-1 V-8.1.2.3-1 V-9.2.6-3
func TestLocalRequestsTakeEffectBeforeTheNextAndSendNothing(t *testing.T) {
	bubble(t, able, able, func(t *testing.T, s *table) {
		mw, lent := s.a.window(), s.a.mrOf(verbs.MRConfig{Buf: s.a.buf[2000:2100], Access: bindable})
		mr := must(s.a.pd.AllocMR(1, true))(t)
		f := mr.FastRegister(s.a.buf[1000:1010], verbs.LocalRead)
		b := mw.Binding(lent, 0, 10, verbs.RemoteWrite)
		copy(s.a.buf[1000:], "registered")
		before := s.x.Written()
		s.a.post(fast(1, f), bind(2, b), inval(3, b.Window), inval(4, f.STag))
		wantDone(t, s.a.sendCQ, done{1, verbs.Success}, done{2, verbs.Success}, done{3, verbs.Success}, done{4, verbs.Success})
		if n := s.x.Written() - before; n != 0 {
			t.Errorf("%d octets were sent", n)
		}

		f.STag++
		b.Window++
		s.b.receives(10, 1, 100)
		s.a.post(s.a.read(1, s.b, 0, 8), fast(2, f), bind(3, b),
			verbs.SendWR{ID: 4, Op: verbs.OpSend, Flags: verbs.Signaled, SGL: []verbs.SGE{{STag: f.STag, Length: 10}}},
			inval(5, f.STag))
		wantDone(t, s.b.recvCQ, done{10, verbs.Success})
		wantDone(t, s.a.sendCQ, done{1, verbs.Success}, done{2, verbs.Success}, done{3, verbs.Success}, done{4, verbs.Success}, done{5, verbs.Success})
		if got := string(s.b.buf[:10]); got != "registered" || mr.Valid() || !mw.Valid() {
			t.Errorf("sent %q; the region is Valid %v, the window %v", got, mr.Valid(), mw.Valid())
		}

		// What is invalidated is so for the request behind it.
		f.STag++
		s.a.post(fast(1, f), inval(2, f.STag), verbs.SendWR{ID: 3, Op: verbs.OpSend, SGL: []verbs.SGE{{STag: f.STag, Length: 10}}})
		wantDone(t, s.a.sendCQ, done{1, verbs.Success}, done{2, verbs.Success}, done{3, verbs.InvalidSTag})
	})
}

// Claims: V-7.10.2-1
func TestAllWindowsCanBeBoundToOneRegionByOneQueuePair(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		const windows = 40
		s := &table{a: newSideOf(t, verbs.Config{Limits: verbs.Limits{Windows: windows}}, able), b: newSide(t, able)}
		s.x, s.y = iwarptest.Pipe()
		join(t, s.a.qp, s.b.qp, s.x, s.y, cm.Params{})
		quiesce()
		for _, shared := range []bool{false, true} {
			mr := s.a.region(0, 100, bindable)
			if shared {
				mr = must(mr.RegisterShared(s.a.pd, verbs.SharedConfig{Access: bindable}))(t)
			}
			var all []*verbs.MW
			for i := range uint64(windows) {
				mw := s.a.window()
				all = append(all, mw)
				s.a.post(bind(i, mw.Binding(mr, i, 30, verbs.RemoteRead)))
				wantDone(t, s.a.sendCQ, done{i, verbs.Success})
			}
			_, err := s.a.pd.AllocMW()
			wantError(t, err, verbs.ErrResources)
			if n := must(mr.Query())(t).Windows; n != windows || s.a.rnic.Usage().Windows != windows {
				t.Errorf("%d windows are bound", n)
			}
			for _, mw := range all {
				check(t, mw.Deallocate())
			}
			check(t, mr.Deallocate())
		}
	})
}

// Claims: V-9.2.6.7-1 V-7.2-3
func TestAllocatingAWindowHasItsResults(t *testing.T) {
	s := newSideOf(t, verbs.Config{Limits: verbs.Limits{Windows: 1}}, able)
	pd := must(s.rnic.AllocPD())(t)
	mw := must(pd.AllocMW())(t)
	if mw.STag().Index() == 0 || mw.Valid() {
		t.Errorf("allocated %v, valid %v", mw.STag(), mw.Valid())
	}
	wantError(t, last(pd.AllocMW()), verbs.ErrResources)
	wantError(t, pd.Dealloc(), verbs.ErrPDInUse)
	check(t, s.rnic.DeallocateSTag(mw.STag().Index()))
	check(t, pd.Dealloc())
	wantError(t, last(pd.AllocMW()), verbs.ErrPD)
	mw = must(s.pd.AllocMW())(t)
	check(t, s.rnic.Close())
	for name, err := range map[string]error{
		"allocate": last(s.pd.AllocMW()), "query": last(mw.Query()), "deallocate": mw.Deallocate(),
		"query by index": last(s.rnic.QueryMW(mw.STag().Index())), "deallocate by index": s.rnic.DeallocateSTag(mw.STag().Index()),
	} {
		if !errors.Is(err, verbs.ErrRNIC) {
			t.Errorf("%s: %v, expected %v", name, err, verbs.ErrRNIC)
		}
	}
}
