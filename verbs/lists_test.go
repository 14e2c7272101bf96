package verbs_test

import (
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// The lists of Sends, of RDMA Writes and of receives have limits of their own
// (Verbs §9.3.1.1, §8.1.3.2).
//
// Claims: V-9.3.1.1-24
func TestEachKindOfListHasItsOwnLimit(t *testing.T) {
	s := newSide(t, verbs.QPConfig{SendSGEs: 2, WriteSGEs: 5, RecvSGEs: 3})
	other := newSide(t, verbs.QPConfig{SendSGEs: 5, WriteSGEs: 2, RecvSGEs: 3})
	for _, tt := range []struct {
		qp    *verbs.QP
		op    verbs.Op
		limit int
	}{
		{s.qp, verbs.OpSend, 2}, {s.qp, verbs.OpSendSE, 2}, {s.qp, verbs.OpWrite, 5}, {s.qp, verbs.OpRecv, 3},
		{other.qp, verbs.OpSend, 5}, {other.qp, verbs.OpSendSEInvalidate, 5}, {other.qp, verbs.OpWrite, 2},
	} {
		post := func(n int) error {
			if tt.op == verbs.OpRecv {
				return tt.qp.PostRecv(verbs.RecvWR{SGL: make([]verbs.SGE, n)})
			}
			return tt.qp.PostSend(verbs.SendWR{Op: tt.op, SGL: make([]verbs.SGE, n), Invalidate: 0x100})
		}
		check(t, post(tt.limit))
		wantError(t, post(tt.limit+1), verbs.ErrSGLLength)
	}
}

// For our own lists local rights are enough, and remote ones add nothing
// (Verbs §7.4.1).
//
// Claims: V-7.4.1-3
func TestLocalRightsAreEnoughForOurOwnLists(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := newSide(t, reads), newSide(t, reads)
		w.connect(t, a.qp, b.qp, cm.Params{})
		source, target := a.region(0, 8, verbs.LocalRead), b.region(0, 8, verbs.LocalWrite)
		copy(a.buf, "an octet")
		check(t, b.qp.PostRecv(verbs.RecvWR{ID: 1, SGL: []verbs.SGE{target.SGE(0, 8)}}))
		a.post(verbs.SendWR{ID: 2, Op: verbs.OpSend, Flags: verbs.Signaled, SGL: []verbs.SGE{source.SGE(0, 8)}},
			verbs.SendWR{ID: 3, Op: verbs.OpWrite, Flags: verbs.Signaled, SGL: []verbs.SGE{source.SGE(0, 8)}, Remote: b.mr.Remote(100)})
		wantDone(t, a.sendCQ, done{2, verbs.Success}, done{3, verbs.Success})
		wantDone(t, b.recvCQ, done{1, verbs.Success})
		if got := string(b.buf[:8]); got != "an octet" {
			t.Errorf("received %q", got)
		}
	})
}
