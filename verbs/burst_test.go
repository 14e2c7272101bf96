package verbs_test

import (
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/verbs"
)

// However requests are posted, one by one in haste, in lists, and with pauses to
// poll, they complete and arrive in the order of posting.
func TestBurstsCompleteAndArriveInOrder(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		const depth, total = 256, 20000
		a, b := linked(t, w, verbs.QPConfig{SendDepth: depth}, verbs.QPConfig{RecvDepth: depth, PauseOnEmptyRQ: true})
		receive := func(id uint64) {
			check(t, b.qp.PostRecv(verbs.RecvWR{ID: id, SGL: []verbs.SGE{b.mr.SGE(0, 64)}}))
		}
		for id := range uint64(depth) {
			receive(id)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for next := range uint64(total) {
				wc := take(t, b.recvCQ, 1)[0]
				if wc.ID != next || wc.Status != verbs.Success || wc.Bytes != uint32(next%64) {
					t.Errorf("receive %d of %d octets completes with %v, expected receive %d of %d", wc.ID, wc.Bytes, wc.Status, next, next%64)
					return
				}
				receive(next + depth)
			}
		}()
		posted, polled := uint64(0), uint64(0)
		for polled < total {
			for room := min(total, polled+depth); posted < room; {
				one := a.send(posted, 0, int(posted%64))
				posted++
				if posted%1000 < 500 || posted == room {
					check(t, a.qp.PostSend(one))
					continue
				}
				a.post(one, a.send(posted, 0, int(posted%64)))
				posted++
			}
			for _, wc := range take(t, a.sendCQ, 1) {
				if wc.ID != polled || wc.Status != verbs.Success {
					t.Fatalf("send %d completes with %v, expected send %d", wc.ID, wc.Status, polled)
				}
				polled++
			}
		}
		nettest.Await(t, done)
	})
}
