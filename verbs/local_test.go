package verbs_test

import (
	"errors"
	"math"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// able is a queue pair that may do all that changes memory.
var able = verbs.QPConfig{IRD: 4, ORD: 4, BindWindows: true, Privileged: true}

// bindable are the rights of a region for windows of all kinds.
const bindable = verbs.LocalRead | verbs.LocalWrite | verbs.BindWindow

// bind is a signaled OpBind, fast an OpFastRegister, inval an OpInvalidate.
func bind(id uint64, b verbs.Binding) verbs.SendWR {
	return verbs.SendWR{ID: id, Op: verbs.OpBind, Flags: verbs.Signaled, Bind: &b}
}

func fast(id uint64, f verbs.FastRegister) verbs.SendWR {
	return verbs.SendWR{ID: id, Op: verbs.OpFastRegister, Flags: verbs.Signaled, FastRegister: &f}
}

func inval(id uint64, stag memory.STag) verbs.SendWR {
	return verbs.SendWR{ID: id, Op: verbs.OpInvalidate, Flags: verbs.Signaled, Invalidate: stag}
}

// wantTerminate fails the test unless the queue pair's stream ended with a Terminate
// of this code, which this side sent if it is not remote.
func wantTerminate(t testing.TB, qp *verbs.QP, remote bool, layer, etype, code uint8) {
	t.Helper()
	reach(t, qp, verbs.Error)
	var e *rdmap.TerminateError
	if !errors.As(qp.Err(), &e) || e.Remote != remote || e.Layer != layer || e.EType != etype || e.Code != code {
		t.Errorf("the stream ended with %v, expected Terminate %d/%d/%d, of the peer %v", qp.Err(), layer, etype, code, remote)
	}
}

// window allocates a window of the side's domain.
func (s *side) window() *verbs.MW {
	s.t.Helper()
	return must(s.pd.AllocMW())(s.t)
}

// mrOf registers what is known to be registrable.
func (s *side) mrOf(cfg verbs.MRConfig) *verbs.MR {
	s.t.Helper()
	return must(s.pd.RegisterMR(cfg))(s.t)
}

// A failure of a work request is one completion, flushes the one behind it and ends
// the stream with a local catastrophic error (Verbs figure 23). Nothing else happens.
func wantLocalFailure(t *testing.T, s *table, wr verbs.SendWR, status verbs.Status) {
	t.Helper()
	wr.ID = 7
	wr.Flags = 0 // an error completes whether or not it is signaled
	before := s.x.Written()
	s.a.post(wr, s.a.write(8, s.b, 0, 8))
	wantDone(t, s.a.sendCQ, done{7, status}, done{8, verbs.Flushed})
	if t.Failed() {
		t.FailNow() // the stream goes on, and is not waited for
	}
	wantTerminate(t, s.a.qp, false, 0, 0, 0)
	wantTerminate(t, s.b.qp, true, 0, 0, 0)
	if n := s.x.Written() - before; n != fpdu(18+4) {
		t.Errorf("%d octets were sent, expected the Terminate alone", n)
	}
	s.a.wantEvents() // none: a completion reported it
}

// Each check of Verbs §7.10.6.1 has its status.
//
// Claims: V-5.2-5 V-7.10.6.1-1 V-7.10.2-4 V-7.10.2-5 V-7.10.2-6 V-7.10.2-8 V-7.10.2-9 V-7.3.2-1 V-7.1-4 V-6.2.4-4
// Claims: V-9.3.1.1-19 V-9.5.2-7 V-9.5.2-8 V-9.5.2-9 V-9.5.2-10 V-9.5.2-14 V-9.5.2-23 V-9.5.2-24 V-8.2.2.1-5 V-8.3.2-6
func TestEachFaultOfABindHasItsStatus(t *testing.T) {
	type objects struct {
		s       *table
		mr      *verbs.MR // bindable, 100 octets from VA 1000
		mw      *verbs.MW
		foreign *verbs.PD
	}
	for _, tt := range []struct {
		name   string
		bind   func(o *objects) verbs.Binding
		status verbs.Status
	}{
		{"a region's STag as window", func(o *objects) verbs.Binding {
			b := o.mw.Binding(o.mr, 0, 8, verbs.RemoteRead)
			b.Window = o.mr.STag()
			return b
		}, verbs.InvalidWindow},
		{"an unknown window", func(o *objects) verbs.Binding {
			b := o.mw.Binding(o.mr, 0, 8, verbs.RemoteRead)
			b.Window ^= 0x100
			return b
		}, verbs.InvalidWindow},
		{"a window that is bound", func(o *objects) verbs.Binding {
			o.s.a.post(bind(1, o.mw.Binding(o.mr, 0, 8, verbs.RemoteRead)))
			wantDone(o.s.a.t, o.s.a.sendCQ, done{1, verbs.Success})
			return o.mw.Binding(o.mr, 0, 8, verbs.RemoteRead)
		}, verbs.STagNotInvalid},
		{"an unknown region", func(o *objects) verbs.Binding {
			b := o.mw.Binding(o.mr, 0, 8, verbs.RemoteRead)
			b.Region ^= 0x100
			return b
		}, verbs.InvalidRegion},
		{"a region by another key", func(o *objects) verbs.Binding {
			b := o.mw.Binding(o.mr, 0, 8, verbs.RemoteRead)
			b.Region ^= 1
			return b
		}, verbs.InvalidRegion},
		{"a window's STag as region", func(o *objects) verbs.Binding {
			b := o.mw.Binding(o.mr, 0, 8, verbs.RemoteRead)
			b.Region = o.s.a.window().STag()
			return b
		}, verbs.InvalidRegion},
		{"a region that is Invalid", func(o *objects) verbs.Binding {
			o.s.a.post(inval(1, o.mr.STag()))
			wantDone(o.s.a.t, o.s.a.sendCQ, done{1, verbs.Success})
			return o.mw.Binding(o.mr, 0, 8, verbs.RemoteRead)
		}, verbs.InvalidRegion},
		{"a window of another domain", func(o *objects) verbs.Binding {
			return must(o.foreign.AllocMW())(o.s.a.t).Binding(o.mr, 0, 8, verbs.RemoteRead)
		}, verbs.InvalidPD},
		{"a region of another domain", func(o *objects) verbs.Binding {
			return o.mw.Binding(must(o.foreign.Register(make([]byte, 100), bindable))(o.s.a.t), 0, 8, verbs.RemoteRead)
		}, verbs.InvalidPD},
		{"window and region of another domain", func(o *objects) verbs.Binding {
			mr := must(o.foreign.Register(make([]byte, 100), bindable))(o.s.a.t)
			return must(o.foreign.AllocMW())(o.s.a.t).Binding(mr, 0, 8, verbs.RemoteRead)
		}, verbs.InvalidPD},
		{"a region that windows may not be bound to", func(o *objects) verbs.Binding {
			return o.mw.Binding(o.s.a.region(0, 100, allRights), 0, 8, verbs.RemoteRead)
		}, verbs.AccessViolation},
		{"a zero based region", func(o *objects) verbs.Binding {
			return o.mw.Binding(o.s.a.mrOf(verbs.MRConfig{Buf: o.s.a.buf, Access: bindable, ZeroBased: true}), 0, 8, verbs.RemoteRead)
		}, verbs.AccessViolation},
		{"no rights", func(o *objects) verbs.Binding { return o.mw.Binding(o.mr, 0, 8, 0) }, verbs.AccessViolation},
		{"rights that the region lacks", func(o *objects) verbs.Binding {
			return o.mw.Binding(o.s.a.region(0, 100, verbs.LocalRead|verbs.BindWindow), 0, 8, verbs.RemoteWrite)
		}, verbs.AccessViolation},
		{"octets before the region", func(o *objects) verbs.Binding { return o.mw.Binding(o.mr, math.MaxUint64, 8, verbs.RemoteRead) }, verbs.BaseBounds},
		{"octets behind the region", func(o *objects) verbs.Binding { return o.mw.Binding(o.mr, 93, 8, verbs.RemoteRead) }, verbs.BaseBounds},
		{"no octets", func(o *objects) verbs.Binding { return o.mw.Binding(o.mr, 0, 0, verbs.RemoteRead) }, verbs.BaseBounds},
		{"offsets that wrap", func(o *objects) verbs.Binding {
			return o.mw.Binding(o.mr, 0, math.MaxUint64, verbs.RemoteRead)
		}, verbs.WrapError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, able, able, func(t *testing.T, s *table) {
				o := &objects{s: s, foreign: must(s.a.rnic.AllocPD())(t)}
				o.mr = s.a.mrOf(verbs.MRConfig{Buf: s.a.buf[:100], Access: bindable, VA: 1000})
				o.mw = s.a.window()
				b := tt.bind(o)
				valid := o.mw.Valid()
				wantLocalFailure(t, s, bind(0, b), tt.status)
				if o.mw.Valid() != valid || must(o.mr.Query())(t).Windows > 1 {
					t.Error("it had an effect")
				}
			})
		})
	}
}

