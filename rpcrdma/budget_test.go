package rpcrdma

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/internal/wiretest"
	"github.com/weft-rdma/weft/oncrpc"
)

// Memory for what calls bring and for replies in chunks is bounded, for one connection
// and for all. Who has no call in progress has one nevertheless: nobody waits for
// others.
func TestCallsWaitForMemoryButOneOfEachConnection(t *testing.T) {
	const each = 60_000
	for _, c := range []struct {
		name        string
		cfg         ServerConfig
		first, both int // in the handler, of one connection, and when another has called, too
	}{
		{"of the connection", ServerConfig{CallMemory: 2 * each}, 2, 4},
		{"of all", ServerConfig{Memory: 3 * each}, 3, 4},
		{"less than for one", ServerConfig{Memory: 1}, 1, 2},
		{"enough", ServerConfig{}, 8, 16},
	} {
		for kind, h := range map[string]Header{
			"Reply chunks": {HasReply: true, Reply: WriteChunk{{1, each / 2, 0}, {2, each / 2, 0}}},
			"Write chunks": {Writes: []WriteChunk{{{1, each / 2, 0}}, {}, {{2, each / 2, 0}}}},
		} {
			t.Run(kind+", "+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := newGate()
					c.cfg.Handler = g
					s := serve(t, c.cfg)
					peers := []*testPeer{s.full(), s.full()}
					for i, want := range []int{c.first, c.both} {
						for xid := range uint32(8) {
							h.XID = xid
							peers[i].send(h, callMessage(xid, 2, nil))
						}
						synctest.Wait()
						if n := len(g.entered); n != want {
							t.Errorf("%d calls are executed after %d connections have called, want %d", n, i+1, want)
						}
						peers[i].send(Header{XID: 99}, nullCall(99)) // needs nothing
						if m := peers[i].next(); m.XID != 99 {
							t.Errorf("got the reply to %#x", m.XID)
						}
					}
					close(g.leave)
					for _, p := range peers {
						for range 8 {
							if m := p.next(); m.Proc != ProcMsg {
								t.Errorf("got %v of XID %#x", m.Proc, m.XID)
							}
						}
						p.close()
					}
					synctest.Wait()
					if n := s.server.budget.used.Load(); n != 0 {
						t.Errorf("%d octets are taken still", n)
					}
				})
			})
		}
	}
}

// A reply for which the call has offered no room is not kept until the peer takes
// the error that is sent instead.
func TestAReplyThatCannotBeSentIsNotKept(t *testing.T) {
	const calls, long = 32, 1 << 20
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		s := serve(t, ServerConfig{Handler: oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
			e := r.Accept(long)
			<-leave
			e.Fixed(make([]byte, long))
			return e.Finish()
		})})
		p, over := s.byHand(64)
		for xid := range uint32(calls) {
			h := Header{XID: xid, Credits: 32}
			if err := p.Send(wiretest.Send(xid+1, append(h.Append(nil), nullCall(xid)...)...)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		close(leave)
		synctest.Wait()
		if n := len(s.server.pool.free[bufferIndex(long)]); n != calls {
			t.Errorf("memory of %d replies has come back, want %d", n, calls)
		}
		if n := p.Conn.(interface{ Unread() int }).Unread(); n < 64 {
			t.Errorf("%d octets wait for the peer, so nothing has waited", n)
		}
		_ = p.Close()
		<-over
	})
}
