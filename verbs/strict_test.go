package verbs_test

import (
	"errors"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// What would complete in error, or have the answer end the stream, is refused before
// it is posted: the error is the result of a verb and the status, and the stream lives.
func TestAStrictQueuePairRefusesWhatWouldFail(t *testing.T) {
	strict := verbs.QPConfig{IRD: 4, ORD: 4, Strict: true}
	none, answers, byOption := strict, strict, strict
	none.ORD = 0
	answers.NoRemoteWrite = true
	byOption.ReadSinkLocalWrite = true
	read := func(e func(a *side) verbs.SGE) func(a, b *side) verbs.SendWR {
		return func(a, b *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpRead, SGL: []verbs.SGE{e(a)}, Remote: b.mr.Remote(0)}
		}
	}
	send := func(e func(a *side) verbs.SGE) func(a, b *side) verbs.SendWR {
		return func(a, b *side) verbs.SendWR { return verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{e(a)}} }
	}
	good := func(a *side) verbs.SGE { return a.mr.SGE(0, 8) }
	for _, tt := range []struct {
		name string
		cfg  verbs.QPConfig
		wr   func(a, b *side) verbs.SendWR
		want verbs.Status
		says string
	}{
		{"a Read", strict, read(good), verbs.Success, ""},
		{"a Read with ORD 0", none, read(good), verbs.ZeroReadResources, "QPConfig.ORD"},
		{"an atomic with ORD 0", none, func(a, b *side) verbs.SendWR { return a.atomic(0, verbs.OpFetchAdd, b, 0, 0, verbs.Atomic{}) },
			verbs.ZeroReadResources, "QPConfig.ORD"},
		{"a sink without Remote Write", strict, read(func(a *side) verbs.SGE { return a.region(0, 100, verbs.LocalWrite).SGE(0, 8) }),
			verbs.AccessViolation, "QPConfig.ReadSinkLocalWrite"},
		{"the same, by option", byOption, read(func(a *side) verbs.SGE { return a.region(0, 100, verbs.LocalWrite).SGE(0, 8) }), verbs.Success, ""},
		{"a sink without Local Write, by option", byOption, read(func(a *side) verbs.SGE { return a.region(0, 100, verbs.LocalRead).SGE(0, 8) }),
			verbs.AccessViolation, "it needs local write"},
		{"a sink of too few octets", strict, read(func(a *side) verbs.SGE { return a.region(0, 100, allRights).SGE(99, 2) }),
			verbs.BaseBounds, "does not have all of these octets"},
		{"a sink with STag zero", strict, read(func(*side) verbs.SGE { return verbs.SGE{Length: 8} }), verbs.InvalidSTag, "SGE.STag is 0"},
		{"a sink of no octets", strict, read(func(*side) verbs.SGE { return verbs.SGE{} }), verbs.Success, ""},
		{"answers that are not enabled", answers, read(good), verbs.AccessViolation, "QPConfig.NoRemoteWrite"},
		{"the result of an atomic without Local Write", strict, func(a, b *side) verbs.SendWR {
			wr := a.atomic(0, verbs.OpCmpSwap, b, 0, 0, verbs.Atomic{})
			wr.SGL[0] = a.region(0, 100, verbs.LocalRead).SGE(0, 8)
			return wr
		}, verbs.AccessViolation, "it needs local write"},
		{"a Write", strict, func(a, b *side) verbs.SendWR { return a.write(0, b, 0, 8) }, verbs.Success, ""},
		{"a Write to STag zero", strict, func(a, b *side) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{a.mr.SGE(0, 8)}}
		}, verbs.InvalidSTag, "SendWR.Remote.STag"},
		{"a Send without Local Read", strict, send(func(a *side) verbs.SGE { return a.region(0, 100, verbs.LocalWrite).SGE(0, 8) }),
			verbs.AccessViolation, "the region has local write, it needs local read"},
		{"a Send of another domain's", strict, send(func(a *side) verbs.SGE {
			return must(must(a.rnic.AllocPD())(a.t).Register(a.buf[:8], allRights))(a.t).SGE(0, 8)
		}), verbs.InvalidPD, "another protection domain"},
		{"a Send from STag zero", strict, send(func(*side) verbs.SGE { return verbs.SGE{Length: 8} }), verbs.InvalidSTag, "SGE.STag is 0"},
		{"a Send of too many octets", strict, func(a, b *side) verbs.SendWR {
			e := verbs.SGE{STag: a.mr.STag(), Length: 1<<32 - 1}
			return verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{e, e}}
		}, verbs.InvalidLength, "8589934590 octets in all"},
		{"a Bind", strict, func(a, b *side) verbs.SendWR {
			bind := must(a.pd.AllocMW())(a.t).Binding(a.mr, 0, 8, verbs.RemoteRead)
			return verbs.SendWR{Op: verbs.OpBind, Bind: &bind}
		}, verbs.AccessViolation, "QPConfig.BindWindows"},
		{"a Fast-Register", strict, func(a, b *side) verbs.SendWR {
			fast := must(a.pd.AllocMR(1, false))(a.t).FastRegister(a.buf, verbs.LocalRead)
			return verbs.SendWR{Op: verbs.OpFastRegister, FastRegister: &fast}
		}, verbs.NotPrivileged, "QPConfig.Privileged"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := linked(t, wires[1], tt.cfg, reads)
			b.receives(1, 1, 8)
			wr := tt.wr(a, b)
			wr.Flags = verbs.Signaled
			before := verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled} // what is in front is posted
			n, err := a.qp.PostSends([]verbs.SendWR{before, wr})
			if tt.want == verbs.Success {
				if check(t, err); take(t, a.sendCQ, 2)[1].Status != verbs.Success {
					t.Errorf("it failed: %v", a.qp.Err())
				}
				return
			}
			if n != 1 || !errors.Is(err, verbs.ErrModifier) || !errors.Is(err, tt.want) {
				t.Errorf("%d were posted: %v, expected %v", n, err, tt.want)
			}
			wantWords(t, "the verb", err, tt.says)
			wantDone(t, a.sendCQ, done{0, verbs.Success})
			if s := a.qp.State(); s != verbs.RTS {
				t.Errorf("the queue pair is %v: %v", s, a.qp.Err())
			}
		})
	}
}

