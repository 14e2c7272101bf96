package verbs_test

import (
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// QPConfig.Announced: both learn of it, the responder before the first message, and both only if both
// announce. Nothing of it completes, whatever the start-up.
func TestQueuePairsThatAnnounceLearnOfEachOther(t *testing.T) {
	for _, c := range []struct {
		name        string
		params      cm.Params
		here, there bool // that they announce
		both        bool
	}{
		{name: "peer to peer", params: cm.Params{MPA: mpa.Config{PeerToPeer: true}}, here: true, there: true, both: true},
		{name: "client and server", here: true, there: true, both: true},
		{name: "the initiator alone", params: cm.Params{MPA: mpa.Config{PeerToPeer: true}}, here: true},
		{name: "the responder alone", params: cm.Params{MPA: mpa.Config{PeerToPeer: true}}, there: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			overWires(t, func(t *testing.T, w wire) {
				heard := [2]chan *verbs.QP{make(chan *verbs.QP, 2), make(chan *verbs.QP, 2)}
				config := func(i int, announces bool) verbs.QPConfig {
					if !announces {
						return verbs.QPConfig{}
					}
					return verbs.QPConfig{Announced: func(qp *verbs.QP) { heard[i] <- qp }}
				}
				a, b := newSide(t, verbs.QPConfig{}), newSide(t, verbs.QPConfig{})
				from, to := a.newQP(config(0, c.here)), b.newQP(config(1, c.there))
				a.qp, b.qp = from, to
				w.connect(t, from, to, c.params)
				b.receives(1, 1, 64)
				a.receives(2, 1, 64)
				a.post(a.send(3, 0, 8))
				if wc := take(t, b.recvCQ, 1)[0]; wc.ID != 1 || wc.Status != verbs.Success {
					t.Fatalf("the first message completed as %+v", wc)
				}
				if c.both != (len(heard[1]) == 1) && w.pair != nil && c.params.MPA.PeerToPeer {
					t.Errorf("with the first message the responder had heard of it %d times", len(heard[1]))
				}
				b.post(b.send(4, 0, 8))
				if wc := take(t, a.recvCQ, 1)[0]; wc.ID != 2 || wc.Status != verbs.Success {
					t.Fatalf("the answer completed as %+v", wc)
				}
				if c.both {
					if <-heard[0] != from || <-heard[1] != to {
						t.Error("it was called with another queue pair")
					}
				}
				if len(heard[0])+len(heard[1]) != 0 {
					t.Errorf("they heard of it %d and %d times more", len(heard[0]), len(heard[1]))
				}
			})
		})
	}
}
