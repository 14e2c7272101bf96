package rpctcp

import (
	"context"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
)

// benchmarkCalls makes calls over loopback with so many octets of arguments and
// results, and so many under way at a time.
func benchmarkCalls(b *testing.B, args, results, parallel int) {
	data := make([]byte, results)
	s := newServer(b, ServerConfig{Handler: oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
		e := r.Accept(results)
		e.Fixed(data)
		return e.Finish()
	})})
	ln := nettest.Listen(b, "tcp4")
	go func() { _ = s.Serve(context.Background(), ln) }()
	c := newClient(b, ClientConfig{Address: ln.Addr().String()})
	call := &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 7, Vers: 1, Proc: 1}, Args: [][]byte{make([]byte, args)}}
	b.SetBytes(int64(args + results))
	b.ReportAllocs()
	b.SetParallelism(parallel)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := c.Call(context.Background(), call)
			if err != nil {
				b.Error(err)
				return
			}
			r.Release()
		}
	})
}

func BenchmarkNullCall(b *testing.B)  { benchmarkCalls(b, 0, 0, 1) }
func BenchmarkNullCalls(b *testing.B) { benchmarkCalls(b, 0, 0, 16) }
func BenchmarkRead(b *testing.B)      { benchmarkCalls(b, 64, 1<<20, 4) }
func BenchmarkWrite(b *testing.B)     { benchmarkCalls(b, 1<<20, 64, 4) }
