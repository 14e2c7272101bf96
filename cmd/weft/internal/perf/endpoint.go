// This file is one end of an RDMA connection that is measured.

package perf

import (
	"context"
	"errors"
	"fmt"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// access is what an endpoint's memory is registered for: all of it.
const access = verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic

// reads is the number of RDMA Reads and atomics in progress, each way.
const reads = 16

// An endpoint is one end of an RDMA connection with its memory. It belongs to
// one goroutine.
type endpoint struct {
	pd   *verbs.PD
	cq   *verbs.CQ
	qp   *verbs.QP
	mr   *verbs.MR
	buf  []byte
	room int // bytes of out and of in

	// Of an endpoint that shares its completion queue.
	shares         *consumer
	arrived, taken []verbs.WC  // completions that are to be taken, and those that were last
	waits          bool        // for completions
	pause          func() bool // while the consumer works: lets others go on; false is that it stops
	resume         func() (over bool)

	conn  *cm.Conn
	peer  verbs.Remote // the other end's memory, laid out in the same way
	wcs   [64]verbs.WC
	batch []verbs.SendWR // work requests being built
	sges  []verbs.SGE    // and the list of each

	pending int // signaled work requests that have not completed
	recvs   receives
}

// newEndpoint makes an endpoint whose queues hold depth messages, and whose memory has
// room bytes for sending and as many for receiving. It shares the completion queue of c,
// unless c is nil.
func newEndpoint(r *verbs.RNIC, room, depth int, tune Tuning, c *consumer) (_ *endpoint, err error) {
	room = (room + wordSize - 1) &^ (wordSize - 1)
	e := &endpoint{
		buf:   make([]byte, 2*room),
		room:  room,
		batch: make([]verbs.SendWR, depth+beside),
		sges:  make([]verbs.SGE, depth+beside),
	}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	if e.pd, err = r.AllocPD(); err != nil {
		return nil, err
	}
	sends, recvs := entriesFor(depth)
	if c != nil {
		e.cq = c.cq
	} else if e.cq, err = r.CreateCQ(verbs.CQConfig{Entries: sends + recvs, Spin: tune.Spin}); err != nil {
		return nil, err
	}
	e.shares = c
	if e.mr, err = e.pd.Register(e.buf, access); err != nil {
		return nil, err
	}
	e.qp, err = e.pd.CreateQP(verbs.QPConfig{
		SendCQ: e.cq, RecvCQ: e.cq,
		SendDepth: sends, RecvDepth: recvs,
		SendSGEs: 1, RecvSGEs: 1,
		IRD: reads, ORD: reads,
		Extensions: true,
	})
	if err != nil {
		return nil, err
	}
	if c != nil {
		c.endpoints = append(c.endpoints, e)
		c.of[e.qp.Num()] = e
	}
	return e, nil
}

// beside is how many work requests go beside the batches: a transfer's fence, and an echo's
// pairs.
const beside = signalEvery * 2

// entriesFor is how many work requests the queues of an endpoint hold.
func entriesFor(depth int) (sends, recvs int) {
	return (depth + beside) * 2, max(windowDepths*depth, maxAcks, signalEvery)
}

// out is the memory that this end sends from.
func (e *endpoint) out() []byte { return e.buf[:e.room] }

// in is the memory that this end receives into.
func (e *endpoint) in() []byte { return e.buf[e.room:] }

// outSGE and inSGE name n bytes at an offset of out and in.
func (e *endpoint) outSGE(off, n int) verbs.SGE { return e.mr.SGE(off, n) }
func (e *endpoint) inSGE(off, n int) verbs.SGE  { return e.mr.SGE(e.room+off, n) }

// peerOut and peerIn name an offset of the other end's out and in.
func (e *endpoint) peerOut(off int) verbs.Remote {
	return verbs.Remote{STag: e.peer.STag, TO: e.peer.TO + uint64(off)}
}
func (e *endpoint) peerIn(off int) verbs.Remote { return e.peerOut(e.room + off) }

// remote is what the other end needs to know of the memory.
func (e *endpoint) remote() *remote {
	r := e.mr.Remote(0)
	return &remote{STag: uint32(r.STag), TO: r.TO}
}

// close releases everything.
func (e *endpoint) close() error {
	var errs []error
	if e.qp != nil {
		e.qp.Abort()
		errs = append(errs, e.qp.Destroy())
	}
	if e.cq != nil && e.shares == nil {
		errs = append(errs, e.cq.Destroy())
	}
	if e.mr != nil {
		errs = append(errs, e.mr.Deallocate())
	}
	if e.pd != nil {
		errs = append(errs, e.pd.Dealloc())
	}
	return errors.Join(errs...)
}

// prepare fills the memory for a run: out with the patterns of seed, in with zeros.
func (e *endpoint) prepare(r *run, seed uint64) {
	for k := range r.Slots {
		at := r.offset(k)
		fill(e.out()[at:at+r.Size], seed+uint64(k))
		clear(e.in()[at : at+r.Size])
	}
}

// checkIn compares in with the patterns of seed.
func (e *endpoint) checkIn(r *run, seed uint64) error {
	for k := range r.Slots {
		at := r.offset(k)
		if err := check(e.in()[at:at+r.Size], seed+uint64(k)); err != nil {
			return fmt.Errorf("data mismatch in message %d: %w", k, err)
		}
	}
	return nil
}

// ended reports whether no completions are to come: after a graceful close the queue pair is
// Idle and holds what is posted.
func (e *endpoint) ended() bool {
	state := e.qp.State()
	return state == verbs.Idle || state == verbs.Error
}

// completions returns what has completed, and waits if there is nothing.
func (e *endpoint) completions(ctx context.Context) ([]verbs.WC, error) {
	if e.shares != nil {
		return e.shares.completions(ctx, e)
	}
	n := e.cq.Poll(e.wcs[:])
	for n == 0 {
		ended := e.ended()
		if n = e.cq.Poll(e.wcs[:]); n > 0 {
			break
		}
		if ended {
			return nil, verbs.Flushed
		}
		if err := e.cq.Wait(ctx); err != nil {
			return nil, err
		}
	}
	return e.wcs[:n], nil
}

// reap takes completions, and waits if there are none.
func (e *endpoint) reap(ctx context.Context) error {
	wcs, err := e.completions(ctx)
	if err != nil {
		return e.why(err)
	}
	arrived := 0
	for i := range wcs {
		wc := &wcs[i]
		switch {
		case wc.Status != verbs.Success:
			return e.why(wc.Status)
		case wc.Op == verbs.OpRecv || wc.Op == verbs.OpRecvImmediate:
			if err := e.recvs.arrived(wc); err != nil {
				return err
			}
			arrived++
		default:
			e.pending--
		}
	}
	return e.recvs.post(e, arrived)
}

// why returns the error that ended the queue pair in place of one that followed from it.
func (e *endpoint) why(err error) error {
	if cause := e.qp.Err(); cause != nil {
		return cause
	}
	if errors.Is(err, verbs.Flushed) || errors.Is(err, verbs.ErrState) {
		return errors.New("the other end closed the connection")
	}
	return err
}

// drain waits until all posted work requests have completed and all expected messages
// have arrived.
func (e *endpoint) drain(ctx context.Context) error {
	for e.pending > 0 || !e.recvs.done() {
		if err := e.reap(ctx); err != nil {
			return err
		}
	}
	return nil
}

// notify sends an empty message.
func (e *endpoint) notify() error {
	e.pending++
	return e.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled})
}
