//go:build !race

package verbs_test

import (
	"context"
	"net"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// The whole path of a message allocates nothing, on both sides: from PostSend to
// Poll, one at a time and in lists, over streams that are written to by the poster,
// one of them polled, and over one that is not.
func TestPostedAndCompletedMessagesAllocateNothing(t *testing.T) {
	pipe := wire{"a pipe", func(testing.TB) (a, b net.Conn) { return net.Pipe() }, 0}
	for _, w := range []wire{wires[0], wires[2], pipe} {
		a, b := linked(t, w, reads, reads)
		for _, tt := range trafficOf(a, b) {
			for _, list := range []int{1, 16} {
				run := moves(t, a, b, tt.wr, list)
				for range 10 {
					run() // what grows has grown
				}
				if n := testing.AllocsPerRun(100, run); n > 0 {
					t.Errorf("%s, %s in lists of %d: %v allocations a list", w.name, tt.name, list, n)
				}
			}
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
			check(t, wc[0].Err())
		}
	}
	for range 10 {
		one() // what grows has grown
	}
	if n := testing.AllocsPerRun(100, one); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
