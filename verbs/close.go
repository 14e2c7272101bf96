// This file is the ways in which the consumer ends a stream: Close, Terminate, Abort, and
// Reset afterwards. They are shorthands of Modify QP.

package verbs

import (
	"context"
	"errors"
	"time"
)

// Close ends the stream gracefully: it waits until every work request of the
// send queue has completed, then until every request of the peer is answered, for
// Config.CloseTimeout at most, closes (Modify QP to Closing, Verbs §6.2.5), and
// waits for the peer to close, too. The queue pair is then Idle, with its receives
// flushed.
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
	var late *time.Timer
	for begun := false; !begun; {
		if over, err := c.wait(ctx, q.sq.drained(), nil); over {
			return err
		}
		if late == nil {
			late = time.NewTimer(q.rnic.cfg.CloseTimeout)
			defer late.Stop()
		}
		if over, err := c.wait(ctx, c.stream.Answered(), late); over {
			return err
		}
		begun = c.tryClose(false)
	}
	_, err := c.wait(ctx, nil, nil)
	return err
}

// Unconfirmed reports that the peer has sent something and cannot know yet that it has
// arrived: a Send, an RDMA Write or Immediate Data, behind which no Read or atomic has
// come and is being answered. A peer that puts a Read behind what it wants confirmed, as
// programs for reliable connections expect, is owed that answer before Close. It is
// false without a stream.
func (q *QP) Unconfirmed() bool {
	c := q.conn.Load()
	return c != nil && c.stream.Unconfirmed()
}

// wait waits until quiet is closed. If the stream is over before that it says so,
// and why; it is over when the context has ended, and when it gets late it has to
// come to an end.
func (c *connection) wait(ctx context.Context, quiet <-chan struct{}, late *time.Timer) (over bool, err error) {
	var tooLate <-chan time.Time
	if late != nil {
		tooLate = late.C
	}
	select {
	case <-quiet:
		return false, nil
	case <-c.over:
		return true, c.q.Err()
	case <-tooLate:
		c.tryClose(true)
		<-c.over
		return true, c.q.Err()
	case <-ctx.Done():
		c.q.Abort()
		<-c.over
		return true, ctx.Err()
	}
}

// tryClose moves the queue pair from RTS to Closing. It reports false if something
// is to be done first, unless force says that it is too late for that.
func (c *connection) tryClose(force bool) bool {
	q := c.q
	q.mu.Lock()
	if q.state != RTS || q.conn.Load() != c {
		q.mu.Unlock()
		return true
	}
	if !force && c.busy() {
		q.mu.Unlock()
		return false
	}
	after := c.close()
	q.mu.Unlock()
	after()
	return true
}

// busy reports that something is outstanding on the send queue, or that the peer
// waits for an answer. Otherwise the send queue takes no more.
func (c *connection) busy() bool { return !c.stream.Idle() || !c.q.sq.shut() }

// close moves the queue pair from RTS to Closing, and to Error if it is busy (Verbs
// §6.2.2.2). It returns what has to be done without QP.mu, which it needs.
func (c *connection) close() (after func()) {
	busy := c.busy()
	c.q.enter(modifyClosing)
	if busy {
		return func() { c.end(errBusy) }
	}
	c.limit()
	c.stream.Close()
	return c.stream.Kick
}

// Terminate ends the stream with a Terminate message that names no error (Modify
// QP to Terminate, Verbs §6.2.3). Only RTS allows it.
func (q *QP) Terminate() error {
	_, err := q.modify(Terminate, &QPModify{})
	return err
}

// Abort ends the stream at once, without a message: it is reset, and what is
// outstanding completes as Flushed (Modify QP to Error, Verbs §6.2.4). An Idle
// queue pair goes to Error, too; in other states Abort hurries the end.
func (q *QP) Abort() {
	q.mu.Lock()
	after := q.abort()
	q.mu.Unlock()
	if after != nil {
		after()
	}
}

// abort needs mu, and returns what has to be done without it.
func (q *QP) abort() (after func()) {
	c := q.conn.Load()
	if c == nil {
		if !q.dead && q.state == Idle {
			q.newEnd()
			q.err = errAborted
			q.enter(modifyError)
			q.sq.post.Lock()
			q.sq.flushAll()
			q.sq.post.Unlock()
			q.rq.post.Lock()
			q.rq.flushAll()
			q.rq.post.Unlock()
		}
		return nil
	}
	if q.state == RTS {
		q.err = errAborted
		q.enter(modifyError)
	}
	return func() { c.end(errAborted) }
}

// Why a stream was reset by this side.
var (
	errAborted = errors.New("verbs: this side aborted the stream")
	errBusy    = errors.New("verbs: this side closed the stream with work outstanding")
)

// Reset moves a queue pair from Error back to Idle, ready for another stream
// (Modify QP to Idle). It fails with ErrFlushing while the old one is not over.
func (q *QP) Reset() error {
	_, err := q.modify(Idle, &QPModify{})
	return err
}
