// This file measures bandwidth and message rate.

package perf

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/weft-rdma/weft/verbs"
)

// build makes work requests for messages k to k+n of r in e.batch.
func (e *endpoint) build(r *run, k, n int) []verbs.SendWR {
	wrs := e.batch[:n]
	for i := range wrs {
		e.message(r, k+i, &wrs[i], e.sges[i:i+1:i+1])
		if r.signals(k + i) {
			wrs[i].Flags = verbs.Signaled
			e.pending++
		}
	}
	return wrs
}

// post posts a batch. A single message is posted by PostSend, as a program without
// batches does it: the queue pair treats the two differently.
func (e *endpoint) post(wrs []verbs.SendWR) error {
	if len(wrs) == 1 {
		return e.qp.PostSend(wrs[0])
	}
	_, err := e.qp.PostSends(wrs)
	return err
}

// message makes the work request of message k of r, with sgl as its list.
func (e *endpoint) message(r *run, k int, wr *verbs.SendWR, sgl []verbs.SGE) {
	at := r.offset(k)
	*wr = verbs.SendWR{Op: r.Op.verb(), SGL: sgl}
	switch r.Op {
	case Send:
		sgl[0] = e.outSGE(at, r.Size)
	case Write:
		sgl[0], wr.Remote = e.outSGE(at, r.Size), e.peerIn(at)
	case Read:
		sgl[0], wr.Remote = e.inSGE(at, r.Size), e.peerOut(at)
	case Immediate:
		wr.SGL = nil
		binary.BigEndian.PutUint64(wr.Immediate[:], uint64(k))
	case FetchAdd:
		sgl[0], wr.Remote = e.inSGE(at, wordSize), e.peerIn(0)
		wr.Atomic = verbs.Atomic{Data: 1}
	case CmpSwap:
		// Each one finds what the one before it left.
		sgl[0], wr.Remote = e.inSGE(at, wordSize), e.peerIn(0)
		wr.Atomic = verbs.Atomic{Data: uint64(k) + 1, Mask: ^uint64(0), Compare: uint64(k), CompareMask: ^uint64(0)}
	}
}

// begin prepares the driver for a run, and opens a run of one-sided operations.
func (e *endpoint) begin(ctx context.Context, r *run) error {
	var err error
	switch {
	case r.Kind == bandwidth:
		err = e.expect(r, r.acks(), maxAcks, false)
	case !r.Op.fetches():
		err = e.expect(r, r.N, min(r.N, signalEvery), r.Op.receives())
	}
	if err != nil {
		return err
	}
	for range r.opening() {
		if err := e.notify(); err != nil {
			return e.why(err)
		}
	}
	for e.pending > 0 {
		if err := e.reap(ctx); err != nil {
			return err
		}
	}
	return nil
}

// transfer is the driver's part of a bandwidth run, between begin and end. At
// its end the driver knows that all messages are at their place.
func (e *endpoint) transfer(ctx context.Context, r *run) error {
	for posted := 0; posted < r.N; {
		n := min(r.Batch, r.N-posted)
		for e.underWay(r, posted)+n > r.Depth || r.Op.receives() && posted+n > e.recvs.got*r.Depth+r.window() {
			if err := e.reap(ctx); err != nil {
				return err
			}
		}
		if err := e.post(e.build(r, posted, n)); err != nil {
			return e.why(err)
		}
		posted += n
	}
	if r.Op == Write {
		if err := e.notify(); err != nil {
			return e.why(err)
		}
	}
	return e.drain(ctx)
}

// underWay is how many posted messages may be incomplete: those after the last one known
// to be complete.
func (e *endpoint) underWay(r *run, posted int) int {
	return posted - (r.signaled(posted)-e.pending)*r.Signal
}

// end ends a run. The peer is notified of the end of one that it does not answer.
func (e *endpoint) end(ctx context.Context, r *run) error {
	if !r.Op.fetches() {
		return nil
	}
	if err := e.notify(); err != nil {
		return e.why(err)
	}
	return e.drain(ctx)
}

// prepareAnswer prepares the peer for a bandwidth run.
func (e *endpoint) prepareAnswer(r *run) error {
	return e.expect(r, r.incoming(), r.window(), r.Op.receives())
}

// answer is the peer's part of a bandwidth run, after prepareAnswer: it sends the
// acknowledgements that the driver waits for.
func (e *endpoint) answer(ctx context.Context, r *run) error {
	for acks := 0; acks < r.acks(); {
		for e.recvs.got < r.ackAt(acks) {
			if err := e.reap(ctx); err != nil {
				return err
			}
		}
		acks++
		if err := e.notify(); err != nil {
			return e.why(err)
		}
	}
	return e.drain(ctx)
}

// checkDriver compares the data that the driver received in a run.
func (e *endpoint) checkDriver(r *run) error {
	switch {
	case r.Op == Read:
		return e.checkIn(r, r.peerSeed())
	case r.Kind == latency && !r.Op.word():
		return e.checkIn(r, r.Seed) // it came back
	case r.Op.atomic():
		// Each slot holds the value that its last operation returned: the
		// number of operations before it.
		for k := max(r.N-r.Slots, 0); k < r.N; k++ {
			if got := binary.NativeEndian.Uint64(e.in()[r.offset(k):]); got != uint64(k) {
				return fmt.Errorf("%s %d returned %d, expected %d", r.Op, k, got, k)
			}
		}
	}
	return nil
}

// checkPeer compares the data that the peer received in a run. Immediate Data was
// checked on arrival.
func (e *endpoint) checkPeer(r *run) error {
	switch {
	case r.Op == Write || r.Op == Send:
		return e.checkIn(r, r.Seed)
	case r.Op.atomic():
		if got := binary.NativeEndian.Uint64(e.in()); got != uint64(r.N) {
			return fmt.Errorf("after %d times %s the value is %d", r.N, r.Op, got)
		}
	}
	return nil
}
