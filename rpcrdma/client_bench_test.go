package rpcrdma

import (
	"context"
	"fmt"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/verbs"
)

// benchmarkClient is a client of a server over loopback.
func benchmarkClient(b *testing.B, cfg ServerConfig) *Client {
	s := serve(b, cfg)
	rnic := must(verbs.Open(verbs.Config{}))(b)
	b.Cleanup(func() { _ = rnic.Close() })
	c := must(NewClient(ClientConfig{RNIC: rnic, Bindings: exchange.Bindings, Dial: func(ctx context.Context, qp *verbs.QP, p cm.Params) (*cm.Conn, error) {
		here, there := nettest.TCPPair(b, "tcp4")
		s.ended.Go(func() {
			if req, err := cm.Receive(context.Background(), there, mpa.Config{}); err == nil {
				_ = s.server.ServeConn(req)
			}
		})
		return cm.Connect(ctx, qp, here, p)
	}}))(b)
	b.Cleanup(func() { _ = c.Close() })
	return c
}

func BenchmarkCallNull(b *testing.B) {
	c := benchmarkClient(b, ServerConfig{})
	q := nullClientCall()
	b.ReportAllocs()
	for b.Loop() {
		r, err := c.Call(b.Context(), q)
		if err != nil {
			b.Fatal(err)
		}
		r.Release()
	}
}

// items answers with items of the lengths that are wanted, as they happen to be.
var itemsOnly = oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
	d := oncrpc.NewDecoder(r.Args, "EXCHANGE")
	d.Opaque(exchange.MaxTag)
	for range d.Count(exchange.MaxItems, 4) {
		d.Opaque(exchange.MaxItem)
	}
	n := 0
	for range d.Count(exchange.MaxItems, 4) {
		n = int(d.Uint32())
	}
	e := r.Accept(n + 64)
	e.Uint32(0)
	if n == 0 {
		e.Uint32(0)
	} else {
		e.Uint32(1)
		e.Uint32(uint32(n))
		b, _ := e.Finish()
		e = oncrpc.NewEncoder(b[:len(b)+n])
	}
	e.Opaque(nil, exchange.MaxTag)
	return e.Finish()
})

func BenchmarkCall(b *testing.B) {
	const n = 1 << 20
	item := make([]byte, n)
	for name, make1 := range map[string]func() *oncrpc.ClientCall{
		"read": func() *oncrpc.ClientCall {
			q := exchange.Call(exchange.Args("", nil, n))
			q.Sinks = [][]byte{make([]byte, n)}
			return q
		},
		"write": func() *oncrpc.ClientCall { return exchange.Call(exchange.Args("", [][]byte{item})) },
	} {
		for _, depth := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s 1 MiB, %d at a time", name, depth), func(b *testing.B) {
				c := benchmarkClient(b, ServerConfig{Handler: itemsOnly})
				b.SetBytes(n)
				b.ReportAllocs()
				b.SetParallelism(depth)
				b.RunParallel(func(pb *testing.PB) {
					q := make1()
					for pb.Next() {
						r, err := c.Call(context.Background(), q)
						if err != nil {
							b.Error(err)
							return
						}
						r.Release()
					}
				})
			})
		}
	}
}
