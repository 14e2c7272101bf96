package rpcrdma

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// The memory for calls that are fetched, and for replies, is limited, for one connection
// and for all.
func TestMemoryIsBoundedOfOneAndOfAll(t *testing.T) {
	const each = 60_000 // in a buffer of 64 KiB
	for _, c := range []struct {
		name        string
		cfg         ServerConfig
		first, both int // executed, of one connection, and when another has called, too
	}{
		{"of the connection", ServerConfig{CallMemory: 2 * 68 << 10}, 2, 4},
		{"of all", ServerConfig{Memory: 2 * (3*68 + 20) << 10}, 3, 3},
		{"less than for one", ServerConfig{Memory: 2}, 1, 1},
		{"enough", ServerConfig{}, 8, 16},
	} {
		for _, reply := range []bool{false, true} {
			name := "calls, " + c.name
			if reply {
				name = "replies, " + c.name
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					leave := make(chan struct{})
					var entered atomic.Int32
					c.cfg.Handler = oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
						if r.Proc != 0 {
							if reply {
								r.Buffer(each)
							}
							entered.Add(1)
							<-leave
						}
						e := r.Accept(0)
						return e.Finish()
					})
					s := serve(t, c.cfg)
					peers := []*testPeer{s.full(), s.full()}
					for i, want := range []int{c.first, c.both} {
						for xid := range uint32(8) {
							mem := peers[i].lend(make([]byte, each), verbs.RemoteRead)
							if reply {
								peers[i].send(wire.Header{XID: xid}, callMessage(xid, 2, nil))
							} else {
								peers[i].send(wire.Header{XID: xid, Reads: reads(position, mem)}, without(exchangeMessage(xid, "abcd", [][]byte{make([]byte, each)}), position, each))
							}
						}
						synctest.Wait()
						if n := int(entered.Load()); n != want {
							t.Errorf("%d calls are executed after %d connections have called, want %d", n, i+1, want)
						}
						peers[i].send(wire.Header{XID: 99}, nullCall(99)) // needs nothing
						if m := peers[i].next(); m.XID != 99 {
							t.Errorf("got the reply to %#x", m.XID)
						}
					}
					close(leave)
					for _, p := range peers {
						for range 8 {
							p.next()
						}
						p.close()
					}
					synctest.Wait()
					if in, out := s.server.in.Used(), s.server.out.Used(); in != 0 || out != 0 {
						t.Errorf("%d and %d octets are taken still", in, out)
					}
				})
			})
		}
	}
}

// Replies that no peer receives, and calls that cannot be fetched, leave memory for other
// connections, and never use more than the limit.
func TestMemoryIsALimitWhateverPeersDo(t *testing.T) {
	const memory, each = 8 << 20, 1 << 20
	for _, name := range []string{"replies", "calls"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, ServerConfig{Memory: memory, Connections: 64})
				var peers []*testPeer
				var held []*iwarptest.Conn
				for range 40 {
					a, b := iwarptest.BufferedPipe(32 << 10)
					p := s.connectOver(a, fromAddr{b, attacker}, &wire.PrivateData{SendSize: 4096, ReceiveSize: 4096}, verbs.QPConfig{IRD: 8, ORD: 8})
					p.alive()
					b.Hold() // nothing that the server sends arrives from here on
					mem := p.lend(make([]byte, each), verbs.RemoteRead|verbs.RemoteWrite)
					if name == "replies" {
						p.send(wire.Header{XID: 1, Writes: []wire.WriteChunk{{mem}}}, exchangeMessage(1, "abcd", nil, each))
					} else {
						p.send(wire.Header{XID: 1, Reads: reads(position, mem)}, without(exchangeMessage(1, "abcd", [][]byte{make([]byte, each)}), position, each))
					}
					peers, held = append(peers, p), append(held, b)
				}
				synctest.Wait()
				p := s.fullFrom(honest, 1<<20)
				for range 8 {
					began := time.Now()
					p.alive()
					if took := time.Since(began); took > 0 {
						t.Errorf("a call took %v", took)
					}
					if used := s.server.in.Used() + s.server.out.Used(); used > memory {
						t.Errorf("%d octets are taken, the limit is %d", used, memory)
					}
					time.Sleep(fairness.Patience)
				}
				began := time.Now()
				mem := p.lend(make([]byte, each), verbs.RemoteRead|verbs.RemoteWrite)
				p.send(wire.Header{XID: 7, Writes: []wire.WriteChunk{{mem}}}, exchangeMessage(7, "abcd", nil, each))
				if m := p.next(); m.XID != 7 || time.Since(began) > time.Second {
					t.Errorf("a long reply came after %v: %+v", time.Since(began), m.Header)
				}
				p.close()
				for i, p := range peers {
					held[i].Resume()
					p.close()
				}
			})
		})
	}
}
