package verbs_test

import (
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// Lists of four elements work on every RNIC, however low its limit was meant to
// be (Verbs §8.1.3.2).
//
// Claims: V-8.1.3.2-6
func TestFourElementsAlwaysWork(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		low := verbs.Config{Limits: verbs.Limits{SGEs: 1}}
		four := verbs.QPConfig{SendSGEs: 4, RecvSGEs: 4}
		a, b := newSideOf(t, low, four), newSideOf(t, low, four)
		w.connect(t, a.qp, b.qp, cm.Params{})
		copy(a.buf, "abcd")
		quarters := func(s *side) (sgl []verbs.SGE) {
			for i := range 4 {
				sgl = append(sgl, s.mr.SGE(i, 1))
			}
			return sgl
		}
		for i, op := range []verbs.Op{verbs.OpSend, verbs.OpWrite, verbs.OpSend} {
			clear(b.buf[:4])
			check(t, b.qp.PostRecv(verbs.RecvWR{ID: 9, SGL: quarters(b)}))
			a.post(verbs.SendWR{ID: uint64(i), Op: op, Flags: verbs.Signaled, SGL: quarters(a), Remote: b.mr.Remote(0)})
			if op == verbs.OpWrite {
				a.post(verbs.SendWR{Op: verbs.OpSend}) // so that the Write is placed
			}
			wantDone(t, b.recvCQ, done{9, verbs.Success})
			wantDone(t, a.sendCQ, done{uint64(i), verbs.Success})
			if got := string(b.buf[:4]); got != "abcd" {
				t.Errorf("%v of four elements brought %q", op, got)
			}
		}
	})
}
