package rpcrdma

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// holding starts a server with one connection whose send queue expects n goroutines more
// than there are.
func holding(t *testing.T, n int) (*serving, *gate, *testPeer, *sendQueue) {
	t.Helper()
	g := newGate()
	s := serve(t, ServerConfig{Handler: g})
	p := s.full()
	p.alive()
	synctest.Wait()
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	for c := range s.server.conns {
		q := &c.r.e.queue
		for range n {
			q.expect()
		}
		return s, g, p, q
	}
	t.Fatal("there is no connection")
	return nil, nil, nil, nil
}

// wantGathered checks how many Sends wait.
func (q *sendQueue) wantGathered(t *testing.T, n int) {
	t.Helper()
	synctest.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.gather) != n {
		t.Errorf("%d Sends are gathered, want %d", len(q.gather), n)
	}
}

// call makes a NULL call.
func (p *testPeer) call(xid uint32) { p.send(wire.Header{XID: xid, Credits: 16}, nullCall(xid)) }

func TestAReplyIsGatheredNoLongerThanForThoseExpectedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, g, p, q := holding(t, 3)
		p.call(1)
		q.wantGathered(t, 1)
		for xid := uint32(2); xid < 5; xid++ { // three are expected all the time
			q.wantGathered(t, 1)
			p.send(wire.Header{XID: xid, Credits: 16}, callMessage(xid, 2, nil))
			<-g.entered
		}
		q.wantGathered(t, 0)
		if m := p.next(); m.XID != 1 {
			t.Errorf("got %+v, want the first reply", m)
		}
		for range 3 {
			q.begins()
		}
		close(g.leave)
		for range 3 {
			p.next()
		}
		p.close()
	})
}

func TestNoMoreThanEightSendsAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, p, q := holding(t, 100)
		for xid := range uint32(mostGathered - 1) {
			p.call(xid)
			q.wantGathered(t, int(xid)+1)
		}
		p.call(mostGathered)
		q.wantGathered(t, 0)
		for range mostGathered {
			p.next()
		}
		p.close()
	})
}

func TestShutdownWaitsForWhatIsGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, p, q := holding(t, 2)
		p.call(1)
		q.wantGathered(t, 1)
		done := make(chan error, 1)
		go func() { done <- s.server.Shutdown(t.Context()) }()
		synctest.Wait()
		if len(done) > 0 {
			t.Fatal("the server has ended with a reply gathered")
		}
		q.begins()
		q.begins()
		if m := p.next(); m.XID != 1 {
			t.Errorf("got %+v, want the reply", m)
		}
		p.wantClosed()
		if err := <-done; err != nil {
			t.Error(err)
		}
		p.close()
	})
}

// wantFlushed checks that no work is left of a connection that has ended, and that
// nothing is posted any more.
func (q *sendQueue) wantFlushed(t *testing.T, s *serving) {
	t.Helper()
	q.wantGathered(t, 0)
	if len(q.works) != 0 {
		t.Errorf("%d works are left", len(q.works))
	}
	q.begins()
	q.begins()
	if err := s.server.Close(); err != nil {
		t.Error(err)
	}
}

func TestALostConnectionEndsWhatIsGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, p, q := holding(t, 2)
		p.call(1)
		q.wantGathered(t, 1)
		p.qp.Abort()
		_ = p.end()
		q.wantFlushed(t, s)
		p.close()
	})
}

func TestGatheredSendsThatAreNotTakenEndTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, p, q := holding(t, 3)
		p.call(1)
		q.wantGathered(t, 1)
		q.mu.Lock()
		q.gather[0].SGL = append(q.gather[0].SGL[:1:1], q.gather[0].SGL[0], q.gather[0].SGL[0]) // one more than it takes
		q.mu.Unlock()
		q.begins()
		q.wantGathered(t, 1)
		q.begins()
		q.begins()
		_ = p.end()
		q.wantFlushed(t, s)
		p.close()
	})
}

func TestTheCallersThatAreExpectedBegin(t *testing.T) {
	a := answer(t, ClientConfig{}, &both)
	p := a.grants(8)
	a.Client.mu.Lock()
	q := &a.Client.link.r.e.queue
	a.Client.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	given := a.start(ctx, nullClientCall())
	late := p.next()
	cancel()
	checkEnded(t, within(t, "end", given), context.Canceled)
	p.send(wire.Header{XID: late.XID, Credits: 8}, exchangeNull(late.XID))
	replied := a.start(t.Context(), nullClientCall())
	m := p.next()
	p.send(wire.Header{XID: m.XID, Credits: 8}, exchangeNull(m.XID))
	checkEnded(t, within(t, "reply", replied), nil)
	lost := a.start(t.Context(), nullClientCall())
	p.next()
	p.qp.Abort()
	a.peer().qp.Abort()
	a.Client.Close()
	if r := within(t, "end", lost); r.err == nil {
		t.Error("the call of a lost connection has a reply")
	}
	if expected, begun := q.expected.Load(), q.begun.Load(); expected != 2 || begun != 2 {
		t.Errorf("%d callers were expected and %d have begun, want 2 and 2", expected, begun)
	}
}
