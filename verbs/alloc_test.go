//go:build !race

package verbs_test

import (
	"context"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// The whole path of a message over TCP allocates nothing, on both sides: from
// PostSend to Poll.
func TestPostedAndCompletedMessagesAllocateNothing(t *testing.T) {
	ctx := context.Background()
	a, b := linked(t, wires[0], reads, reads)
	for _, tt := range []struct {
		name string
		wr   verbs.SendWR
	}{
		{"Send", a.send(1, 0, 64)},
		{"Write of 64", a.write(1, b, 0, 64)},
		{"Write of 100000", a.write(1, b, 0, 100000)},
		{"Read of 64", a.read(1, b, 0, 64)},
		{"Read of 100000", a.read(1, b, 0, 100000)},
		{"Immediate Data", verbs.SendWR{ID: 1, Op: verbs.OpImmediate, Flags: verbs.Signaled}},
		{"FetchAdd", a.atomic(1, verbs.OpFetchAdd, b, 0, 64, verbs.Atomic{Data: 1})},
	} {
		receives := tt.wr.Op == verbs.OpSend || tt.wr.Op == verbs.OpImmediate
		recv := verbs.RecvWR{ID: 2, SGL: []verbs.SGE{b.mr.SGE(0, 64)}}
		var wc [1]verbs.WC
		one := func() {
			if receives {
				check(t, b.qp.PostRecv(recv))
			}
			check(t, a.qp.PostSend(tt.wr))
			for a.sendCQ.Poll(wc[:]) == 0 {
				check(t, a.sendCQ.Wait(ctx))
			}
			check(t, wc[0].Status.Err())
			for receives && b.recvCQ.Poll(wc[:]) == 0 {
				check(t, b.recvCQ.Wait(ctx))
			}
		}
		for range 10 {
			one() // what grows has grown
		}
		if n := testing.AllocsPerRun(100, one); n > 0 {
			t.Errorf("%s: %v allocations", tt.name, n)
		}
	}
}

// A shared receive queue allocates nothing on the way either: not when a receive
// is posted, nor when it is taken, completed and freed.
func TestSharedReceivesAllocateNothing(t *testing.T) {
	ctx := context.Background()
	a, b := newSide(t, reads), newSide(t, verbs.QPConfig{})
	srq := must(b.pd.CreateSRQ(verbs.SRQConfig{WRs: 8, Limit: 1}))(t)
	qp := b.newQP(verbs.QPConfig{SRQ: srq, RQLimit: 1})
	wires[0].connect(t, a.qp, qp, cm.Params{})
	wr, recv := a.send(1, 0, 64), verbs.RecvWR{ID: 2, SGL: []verbs.SGE{b.mr.SGE(0, 64)}}
	check(t, srq.PostRecv(recv)) // one more than are taken: the limit is not met
	var wc [1]verbs.WC
	one := func() {
		check(t, srq.PostRecv(recv))
		check(t, a.qp.PostSend(wr))
		for _, cq := range []*verbs.CQ{a.sendCQ, b.recvCQ} {
			for cq.Poll(wc[:]) == 0 {
				check(t, cq.Wait(ctx))
			}
			check(t, wc[0].Status.Err())
		}
	}
	for range 10 {
		one() // what grows has grown
	}
	if n := testing.AllocsPerRun(100, one); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
