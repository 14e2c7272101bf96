package rpcrdma

import (
	"bytes"
	"context"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// maybeBinding has results that are there or not, each behind a word that says so.
type maybeBinding struct{ exchange.Binding }

func (maybeBinding) WalkReply(_ uint32, c *payload.Cursor) error {
	for c.Err() == nil && c.Left() > 0 {
		if c.Bool() {
			c.Eligible(exchange.MaxItem)
		}
	}
	return c.Err()
}

// A result that is not there leaves its Write chunk to the next that is, and
// those at the end come back unused.
//
// Claims: P8166-4.3.2.2-1 P8166-4.3.2.2-3
func TestAMissingResultLeavesItsChunkToTheNext(t *testing.T) {
	nettest.CheckLeaks(t)
	for _, c := range []struct {
		name    string
		results []int // octets; -1 is not there
		want    []int // in chunks of 100 octets
	}{
		{"all there", []int{8, 16, 24}, []int{8, 16, 24}},
		{"the first missing", []int{-1, 16, 24}, []int{16, 24, 0}},
		{"two missing", []int{-1, -1, 24}, []int{24, 0, 0}},
		{"the middle missing", []int{8, -1, 24}, []int{8, 24, 0}},
		{"none", []int{-1, -1, -1}, []int{0, 0, 0}},
	} {
		p := serve(t, ServerConfig{
			Bindings: payload.Bindings{{Prog: exchange.Program, Vers: exchange.Version}: maybeBinding{}},
			Handler: oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
				e := r.Accept(200)
				for i, n := range c.results {
					e.Bool(n >= 0)
					if n >= 0 {
						e.Opaque(exchange.Pattern(i, n), exchange.MaxItem)
					}
				}
				return e.Finish()
			}),
		}).full()
		sink := make([]byte, 300)
		mem := p.lend(sink, verbs.RemoteWrite)
		h := wire.Header{XID: 5}
		for i := range 3 {
			h.Writes = append(h.Writes, wire.WriteChunk{mem.Cut(100*i, 60), mem.Cut(100*i+60, 40)})
		}
		p.send(h, exchangeMessage(5, "", nil))
		m := p.next()
		if len(m.Writes) != 3 {
			t.Fatalf("%s: %d Write chunks, want 3", c.name, len(m.Writes))
		}
		want := make([]byte, 300)
		next := 0
		for i, n := range c.results {
			if n >= 0 {
				copy(want[100*next:], exchange.Pattern(i, n))
				next++
			}
		}
		for i, n := range c.want {
			if chunk := m.Writes[i]; len(chunk) != 2 || chunk.Length() != uint64(n) {
				t.Errorf("%s: chunk %d came back as %+v, want its two segments with %d octets", c.name, i, chunk, n)
			}
		}
		if !bytes.Equal(sink, want) {
			t.Errorf("%s: placed\n% x, want\n% x", c.name, sink, want)
		}
	}
}

// If a reply cannot be made, the connection ends, so that the requester does not wait for
// it.
//
// Claims: P8166-4.5.4-3
func TestAServerThatCannotAnswerClosesTheConnection(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serveWithin(t, verbs.Limits{RegionsOctets: 4 << 20}, ServerConfig{Rules: wire.Rules{Octets: 16 << 20}})
	p, other := s.full(), s.full()
	p.alive()
	other.alive()
	mem := p.lend(make([]byte, 8<<20), verbs.RemoteWrite)
	p.send(wire.Header{XID: 7, Writes: []wire.WriteChunk{{mem}}}, exchangeMessage(7, "", nil, 8<<20))
	if m, ok := p.nextOrEnd(); ok {
		t.Errorf("got %+v", m.Header)
	}
	if err := p.end(); err == nil {
		t.Error("the connection ended without an error")
	}
	other.alive()
}