// Memory that is registered by a request in front cannot be judged before that; nor
// can ORD before there is a stream.
func TestAStrictQueuePairLetsPassWhatMayYetBecomeGood(t *testing.T) {
	a, b := newSide(t, verbs.QPConfig{Strict: true, Privileged: true}), newSide(t, reads)
	mr := must(a.pd.AllocMR(1, false))(t)
	fast := mr.FastRegister(a.buf[:8], verbs.LocalRead)
	b.receives(1, 1, 8)
	a.post(
		verbs.SendWR{ID: 1, Op: verbs.OpFastRegister, FastRegister: &fast, Flags: verbs.Signaled},
		verbs.SendWR{ID: 2, Op: verbs.OpSend, SGL: []verbs.SGE{{STag: fast.STag, TO: fast.VA, Length: 8}}, Flags: verbs.Signaled},
		a.read(3, b, 0, 8),
	)
	wires[1].connect(t, a.qp, b.qp, cm.Params{MPA: mpa.Config{IRD: 4, ORD: 4}})
	wantDone(t, a.sendCQ, done{1, verbs.Success}, done{2, verbs.Success}, done{3, verbs.Success})
}

func TestAStrictQueuePairRefusesReceivesThatWouldFail(t *testing.T) {
	s := newSide(t, verbs.QPConfig{Strict: true})
	for _, tt := range []struct {
		sge  verbs.SGE
		want verbs.Status
	}{
		{s.region(0, 100, verbs.LocalRead).SGE(0, 8), verbs.AccessViolation},
		{s.region(0, 100, verbs.LocalWrite).SGE(99, 2), verbs.BaseBounds},
		{verbs.SGE{STag: s.mr.STag(), TO: 1<<64 - 1, Length: 2}, verbs.WrapError},
		{verbs.SGE{Length: 1}, verbs.InvalidSTag},
	} {
		err := s.qp.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{tt.sge}})
		wantError(t, err, tt.want)
		wantError(t, err, verbs.ErrModifier)
	}
	err := s.qp.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{{STag: s.mr.STag(), Length: 1<<32 - 1}, s.mr.SGE(0, 1)}})
	wantError(t, err, verbs.InvalidLength)
	s.receives(1, 1, 8)
}

// The error for a work request without an Op says so, and that for one of RFC 7306 names
// the field that allows it.
func TestThePostOfNoOperationSaysWhatIsMissing(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	err := s.qp.PostSend(verbs.SendWR{SGL: []verbs.SGE{s.mr.SGE(0, 8)}})
	wantError(t, err, verbs.ErrOp)
	wantWords(t, "no operation", err, "SendWR.Op is not set")
	plain := must(s.pd.CreateQP(verbs.QPConfig{SendCQ: s.sendCQ, RecvCQ: s.recvCQ}))(t)
	err = plain.PostSend(verbs.SendWR{Op: verbs.OpImmediate})
	wantError(t, err, verbs.ErrOp)
	wantWords(t, "an extension", err, "set QPConfig.Extensions")
}
