// This file measures latency.

package perf

import (
	"context"
	"time"

	"github.com/weft-rdma/weft/verbs"
)

// signalEvery is the signaling interval of a latency run. A signal for each request
// would cost a completion each; without any the queue would fill up.
const signalEvery = 16

// ping makes the work requests of message k of a latency run; an empty Send follows a
// Write, to notify the peer. Source is out at the driver and in at the peer.
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

// preparePong posts the receives of a latency run at the peer, one for each message.
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