// Claims: V-7.10.6.1-1
// Claims: V-9.2.5.1-3 V-8.3.2-6
func TestBindNeedsAQueuePairThatMay(t *testing.T) {
	bubble(t, verbs.QPConfig{Privileged: true}, reads, func(t *testing.T, s *table) {
		mw := s.a.window()
		wantLocalFailure(t, s, bind(0, mw.Binding(s.a.region(0, 100, bindable), 0, 8, verbs.RemoteRead)), verbs.AccessViolation)
		if mw.Valid() {
			t.Error("it had an effect")
		}
	})
}

// Each check of Verbs §7.3.2.5 has its status.
//
// Claims: V-5.2-6 V-7.3.2.5-1 V-7.3.2.5-2 V-7.3.2.5-3 V-7.3.2.5-4 V-7.3.2.5-5 V-9.3.1.1-14 V-9.3.1.1-15 V-7.10.1-1
// Claims: V-7.6.1.1-2 V-7.4-2
// Claims: V-9.3.1.1-20 V-9.5.2-14 V-9.5.2-15 V-9.5.2-16 V-9.5.2-17 V-9.5.2-18 V-9.5.2-19 V-9.5.2-20 V-9.5.2-21 V-9.5.2-22 V-9.5.2-10 V-8.2.2.1-5
// Claims: V-8.3.2-5
func TestEachFaultOfAFastRegisterHasItsStatus(t *testing.T) {
	const size = memory.MinPageSize
	pages := memory.Pages(3, size)
	blocks := [][]byte{make([]byte, 100), make([]byte, 100), make([]byte, 100)}
	list := func(l verbs.BufferList) func(*side, *verbs.MR) verbs.FastRegister {
		return func(_ *side, mr *verbs.MR) verbs.FastRegister {
			f := mr.FastRegister(nil, verbs.LocalRead)
			f.List, f.VA = l, uint64(l.FBO)
			return f
		}
	}
	rights := func(access memory.Access) func(*side, *verbs.MR) verbs.FastRegister {
		return func(s *side, mr *verbs.MR) verbs.FastRegister { return mr.FastRegister(s.buf, access) }
	}
	for _, tt := range []struct {
		name   string
		mode   verbs.Mode
		fast   func(s *side, mr *verbs.MR) verbs.FastRegister
		status verbs.Status
	}{
		{"an unknown STag", verbs.PageMode, func(s *side, mr *verbs.MR) verbs.FastRegister {
			f := mr.FastRegister(s.buf, verbs.LocalRead)
			f.STag ^= 0x100
			return f
		}, verbs.InvalidSTag},
		{"a window", verbs.PageMode, func(s *side, mr *verbs.MR) verbs.FastRegister {
			f := mr.FastRegister(s.buf, verbs.LocalRead)
			f.STag = s.window().STag()
			return f
		}, verbs.InvalidSTag},
		{"a Shared region", verbs.PageMode, func(s *side, mr *verbs.MR) verbs.FastRegister {
			r := s.region(0, 8, verbs.LocalRead)
			must(r.RegisterShared(s.pd, verbs.SharedConfig{Access: verbs.LocalRead}))(s.t)
			return r.FastRegister(s.buf, verbs.LocalRead)
		}, verbs.InvalidSTag},
		{"a region of another domain", verbs.PageMode, func(s *side, mr *verbs.MR) verbs.FastRegister {
			return must(must(s.rnic.AllocPD())(s.t).AllocMR(2, true))(s.t).FastRegister(s.buf, verbs.LocalRead)
		}, verbs.InvalidPD},
		{"a Valid region", verbs.PageMode, func(s *side, mr *verbs.MR) verbs.FastRegister {
			return s.mr.FastRegister(s.buf, verbs.LocalRead)
		}, verbs.STagNotInvalid},
		{"a list that is too long", verbs.PageMode, list(verbs.BufferList{Buffers: pages, Size: size, Length: 1}), verbs.BufferListTooLong},
		{"no rights", verbs.PageMode, rights(0), verbs.InvalidFRAccess},
		{"remote without local rights", verbs.PageMode, rights(verbs.LocalRead | verbs.RemoteWrite), verbs.InvalidFRAccess},
		{"rights that the flag forbids", verbs.PageMode, rights(verbs.LocalRead | verbs.RemoteRead), verbs.InvalidFRAccess},
		{"a size of pages", verbs.PageMode, list(verbs.BufferList{Buffers: blocks[:1], Size: 100, Length: 1}), verbs.InvalidPageSize},
		{"a size of blocks", verbs.BlockMode, list(verbs.BufferList{Buffers: blocks[:1], Size: 63, Length: 1}), verbs.InvalidBufferSize},
		{"a page off its boundary", verbs.PageMode, list(verbs.BufferList{Buffers: [][]byte{make([]byte, 2*size)[1:][:size]}, Size: size, Length: 1}), verbs.InvalidBufferListEntry},
		{"a block of another size", verbs.BlockMode, list(verbs.BufferList{Buffers: blocks[:1], Size: 99, Length: 1}), verbs.InvalidBufferListEntry},
		{"a first byte offset", verbs.PageMode, list(verbs.BufferList{Buffers: pages[:1], Size: size, FBO: size, Length: 1}), verbs.InvalidFBO},
		{"a length", verbs.PageMode, list(verbs.BufferList{Buffers: pages[:2], Size: size, FBO: 1, Length: 2 * size}), verbs.InvalidFRLength},
		{"no memory at all", verbs.PageMode, func(_ *side, mr *verbs.MR) verbs.FastRegister { return mr.FastRegister(nil, verbs.LocalRead) }, verbs.InvalidFRLength},
		{"more octets than there may be", verbs.PageMode, rights(verbs.LocalRead), verbs.InvalidFRLength},
		{"a VA that does not match", verbs.PageMode, func(_ *side, mr *verbs.MR) verbs.FastRegister {
			f := mr.FastRegister(nil, verbs.LocalRead)
			f.List, f.VA = verbs.BufferList{Buffers: pages[:1], Size: size, FBO: 4, Length: 1}, 5
			return f
		}, verbs.InvalidVA},
		{"offsets that wrap", verbs.PageMode, func(s *side, mr *verbs.MR) verbs.FastRegister {
			f := mr.FastRegister(s.buf[:100], verbs.LocalRead)
			f.VA = math.MaxUint64 - 98
			return f
		}, verbs.WrapError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubbleOf(t, func(t *testing.T) {
				s := &table{a: newSideOf(t, verbs.Config{Mode: tt.mode, Limits: verbs.Limits{RegionsOctets: 3 << 19}}, able), b: newSide(t, able)}
				s.x, s.y = iwarptest.Pipe()
				join(t, s.a.qp, s.b.qp, s.x, s.y, cm.Params{})
				quiesce()
				mr := must(s.a.pd.AllocMR(2, false))(t)
				wantLocalFailure(t, s, fast(0, tt.fast(s.a, mr)), tt.status)
				if mr.Valid() {
					t.Error("it had an effect")
				}
			})
		})
	}
}

