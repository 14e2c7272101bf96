// This file is the error of a completion: its status, and why.

package verbs

import (
	"errors"
	"io"
	"strings"

	"github.com/weft-rdma/weft/ddp"
)

// Err returns nil for a success. Any other completion is an error that is both
// its Status and the reason, to errors.Is and errors.As: of a request that was
// flushed why the stream ended, as [QP.Err] says, for which it may wait a moment;
// of one that failed by itself what was wrong with it. When the stream was closed
// gracefully, as it is when receives are flushed by the end, the reason is io.EOF.
//
// A success costs nothing. Err may be called as long as the completion is kept, also
// when the queue pair has another stream by then.
func (wc WC) Err() error {
	if wc.Status == Success {
		return nil
	}
	return wc.failure()
}

func (wc *WC) failure() error {
	e := &wcError{op: wc.Op, status: wc.Status}
	if wc.end != nil {
		e.cause = wc.end.why()
		if e.cause == nil && wc.Status == Flushed {
			e.cause = gracefulEnd{}
		}
	}
	return e
}

// A wcError is a completion in error.
type wcError struct {
	op     Op
	status Status
	cause  error // why the stream ended, nil if nothing is known of it
}

func (e *wcError) Error() string {
	s := e.op.String() + ": " + e.status.String()
	var own wqError
	switch {
	case e.cause == nil:
		return s
	case e.status == Flushed:
		return s + ": the stream ended because " + clause(e.cause)
	case errors.As(e.cause, &own) && own.status == e.status:
		if own.detail == "" {
			return s
		}
		return s + ": " + own.detail
	}
	return s + ": " + clause(e.cause)
}

// clause is an error in the midst of another, without the name of a package.
func clause(err error) string {
	s := strings.TrimPrefix(err.Error(), "verbs: ")
	if e, ok := ddp.AsLLPError(err); ok && strings.HasPrefix(s, e.Error()) {
		_, s, _ = strings.Cut(s, ": ")
	}
	return s
}

func (e *wcError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.status}
	}
	return []error{e.status, e.cause}
}

// gracefulEnd is the end of a stream that nothing was wrong with.
type gracefulEnd struct{}

func (gracefulEnd) Error() string { return "it was closed gracefully" }
func (gracefulEnd) Unwrap() error { return io.EOF }

// A streamEnd is why a stream of a queue pair ended, or why what was posted without
// one was flushed. Completions in error refer to it; the reason may become known
// after they do.
type streamEnd struct {
	q   *QP
	err error // once the queue pair has another, until then it is QP.err; QP.mu
}

func (e *streamEnd) why() error {
	e.q.mu.Lock()
	defer e.q.mu.Unlock()
	if e.q.end == e {
		return e.q.err
	}
	return e.err
}

// newEnd has completions from now on refer to another end, which nothing is known
// of yet; needs mu, and nothing that completes.
func (q *QP) newEnd() {
	if q.end != nil {
		q.end.err = q.err
	}
	q.end, q.err = &streamEnd{q: q}, nil
	q.sq.done.Lock()
	q.sq.end = q.end
	q.sq.done.Unlock()
	q.rq.post.Lock()
	q.rq.end = q.end
	q.rq.post.Unlock()
}
