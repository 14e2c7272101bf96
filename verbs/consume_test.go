package verbs_test

import (
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// Each Send of whatever kind, empty ones too, takes one receive of the peer's;
// Writes, Reads and atomics take none, and make no completion there
// (Verbs §8.1.2.1, §10.4.2).
//
// Claims: V-8.1.2.1-1 V-10.4.2-2
// Claims: R-3.2-6 S-2.2.6-1 P-2-5
func TestOnlySendsUseUpReceives(t *testing.T) {
	for _, tt := range []struct {
		op    verbs.Op
		takes int
	}{
		{verbs.OpSend, 1}, {verbs.OpSendSE, 1}, {verbs.OpSendInvalidate, 1}, {verbs.OpSendSEInvalidate, 1},
		{verbs.OpImmediate, 1}, {verbs.OpImmediateSE, 1},
		{verbs.OpWrite, 0}, {verbs.OpRead, 0}, {verbs.OpReadInvalidate, 0}, {verbs.OpFetchAdd, 0}, {verbs.OpCmpSwap, 0},
	} {
		t.Run(tt.op.String(), func(t *testing.T) {
			bubble(t, reads, reads, func(t *testing.T, s *table) {
				s.b.receives(10, 8, 100)
				var want []done
				for i := range 3 {
					wr := verbs.SendWR{ID: uint64(i), Op: tt.op, Flags: verbs.Signaled, Remote: s.b.mr.Remote(0)}
					switch tt.op {
					case verbs.OpSendInvalidate, verbs.OpSendSEInvalidate:
						wr.Invalidate = s.b.region(0, 8, allRights).STag()
					case verbs.OpReadInvalidate:
						wr.SGL = []verbs.SGE{s.a.region(0, 8, allRights).SGE(0, 8)}
					case verbs.OpWrite, verbs.OpRead, verbs.OpFetchAdd, verbs.OpCmpSwap:
						wr.SGL = []verbs.SGE{s.a.mr.SGE(0, 8)}
					}
					s.a.post(wr)
					wantDone(t, s.a.sendCQ, done{uint64(i), verbs.Success})
					if tt.takes > 0 {
						want = append(want, done{uint64(10 + i), verbs.Success})
					}
				}
				quiesce()
				wantDone(t, s.b.recvCQ, want...)
				wantNone(t, s.b.recvCQ)
				wantNone(t, s.b.sendCQ)
				check(t, s.a.qp.Close(t.Context()))
				for i := len(want); i < 8; i++ {
					wantDone(t, s.b.recvCQ, done{uint64(10 + i), verbs.Flushed})
				}
			})
		})
	}
}

// A completion queue with an entry for every work request of the queues that
// report to it has room for whatever comes, however far behind its consumer is:
// what a peer sends is complete only with a receive that was posted
// (Verbs §10.4.2, RFC 5042 §6.4.3.2).
//
// Claims: S-6.4.3.2-3
// Claims: V-10.4.3-1 V-10.4.3-2
// Claims: S-6.4.3.2-2
func TestACQAsLargeAsItsQueuesDoesNotOverflow(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		const depth = 4
		a, b := newSide(t, verbs.QPConfig{}), newSide(t, verbs.QPConfig{})
		cq := must(b.rnic.CreateCQ(verbs.CQConfig{Entries: 2 * 2 * depth}))(t)
		for range 2 {
			qa, qb := a.newQP(verbs.QPConfig{SendDepth: 64}), b.newQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: depth, RecvDepth: depth, PauseOnEmptyRQ: true})
			x, y := iwarptest.Pipe()
			join(t, qa, qb, x, y, cm.Params{})
			for range 3 * depth {
				_ = qb.PostRecv(verbs.RecvWR{}) // the last of them find the queue full
			}
			for range 8 * depth {
				check(t, qa.PostSend(verbs.SendWR{Op: verbs.OpSend}))
			}
			check(t, qa.PostSend(verbs.SendWR{Op: verbs.OpWrite}))
			quiesce()
			for range 3 * depth {
				_ = qb.PostSend(verbs.SendWR{Op: verbs.OpWrite, Flags: verbs.Signaled})
				_ = qb.PostRecv(verbs.RecvWR{})
				quiesce()
			}
			quiesce()
		}
		if n := cq.Poll(make([]verbs.WC, 100)); n != 2*2*depth {
			t.Errorf("%d completions, expected %d", n, 2*2*depth)
		}
		quiesce()
		b.wantEvents() // no overflow
	})
}