// Claims: V-7.3.2.5-6
// Claims: V-9.2.5.1-3 V-9.5.2-13 V-8.3.2-5 V-9.2.5.1-7
func TestFastRegisterNeedsAPrivilegedQueuePair(t *testing.T) {
	bubble(t, verbs.QPConfig{BindWindows: true}, reads, func(t *testing.T, s *table) {
		mr := must(s.a.pd.AllocMR(2, false))(t)
		wantLocalFailure(t, s, fast(0, mr.FastRegister(s.a.buf, verbs.LocalRead)), verbs.NotPrivileged)
		if mr.Valid() {
			t.Error("it had an effect")
		}
	})
}

// Each check of Verbs §7.8 and §7.10.6.3 has its status, for both ways to invalidate a
// local STag.
//
// Claims: V-7.8-3 V-7.8-6 V-7.8-8 V-7.10.4-1 V-8.1.2.3.3-1 V-8.1.3.1-4
// Claims: V-9.5.2-6 V-9.5.2-9 V-8.3.2-7
func TestEachFaultOfALocalInvalidationHasItsStatus(t *testing.T) {
	for _, tt := range []struct {
		name   string
		target func(s *table) verbs.SGE
		status verbs.Status
		read   bool // it can be the sink of a Read, which moves its octets first
	}{
		{name: "unknown", status: verbs.InvalidSTag, target: func(s *table) verbs.SGE {
			return verbs.SGE{STag: s.a.mr.STag() ^ 0x100, Length: 8}
		}},
		{name: "by another key", status: verbs.InvalidSTag, target: func(s *table) verbs.SGE {
			return verbs.SGE{STag: s.a.mr.STag() ^ 1, Length: 8}
		}},
		{name: "deallocated", status: verbs.InvalidSTag, target: func(s *table) verbs.SGE {
			mr := s.a.region(0, 8, allRights)
			check(s.a.t, mr.Deallocate())
			return mr.SGE(0, 8)
		}},
		{name: "Shared", status: verbs.InvalidSTag, read: true, target: func(s *table) verbs.SGE {
			mr := s.a.region(0, 8, allRights)
			must(mr.RegisterShared(s.a.pd, verbs.SharedConfig{Access: verbs.LocalRead}))(s.a.t)
			return mr.SGE(0, 8)
		}},
		{name: "with a window", status: verbs.InvalidSTag, read: true, target: func(s *table) verbs.SGE {
			mr := s.a.region(0, 8, allRights|verbs.BindWindow)
			s.a.post(bind(1, s.a.window().Binding(mr, 0, 8, verbs.RemoteRead)))
			wantDone(s.a.t, s.a.sendCQ, done{1, verbs.Success})
			return mr.SGE(0, 8)
		}},
		{name: "region of another domain", status: verbs.InvalidPD, target: func(s *table) verbs.SGE {
			pd := must(s.a.rnic.AllocPD())(s.a.t)
			return must(pd.Register(s.a.buf, allRights))(s.a.t).SGE(0, 8)
		}},
		{name: "window of another domain", status: verbs.InvalidPD, target: func(s *table) verbs.SGE {
			pd := must(s.a.rnic.AllocPD())(s.a.t)
			return verbs.SGE{STag: must(pd.AllocMW())(s.a.t).STag(), Length: 8}
		}},
		{name: "window of another queue pair", status: verbs.InvalidPD, target: func(s *table) verbs.SGE {
			qp, peer := s.a.newQP(able), newSide(s.a.t, able)
			x, y := iwarptest.Pipe()
			join(s.a.t, qp, peer.qp, x, y, cm.Params{})
			b := s.a.window().Binding(s.a.region(0, 8, bindable), 0, 8, verbs.RemoteWrite)
			check(s.a.t, qp.PostSend(bind(1, b)))
			wantDone(s.a.t, s.a.sendCQ, done{1, verbs.Success})
			return verbs.SGE{STag: b.Window, Length: 8}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, able, able, func(t *testing.T, s *table) {
				wantLocalFailure(t, s, inval(0, tt.target(s).STag), tt.status)
			})
			if !tt.read {
				return
			}
			bubble(t, able, able, func(t *testing.T, s *table) {
				e := tt.target(s)
				copy(s.b.buf, "answered")
				s.a.post(verbs.SendWR{ID: 7, Op: verbs.OpReadInvalidate, SGL: []verbs.SGE{e}, Remote: s.b.mr.Remote(0)})
				wantDone(t, s.a.sendCQ, done{7, tt.status})
				wantTerminate(t, s.b.qp, true, 0, 0, 0)
				if got := string(s.a.buf[:8]); got != "answered" {
					t.Errorf("the Read placed %q before the invalidation failed", got)
				}
				if !must(s.a.rnic.QueryMR(e.STag.Index()))(t).Valid {
					t.Error("it is Invalid")
				}
			})
		})
	}
}

