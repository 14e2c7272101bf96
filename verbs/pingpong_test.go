package verbs_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// BenchmarkPingPong is a Send of 64 octets to and fro over TCP, between two
// goroutines of this process: one operation is a round trip. They wait for their
// completions, or poll for them while the readers poll the connection. Module
// bench/ does so between processes.
func BenchmarkPingPong(b *testing.B) {
	for _, spin := range []time.Duration{0, 50 * time.Microsecond} {
		b.Run(fmt.Sprintf("spin=%v", spin), func(b *testing.B) { pingPong(b, spin, 0) })
	}
}

// BenchmarkPingPongAmongIdle is the same among connected pairs that do nothing.
func BenchmarkPingPongAmongIdle(b *testing.B) {
	for _, n := range []int{0, 1000} {
		b.Run(fmt.Sprintf("idle=%d", n), func(b *testing.B) { pingPong(b, 0, n) })
	}
}

func pingPong(b *testing.B, spin time.Duration, idle int) {
	x, y := newSide(b, reads), newSide(b, reads)
	for range idle {
		wires[0].connect(b, x.sibling().qp, y.sibling().qp, cm.Params{})
	}
	wire := wires[0]
	wire.spin = spin
	wire.connect(b, x.qp, y.qp, cm.Params{})
	for _, s := range []*side{x, y} {
		s.receives(1, 1, 64)
	}
	ctx, cancel := context.WithCancel(b.Context())
	pong := verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{y.mr.SGE(0, 64)}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for y.got(ctx, spin > 0) == nil {
			_ = y.qp.PostSend(pong) // an error shows as a missing pong
		}
	}()
	ping := verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{x.mr.SGE(0, 64)}}
	b.ReportAllocs()
	for b.Loop() {
		check(b, x.qp.PostSend(ping))
		check(b, x.got(ctx, spin > 0))
	}
	cancel()
	<-done
}

// got waits until a message of 64 octets has come, and posts a receive for another.
func (s *side) got(ctx context.Context, poll bool) error {
	var wc [1]verbs.WC
	for s.recvCQ.Poll(wc[:]) == 0 {
		if !poll {
			if err := s.recvCQ.Wait(ctx); err != nil {
				return err
			}
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		runtime.Gosched()
	}
	if err := wc[0].Err(); err != nil {
		return err
	}
	return s.qp.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{s.mr.SGE(0, 64)}})
}
