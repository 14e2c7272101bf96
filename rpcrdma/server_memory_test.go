// Which memory calls and replies are in, and how much of it there is.

package rpcrdma

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

func TestCallsHaveNoMoreMemoryThanTheyMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 100 << 10
		var entered atomic.Int32
		leave := make(chan struct{})
		p := serve(t, ServerConfig{CallMemory: 270 << 10, Handler: oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
			entered.Add(1)
			<-leave
			e := r.Accept(0)
			return e.Finish()
		})}).full()
		item := exchange.Pattern(1, size)
		for xid := range uint32(5) {
			p.send(wire.Header{XID: xid, Reads: reads(position, p.lend(item, verbs.RemoteRead))}, without(exchangeMessage(xid, "abcd", [][]byte{item}, 4), position, size))
		}
		synctest.Wait()
		if n := entered.Load(); n != 2 {
			t.Errorf("%d calls of 100 KiB are in 270 KiB", n)
		}
		close(leave)
		for range 5 {
			p.next()
		}
		p.close()
	})
}

func TestCallsWaitForMemory(t *testing.T) {
	nettest.CheckLeaks(t)
	const size = 100 << 10
	s := serve(t, ServerConfig{CallMemory: 270 << 10})
	p := s.full()
	item := exchange.Pattern(1, size)
	for xid := range uint32(20) {
		mem := p.lend(item, verbs.RemoteRead)
		p.send(wire.Header{XID: xid, Reads: reads(position, mem)}, without(exchangeMessage(xid, "abcd", [][]byte{item}, 4), position, size))
	}
	// One that is longer than all there is goes alone.
	long := exchange.Pattern(2, 300<<10)
	p.send(wire.Header{XID: 20, Reads: reads(position, p.lend(long, verbs.RemoteRead))}, without(exchangeMessage(20, "abcd", [][]byte{long}, 4), position, len(long)))
	seen := map[uint32]bool{}
	for range 21 {
		m := p.next()
		want := exchange.Reply(m.XID, "abcd", item[:4])
		if m.XID == 20 {
			want = exchange.Reply(m.XID, "abcd", long[:4])
		}
		if seen[m.XID] || !bytes.Equal(m.payload, want) {
			t.Errorf("XID %d: %x", m.XID, m.payload)
		}
		seen[m.XID] = true
	}
}

// Handlers have memory of the transport's or their own, and all ways of using it
// end in the same reply.
func TestAReplyMayLieAnywhere(t *testing.T) {
	nettest.CheckLeaks(t)
	var make func(r *oncrpc.Request, reply []byte) []byte
	handler := oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
		n := int(binary.BigEndian.Uint32(r.Args[len(r.Args)-4:]))
		return make(r, exchange.Reply(r.XID, "abcd", exchangeResult(nil, n))), nil
	})
	p := serve(t, ServerConfig{Handler: handler}).full()
	for name, way := range map[string]func(r *oncrpc.Request, reply []byte) []byte{
		"its own":            func(_ *oncrpc.Request, reply []byte) []byte { return reply },
		"the transport's":    func(r *oncrpc.Request, reply []byte) []byte { return append(r.Buffer(len(reply)), reply...) },
		"too little of it":   func(r *oncrpc.Request, reply []byte) []byte { return append(r.Buffer(len(reply)-1), reply...) },
		"more than it needs": func(r *oncrpc.Request, reply []byte) []byte { return append(r.Buffer(len(reply)+9000), reply...) },
		"the second": func(r *oncrpc.Request, reply []byte) []byte {
			r.Buffer(10)
			return append(r.Buffer(len(reply)), reply...)
		},
		"the first": func(r *oncrpc.Request, reply []byte) []byte {
			b := append(r.Buffer(len(reply)), reply...)
			clear(r.Buffer(len(reply))[:len(reply)])
			return b
		},
		"the middle": func(r *oncrpc.Request, reply []byte) []byte {
			return append(r.Buffer(len(reply) + 8)[:8], reply...)[8:]
		},
		"of the call's": func(r *oncrpc.Request, reply []byte) []byte { return append(r.Message[:0], reply...) },
	} {
		make = way
		for _, n := range []int{10, 3000} {
			sink := bytes.Repeat([]byte{9}, 4096)
			for i, h := range []wire.Header{
				{XID: 4},
				{XID: 4, Writes: []wire.WriteChunk{{p.lend(sink, verbs.RemoteWrite)}}},
				{XID: 4, HasReply: true, Reply: wire.WriteChunk{p.lend(sink, verbs.RemoteWrite)}},
			} {
				p.send(h, exchangeMessage(4, "abcd", nil, n))
				m := p.next()
				want := exchange.Reply(4, "abcd", exchangeResult(nil, n))
				got := m.payload
				if i == 1 {
					got = bytes.Join([][]byte{got[:36], sink[:n], bytes.Repeat([]byte{0}, wire.Pad(uint64(n))), got[36:]}, nil)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s, result of %d octets, header %d: got %x, want %x", name, n, i, got, want)
				}
			}
		}
	}
}