// STags with the index 0 are refused when they are posted, where they can only be a
// mistake.
//
// Claims: V-7.2.1-6 V-7.2.1-7 V-7.3.2.5-2
// Claims: V-9.5.1.6-1 V-9.2.6.3-2 V-9.2.6.8-2
func TestZeroIsNoSTagToBindRegisterOrInvalidate(t *testing.T) {
	s := newSideOf(t, verbs.Config{Physical: make([]byte, 100)}, able)
	mw, mr := s.window(), s.region(0, 8, bindable)
	for _, key := range []memory.STag{0, 1} {
		b, r, f := mw.Binding(mr, 0, 8, verbs.RemoteRead), mw.Binding(mr, 0, 8, verbs.RemoteRead), mr.FastRegister(s.buf, verbs.LocalRead)
		b.Window, r.Region, f.STag = key, key, key
		for _, wr := range []verbs.SendWR{
			bind(1, b), bind(1, r), fast(1, f), inval(1, key), {Op: verbs.OpBind}, {Op: verbs.OpFastRegister},
			{Op: verbs.OpSendInvalidate, Invalidate: key},
		} {
			wantError(t, s.qp.PostSend(wr), verbs.ErrModifier)
		}
	}
	for name, err := range map[string]error{
		"query region":       last(s.rnic.QueryMR(0)),
		"query window":       last(s.rnic.QueryMW(0)),
		"deallocate":         s.rnic.DeallocateSTag(0),
		"query unknown":      last(s.rnic.QueryMR(mr.STag().Index() ^ 1)),
		"a window's":         last(s.rnic.QueryMR(mw.STag().Index())),
		"a region's":         last(s.rnic.QueryMW(mr.STag().Index())),
		"deallocate unknown": s.rnic.DeallocateSTag(mr.STag().Index() ^ 1),
	} {
		if !errors.Is(err, verbs.ErrSTag) {
			t.Errorf("%s: %v, expected %v", name, err, verbs.ErrSTag)
		}
	}
	if mw.Valid() || !mr.Valid() {
		t.Error("something changed")
	}
}

// last is the error of a verb that has another result, too.
func last[T any](_ T, err error) error { return err }
