package verbs_test

import (
	"errors"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// A server without a receive in its queue takes messages that a Refill has receives
// for, with PauseOnEmptyRQ and without.
func TestARefillPostsReceivesWhenAMessageNeedsOne(t *testing.T) {
	for _, pause := range []bool{false, true} {
		overWires(t, func(t *testing.T, w wire) {
			a, b := newSide(t, verbs.QPConfig{SendDepth: 64}), newSide(t, verbs.QPConfig{})
			next := uint64(0)
			to := b.newQP(verbs.QPConfig{RecvDepth: 32, PauseOnEmptyRQ: pause, Refill: func(qp *verbs.QP) {
				for range 3 {
					if err := qp.PostRecv(verbs.RecvWR{ID: next, SGL: []verbs.SGE{b.mr.SGE(0, 64)}}); err != nil {
						t.Error(err)
					}
					next++
				}
			}})
			w.connect(t, a.qp, to, cm.Params{})
			for i := range 20 {
				a.post(a.send(uint64(i), 0, i))
			}
			for i := range 20 {
				if wc := take(t, b.recvCQ, 1)[0]; wc.ID != uint64(i) || wc.Bytes != uint32(i) {
					t.Fatalf("message %d completed as %+v", i, wc)
				}
			}
		})
	}
}

// A Refill that posts nothing changes nothing: the peer learns that there is no receive.
func TestARefillWithoutReceivesEndsTheStream(t *testing.T) {
	a, b := newSide(t, verbs.QPConfig{}), newSide(t, verbs.QPConfig{})
	asked := make(chan *verbs.QP, 1)
	to := b.newQP(verbs.QPConfig{Refill: func(qp *verbs.QP) { asked <- qp }})
	wires[0].connect(t, a.qp, to, cm.Params{})
	a.post(a.send(1, 0, 8))
	reach(t, a.qp, verbs.Error)
	if qp := nettest.Await(t, asked); qp != to {
		t.Errorf("it was asked for %v", qp)
	}
	var e *rdmap.TerminateError
	if err := a.qp.Err(); !errors.As(err, &e) || !e.Remote {
		t.Errorf("the stream ended by %v, expected a Terminate of the peer's", err)
	}
}
