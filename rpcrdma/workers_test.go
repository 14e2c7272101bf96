package rpcrdma

import (
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// workers counts the goroutines of all connections that wait for calls.
func (s *serving) workers() (n int) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	for c := range s.server.conns {
		n += int(c.r.idle.Load())
	}
	return n
}

func TestFewGoroutinesStayAfterManyCallsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		s := serve(t, ServerConfig{Handler: g})
		p := s.full()
		p.alive()
		const calls = 2*idleWorkers + 3
		for xid := range uint32(calls) {
			p.send(wire.Header{XID: xid, Credits: calls}, callMessage(xid, 2, nil))
			<-g.entered
		}
		close(g.leave)
		for range calls {
			p.next()
		}
		synctest.Wait()
		if n := s.workers(); n != idleWorkers {
			t.Errorf("%d goroutines wait for calls, want %d", n, idleWorkers)
		}
		p.close()
		s.close()
	})
}
