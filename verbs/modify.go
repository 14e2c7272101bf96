package verbs

import (
	"context"
	"errors"
)

// This file is the ways in which the consumer ends a stream, and readies the
// queue pair for another (Modify QP, Verbs §6.2).

// Close ends the stream gracefully: it waits until every work request of the
// send queue has completed and every request of the peer is answered, closes
// (Modify QP to Closing, Verbs §6.2.5), and waits for the peer to close, too.
// The queue pair is then Idle, with its receives flushed.
//
// When the context ends first the stream is reset, as by Abort. The error says
// why the end was not graceful. An Idle queue pair is closed already; one in
// Error gives the reason for that.
func (q *QP) Close(ctx context.Context) error {
	if err := q.rnic.alive("close QP"); err != nil {
		return err
	}
	c := q.conn.Load()
	if c == nil {
		return q.Err()
	}
	for begun := false; ; {
		var drained <-chan struct{}
		if !begun {
			drained = q.sq.drained()
		}
		select {
		case <-drained:
			begun = c.close()
		case <-c.over:
			return q.Err()
		case <-ctx.Done():
			q.Abort()
			<-c.over
			return ctx.Err()
		}
	}
}

// close moves the queue pair from RTS to Closing. It reports false if somebody
// has posted to the send queue meanwhile, which then has to be waited for.
func (c *connection) close() bool {
	q := c.q
	q.mu.Lock()
	if q.state == RTS && q.conn.Load() == c {
		if !q.sq.shut() {
			q.mu.Unlock()
			return false
		}
		q.enter(modifyClosing)
		c.limit()
		c.stream.Close()
	}
	q.mu.Unlock()
	c.stream.Kick()
	return true
}

// Terminate ends the stream with a Terminate message that names no error (Modify
// QP to Terminate, Verbs §6.2.3). Only RTS allows it.
func (q *QP) Terminate() error {
	const verb = "modify QP to Terminate"
	if err := q.rnic.alive(verb); err != nil {
		return err
	}
	if q.terminate(modifyTerminate, nil, 0) {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dead {
		return q.rnic.gone(verb, ErrQP)
	}
	return fail(verb, ErrState, "it is %v, expected RTS", q.state)
}

// Abort ends the stream at once, without a message: it is reset, and what is
// outstanding completes as Flushed (Modify QP to Error, Verbs §6.2.4). An Idle
// queue pair goes to Error, too; in other states Abort hurries the end.
func (q *QP) Abort() {
	q.mu.Lock()
	c := q.conn.Load()
	if c == nil {
		if !q.dead && q.enter(modifyError) {
			q.sq.post.Lock()
			q.sq.flushAll()
			q.sq.post.Unlock()
			q.rq.post.Lock()
			q.rq.flushAll()
			q.rq.post.Unlock()
		}
		q.mu.Unlock()
		return
	}
	if q.state == RTS && q.err == nil {
		q.err = errAborted
		q.enter(modifyError)
	}
	q.mu.Unlock()
	c.end(errAborted)
}

var errAborted = errors.New("verbs: the stream was aborted by this side")

// Reset moves a queue pair from Error back to Idle, ready for another stream.
// It fails with ErrFlushing while the old one is not over.
func (q *QP) Reset() error {
	const verb = "modify QP to Idle"
	if err := q.rnic.alive(verb); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.dead:
		return q.rnic.gone(verb, ErrQP)
	case q.state != Error && q.state != Idle:
		return fail(verb, ErrState, "it is %v, expected Error", q.state)
	case q.conn.Load() != nil:
		return fail(verb, ErrFlushing, "")
	}
	q.err = nil
	q.enter(modifyIdle)
	return nil
}
