package verbs_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/verbs"
)

// The receive queue changes its depth while messages arrive and receives are
// posted: each receive completes once, in order, and holds its message. A depth
// below what is outstanding is refused.
//
// Claims: V-9.3.1.2-1 V-6.1.3-9
func TestReceivesStayInOrderWhileTheirQueueIsResized(t *testing.T) {
	const messages = 3000
	a, b := linked(t, wires[0], verbs.QPConfig{SendDepth: 64}, verbs.QPConfig{RecvDepth: 4, PauseOnEmptyRQ: true})
	var over atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for id := uint64(0); id < messages; {
			switch err := b.qp.PostRecv(verbs.RecvWR{ID: id, SGL: []verbs.SGE{b.mr.SGE(int(id)*8, 8)}}); {
			case err == nil:
				id++
			case errors.Is(err, verbs.ErrFull):
				runtime.Gosched()
			default:
				t.Error(err)
				return
			}
		}
	})
	wg.Go(func() {
		for n := uint64(0); n < messages; {
			binary.BigEndian.PutUint64(a.buf[n*8:], n)
			switch err := a.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{a.mr.SGE(int(n)*8, 8)}}); {
			case err == nil:
				n++
			case errors.Is(err, verbs.ErrFull):
				runtime.Gosched()
			default:
				t.Error(err)
				return
			}
		}
	})
	wg.Go(func() {
		rng := rand.New(rand.NewPCG(1, 2))
		for !over.Load() {
			depth := 1 + rng.IntN(100)
			if m, err := b.qp.Modify(verbs.RTS, verbs.QPModify{RecvDepth: &depth}); err != nil && !errors.Is(err, verbs.ErrShrink) {
				t.Error(err)
				return
			} else if err == nil && m.RecvDepth != depth {
				t.Errorf("the depth is %d, expected %d", m.RecvDepth, depth)
			}
			runtime.Gosched()
		}
	})
	for id := uint64(0); id < messages && !t.Failed(); id++ {
		wc := take(t, b.recvCQ, 1)[0]
		if got := binary.BigEndian.Uint64(b.buf[id*8:]); wc.ID != id || wc.Status != verbs.Success || got != id {
			t.Errorf("receive %d: %v with message %d, expected %d", wc.ID, wc.Status, got, id)
		}
	}
	over.Store(true)
	nettest.AwaitGroup(t, &wg)
}
