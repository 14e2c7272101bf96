// This file is what both sides have: queue pair, buffers and completions.

package rping

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// The sizes of rping's queue pair: work requests, and RDMA Reads in progress
// each way.
const (
	sendDepth = 16
	recvDepth = 2
	reads     = 1
)

// MaxIRD is the mpa.Config.MaxIRD for a server: how many RDMA Reads at a time it grants
// to a client that asks for more than rping's one. A responder raises its IRD to what
// the initiator asks for if it can (RFC 6581 §9.1).
const MaxIRD = 16

// errClosed: the peer closed the connection gracefully.
var errClosed = errors.New("the peer closed the connection")

// A buffer is registered memory.
type buffer struct {
	octets []byte
	mr     *verbs.MR
}

// An endpoint is one side of a session: a queue pair, its memory, and a completion queue
// for each direction, so that it can wait for its own operation or for the peer's
// message. Only one goroutine may use it.
type endpoint struct {
	// Patience limits each wait for the peer; 0 waits until the context ends.
	Patience time.Duration

	pd     *verbs.PD
	sendCQ *verbs.CQ
	recvCQ *verbs.CQ
	qp     *verbs.QP
	in     buffer // the advertisement received last
	out    buffer // the advertisement to send
	data   buffer // sink of the client's echo; what the server read
	mrs    []*verbs.MR
}

// open allocates the resources of an endpoint with a data buffer of size octets, and
// posts its first receive: the peer may send as soon as it is connected.
func (e *endpoint) open(r *verbs.RNIC, size int) (err error) {
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	if e.pd, err = r.AllocPD(); err != nil {
		return err
	}
	if e.sendCQ, err = r.CreateCQ(verbs.CQConfig{Entries: sendDepth}); err != nil {
		return err
	}
	if e.recvCQ, err = r.CreateCQ(verbs.CQConfig{Entries: recvDepth}); err != nil {
		return err
	}
	e.qp, err = e.pd.CreateQP(verbs.QPConfig{
		SendCQ: e.sendCQ, RecvCQ: e.recvCQ,
		SendDepth: sendDepth, RecvDepth: recvDepth,
		SendSGEs: 1, RecvSGEs: 1,
		IRD: reads, ORD: reads,
	})
	if err != nil {
		return err
	}
	if e.in, err = e.register(InfoLen, verbs.LocalWrite); err != nil {
		return err
	}
	if e.out, err = e.register(InfoLen, verbs.LocalRead); err != nil {
		return err
	}
	// Remote Write also for the server: an RDMA Read's sink needs it.
	e.data, err = e.register(size, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite)
	if err != nil {
		return err
	}
	return e.postRecv()
}

func (e *endpoint) register(n int, access memory.Access) (buffer, error) {
	octets := make([]byte, n)
	mr, err := e.pd.Register(octets, access)
	if err != nil {
		return buffer{}, err
	}
	e.mrs = append(e.mrs, mr)
	return buffer{octets, mr}, nil
}

// close frees all resources. It aborts the connection unless that was closed before.
func (e *endpoint) close() error {
	var errs []error
	if e.qp != nil {
		e.qp.Abort()
		errs = append(errs, e.qp.Destroy())
	}
	for _, cq := range []*verbs.CQ{e.sendCQ, e.recvCQ} {
		if cq != nil {
			errs = append(errs, cq.Destroy())
		}
	}
	for _, mr := range e.mrs {
		errs = append(errs, mr.Deallocate())
	}
	if e.pd != nil {
		errs = append(errs, e.pd.Dealloc())
	}
	return errors.Join(errs...)
}

func (e *endpoint) postRecv() error {
	return e.qp.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{e.in.mr.SGE(0, InfoLen)}})
}

// recv waits for the peer's next message and posts a receive for the one after it. what
// names the message in errors.
func (e *endpoint) recv(ctx context.Context, what string) (Info, error) {
	wc, err := e.next(ctx, e.recvCQ)
	if err != nil {
		return Info{}, fmt.Errorf("rping: waiting for %s: %w", what, err)
	}
	info, err := ParseInfo(e.in.octets[:wc.Bytes])
	if err != nil {
		return Info{}, err
	}
	if err := e.postRecv(); err != nil {
		return Info{}, fmt.Errorf("rping: posting a receive: %w", err)
	}
	return info, nil
}

// send sends the octets of an advertisement.
func (e *endpoint) send(ctx context.Context, what string) error {
	return e.do(ctx, what, verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{e.out.mr.SGE(0, InfoLen)}})
}

// do posts a work request and waits for its completion.
func (e *endpoint) do(ctx context.Context, what string, wr verbs.SendWR) error {
	wr.Flags |= verbs.Signaled
	err := e.qp.PostSend(wr)
	if errors.Is(err, verbs.ErrState) {
		err = e.ended()
	}
	if err == nil {
		_, err = e.next(ctx, e.sendCQ)
	}
	if err != nil {
		return fmt.Errorf("rping: %s: %w", what, err)
	}
	return nil
}

// A silentError reports how long the peer has been silent.
type silentError time.Duration

func (e silentError) Error() string {
	return fmt.Sprintf("the peer has been silent for %v", time.Duration(e))
}

// Timeout returns true.
func (e silentError) Timeout() bool { return true }

// next waits for the next completion of cq. A flushed one is the error that ended the
// queue pair, if there is one.
func (e *endpoint) next(ctx context.Context, cq *verbs.CQ) (verbs.WC, error) {
	var wcs [1]verbs.WC
	if e.Patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, e.Patience, silentError(e.Patience))
		defer cancel()
	}
	for {
		// After a graceful close the queue pair is Idle, and posted requests do not
		// complete. Requests that the close completed are in cq before the state
		// changes, so the state is read first.
		state := e.qp.State()
		if cq.Poll(wcs[:]) > 0 {
			break
		}
		if state == verbs.Idle || state == verbs.Error {
			return verbs.WC{}, e.ended()
		}
		if err := cq.Wait(ctx); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return verbs.WC{}, err
		}
	}
	switch wc := wcs[0]; wc.Status {
	case verbs.Success:
		return wc, nil
	case verbs.Flushed:
		return wc, e.ended()
	default:
		return wc, wc.Err()
	}
}

// ended returns why the queue pair is not in RTS any more.
func (e *endpoint) ended() error {
	if err := e.qp.Err(); err != nil {
		return err
	}
	return errClosed
}
