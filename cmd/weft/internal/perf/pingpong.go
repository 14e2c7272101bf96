package perf

import (
	"context"
	"time"

	"github.com/weft-rdma/weft/verbs"
)

// signalEvery is how often a work request of a latency run is signaled: each
// one would cost a completion, none would fill the queue.
const signalEvery = 16

// ping makes the work requests by which message k of a latency run goes out:
// for a Write also the Send of no bytes that tells of it. They come from
// source, which is out at the driver and in at the peer.
func (e *endpoint) ping(r *run, k int, source verbs.SGE) []verbs.SendWR {
	wrs := e.batch[:1]
	e.message(r, k, &wrs[0], e.sges[:1:1])
	if r.Op == Write || r.Op == Send {
		e.sges[0] = source
	}
	if r.Op == Write {
		wrs = e.batch[:2]
		wrs[1] = verbs.SendWR{Op: verbs.OpSend}
	}
	if r.Op.fetches() || k%signalEvery == signalEvery-1 {
		wrs[len(wrs)-1].Flags = verbs.Signaled
		e.pending++
	}
	return wrs
}

// pingpong is the driver's part of a latency run, between begin and end. Its
// round trips go to trips, which has a place for each.
func (e *endpoint) pingpong(ctx context.Context, r *run, trips []time.Duration) error {
	for k := range r.N {
		start := time.Now()
		if _, err := e.qp.PostSends(e.ping(r, k, e.outSGE(0, r.Size))); err != nil {
			return e.why(err)
		}
		for r.Op.fetches() && e.pending > 0 || !r.Op.fetches() && e.recvs.got <= k {
			if err := e.reap(ctx); err != nil {
				return err
			}
		}
		trips[k] = time.Since(start)
	}
	return e.drain(ctx)
}

// preparePong readies the peer for a latency run whose messages go back: each
// takes a receive.
func (e *endpoint) preparePong(r *run) error {
	return e.expect(r, r.opening()+r.N, min(r.opening()+r.N, signalEvery), r.Op.receives())
}

// pong is the peer's part of such a run, after preparePong.
func (e *endpoint) pong(ctx context.Context, r *run) error {
	for k := range r.N {
		for e.recvs.got <= r.opening()+k {
			if err := e.reap(ctx); err != nil {
				return err
			}
		}
		if _, err := e.qp.PostSends(e.ping(r, k, e.inSGE(0, r.Size))); err != nil {
			return e.why(err)
		}
	}
	return e.drain(ctx)
}
