// This file is the life of a queue pair's stream (Verbs §6.2, §6.6).
//
//  1. begin enters RTS: it makes the rdmap.Stream and starts run.
//  2. run receives until the stream ends. The consumer's goroutines send (QP.PostSend
//     calls Stream.Kick); where that would have to wait, write does, in a goroutine
//     that lives only for it.
//  3. received decides what the end of the reception means, and moves the queue pair to
//     Closing or Terminate. The consumer (Modify, Close, Abort), failed work requests
//     and full CQs may have done so before.
//  4. run drains the LLP and waits for ended: the outgoing half has sent the Terminate
//     message or FIN, or broken. limit bounds that time.
//  5. finish stops everything, takes the next state and the event from the table in
//     outcome.go, flushes both queues, and closes over.
//
// Locking: QP.mu guards the state and what follows from it. The locks of the package are
// taken in this order:
//
//	outbound.owner (package rdmap)
//	QP.mu
//	sendQueue.post, recvQueue.post
//	sendQueue.done
//	CQ.resize, SRQ.modify
//	RNIC.mu
//	CQ.mu
//	SRQ.mu
//	memory.Table.mu, refusals.mu, dispatcher.mu
//
// Stream.Kick, which sends, and Stream.Stop, which waits for senders, are called
// without any of them: terminate and close set what the next Kick sends.

package verbs

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/internal/panics"
	"github.com/weft-rdma/weft/rdmap"
)

// A connection is a queue pair's stream, from RTS until it is completely over. Its
// goroutine run receives and then ends the stream. Another, write, exists while sending
// has to wait.
type connection struct {
	q       *QP
	llp     ddp.LLP
	stream  *rdmap.Stream
	writer  sync.WaitGroup
	writeFn func() // write, made once

	half  sync.Once             // closes ended
	ended chan struct{}         // closed when the outgoing half has ended
	cause atomic.Pointer[error] // the first error that broke the LLP stream
	over  chan struct{}         // closed when it is completely over

	initiator bool
	announced bool // the peer takes RFC 7306's messages; the receiving goroutine's

	timer *time.Timer // of Closing and Terminate; QP.mu
	nudge *time.Timer // sends the next nudge; QP.mu

	// reportLoss: no event said why the queue pair entered Terminate, because a completion
	// says so or the consumer asked for it. Then a later failure of the LLP raises Bad Close
	// (Verbs §6.2.3); QP.mu.
	reportLoss bool
	finished   bool // it is dismantled; QP.mu
}

// begin moves the queue pair from Idle to RTS over an established LLP stream;
// needs mu. RDMAP, DDP and MPA start in their initial states (Verbs §6.2.1.2).
func (q *QP) begin(llp ddp.LLP, terms Terms) *connection {
	c := &connection{q: q, llp: llp, initiator: terms.Initiator, ended: make(chan struct{}), over: make(chan struct{})}
	c.writeFn = c.write
	q.terms = terms
	q.newEnd()
	q.sq.reopen()
	cfg := rdmap.Config{
		IRD: terms.IRD, ORD: terms.ORD, Initiator: terms.Initiator, RTR: terms.RTR,
		Hold: &q.out, PeerClosed: c.peerClosed, HandOver: c.startWriting, Ended: c.end,
	}
	if q.cfg.PauseOnEmptyRQ {
		cfg.SetAside = q.cfg.SetAside
	}
	if terms.Initiator && terms.Nudge > 0 {
		cfg.Opened = func() { c.nudgeAfter(terms.Nudge, nudges) }
	}
	if q.cfg.Announced != nil {
		cfg.Signature, cfg.Signed = announcement, c.signed
	}
	c.stream = rdmap.NewStream(llp, ulp{q}, cfg)
	if s, ok := llp.(ddp.SpinningLLP); ok {
		s.Spin(max(q.cfg.SendCQ.cfg.Spin, q.cfg.RecvCQ.cfg.Spin))
	}
	// With PauseOnEmptyRQ the receiving goroutine may wait for a receive. If it were
	// the consumer's own, nobody could post one.
	if l, ok := llp.(ddp.NonBlockingLLP); !q.cfg.PauseOnEmptyRQ || ok && l.PollNeverBlocks() {
		q.cfg.SendCQ.watch(llp)
		q.cfg.RecvCQ.watch(llp)
	}
	q.conn.Store(c)
	q.peer.Store(peerOf(llp))
	q.past.Streams++
	q.enter(modifyRTS)
	go func() {
		defer panics.Recover()
		if q.cfg.Announced != nil && terms.Initiator && terms.RTR&rdmap.RTRWrite == 0 {
			c.stream.Nudge()
		}
		c.run()
	}()
	return c
}

// peerOf returns the address of the peer, nil if the LLP knows none.
func peerOf(llp ddp.LLP) *string {
	if c, ok := llp.(ddp.AddressedLLP); ok {
		if peer := c.Peer(); peer != "" {
			return &peer
		}
	}
	return nil
}

// startWriting starts write.
func (c *connection) startWriting() {
	c.writer.Add(1)
	go c.writeFn()
}

func (c *connection) write() {
	defer panics.Recover()
	defer c.writer.Done()
	c.stream.TakeOver()
}

// nudges is how many nudges a silent peer gets. The pause grows by a factor of three.
const nudges = 5

// nudgeAfter nudges a peer that has sent nothing after d, and then up to times-1 times
// more. Linux siw leaves a first message that comes too soon unread until more comes.
func (c *connection) nudgeAfter(d time.Duration, times int) {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	if times == 0 || c.finished {
		return
	}
	c.nudge = time.AfterFunc(d, func() {
		defer panics.Recover()
		if !c.stream.Heard() {
			c.stream.Nudge()
			c.nudgeAfter(3*d, times-1)
		}
	})
}

// ready returns a channel that is closed when the peer's first message has
// arrived and was in order, or nil without a stream. The responder of a
// peer-to-peer start-up is connected only then (RFC 6581 §9.2); it is not if
// that message is a Terminate.
func (q *QP) ready() <-chan struct{} {
	if c := q.conn.Load(); c != nil {
		return c.stream.Ready()
	}
	return nil
}

// run receives until the stream ends, and then finishes it.
func (c *connection) run() {
	err := c.stream.Reader()
	lost := c.received(err)
	if !lost {
		// The Terminate message may be able to leave only after a peer that writes
		// before it reads has finished. Unread input would make the kernel reset
		// the connection, and destroy that message on its way.
		lost = c.llp.Drain() != nil
		<-c.ended
		lost = lost || c.cause.Load() != nil // it had to be reset
	}
	c.finish(err, lost)
}

// received handles the end of the reception. lost reports that the LLP stream has
// gone.
func (c *connection) received(err error) (lost bool) {
	var remote *rdmap.TerminateError
	llp, isLLP := ddp.AsLLPError(err)
	switch {
	case errors.Is(err, io.EOF):
		c.stream.PeerClosed() // peerClosed decides
		c.q.mu.Lock()
		c.limit() // the decision may have to wait for what is being sent
		c.q.mu.Unlock()
	case errors.As(err, &remote) && remote.Remote:
		lost = c.peerTerminated(remote)
	case isLLP && llp.Lost():
		return true
	default:
		lost = c.violated(err)
	}
	c.stream.Kick()
	return lost
}

// peerClosed decides what the peer's FIN means (Verbs §6.2.2): with nothing
// outstanding it is a graceful close, otherwise an error. RDMAP calls it when
// nothing is on its way out.
func (c *connection) peerClosed() {
	q := c.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state != RTS {
		return
	}
	if c.busy() {
		c.terminate(peerCloseBusy, io.EOF, EventBadLLPClose)
		return
	}
	q.enter(peerClose)
	c.stream.Close()
}

// peerTerminated handles a Terminate message of the peer. It is not answered with
// another (RFC 5040 §5.4).
func (c *connection) peerTerminated(err *rdmap.TerminateError) (lost bool) {
	q := c.q
	q.mu.Lock()
	defer q.mu.Unlock()
	switch q.state {
	case RTS:
		q.err = err
		q.enter(peerTerminate)
		c.limit()
		if ticket, ok := c.stream.TerminatedRequest(err); ok {
			q.sq.finish(ticket, RemoteTermination)
		}
		q.rnic.raise(Event{ID: EventTerminateReceived, QP: q, Err: err})
	case Closing:
		return true
	}
	c.stream.Abandon()
	return false
}

// violated handles a violation of protocol or protection by the peer, and the end of a
// reception because this side had ended the stream.
func (c *connection) violated(err error) (lost bool) {
	q := c.q
	q.mu.Lock()
	defer q.mu.Unlock()
	err = q.explain(err, &q.in)
	status := c.refusal(err)
	if q.state == RTS {
		var local wqError
		switch {
		case errors.As(err, &local):
			c.terminate(workError, err, 0)
		case err == rdmap.ErrUnfinished:
			c.terminate(peerCloseBusy, err, EventBadLLPClose)
		case status != Success:
			c.terminate(protocolError, err, 0)
		default:
			c.terminate(protocolError, err, q.eventOf(err))
		}
		if status != Success {
			q.rq.complete(&WC{Op: OpRecv, Status: status})
		}
	}
	return q.state == Closing
}

// unanswered handles a request of the peer that cannot be answered. RDMAP's outgoing
// half calls it, and sends the Terminate message.
func (c *connection) unanswered(err error) {
	q := c.q
	q.mu.Lock()
	defer q.mu.Unlock()
	err = q.explain(err, &q.out.Holder)
	if q.state == Closing {
		q.err = c.stream.Terminate(err)
		return
	}
	c.terminate(protocolError, err, q.eventOf(err))
}

// refusal is what the receive in use completes with, if the error is that it was
// too short for its message, or that the message may not invalidate what it names
// (Verbs §8.3.2); otherwise Success.
func (c *connection) refusal(err error) Status {
	var t reportedInWC
	if errors.As(err, &t) {
		return InvalidateRefused
	}
	var e *ddp.Error
	if !errors.As(err, &e) || e.EType != ddp.UntaggedBuffer || e.Code != ddp.CodeTooLong {
		return Success
	}
	var h ddp.Untagged
	if c.q.rq.front() == nil || !h.Parse(e.Header()) || h.QN != rdmap.QueueSend {
		return Success
	}
	return BaseBounds
}

// terminate moves the queue pair to Terminate, if it is in RTS, and has a
// Terminate message sent, with the next Kick, that reports err; needs QP.mu.
// event 0 is none. It reports whether the queue pair was in RTS: only then may a
// work request complete in error, any other is flushed (Verbs §6.2.4).
func (c *connection) terminate(t trigger, err error, event EventID) (first bool) {
	q := c.q
	if q.state != RTS || !q.enter(t) {
		return false
	}
	c.limit()
	q.err = c.stream.Terminate(err)
	c.reportLoss = event == 0
	if event != 0 {
		q.rnic.raise(Event{ID: event, QP: q, Err: q.err})
	}
	return true
}

// limit bounds what is left of the stream's life; needs QP.mu.
func (c *connection) limit() {
	if c.timer == nil {
		c.timer = time.AfterFunc(c.q.rnic.cfg.CloseTimeout, func() {
			defer panics.Recover()
			c.end(errTimeout)
		})
	}
}

var errTimeout = errors.New("verbs: the peer did not let the stream end in time")

// end notes that the outgoing half has ended. Unless it ended as it should, the
// LLP stream is reset, which ends the reception, too.
func (c *connection) end(err error) {
	if err != nil {
		c.cause.CompareAndSwap(nil, &err)
		_ = c.llp.Reset() // it may be closed already
	}
	c.half.Do(func() { close(c.ended) })
}

// hasEnded reports whether the outgoing half has ended.
func (c *connection) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// finish ends what is left of the stream, and then moves the queue pair to its final
// state. err is what ended the reception; lost says that there is no LLP stream any
// more.
func (c *connection) finish(err error, lost bool) {
	c.dismantle(err, lost)
	q := c.q
	q.mu.Lock()
	c.finished = true
	for _, t := range []*time.Timer{c.timer, c.nudge} {
		if t != nil {
			t.Stop()
		}
	}
	e, cause := c.ending(err, lost)
	t, event := e.outcome()
	to, _ := q.state.next(t)
	if q.err == nil && to != Idle {
		q.err = cause
	}
	why := q.err
	q.past.ended(q.state, to == Idle, why)
	q.past.addStream(&c.stream.Stats)
	q.rnic.countEnd(c, why)
	q.enter(t)
	c.detach()
	q.mu.Unlock()
	if event != 0 {
		q.rnic.raise(Event{ID: event, QP: q, Err: why})
	}
	close(c.over)
}

// dismantle stops the stream: when it returns, no goroutine but the caller's is in it, and
// it holds no memory.
func (c *connection) dismantle(err error, lost bool) {
	q := c.q
	if lost {
		c.end(err)
	}
	_ = c.llp.Close() // it may be reset already
	c.stream.Stop()
	c.writer.Wait()
	c.end(nil)
	q.cfg.SendCQ.unwatch(c.llp)
	q.cfg.RecvCQ.unwatch(c.llp)
	q.releaseInbound()
	q.out.Forget()
}

// ending is what is known of the stream, and what caused its end; needs QP.mu.
func (c *connection) ending(err error, lost bool) (e ending, cause error) {
	// The reception may have ended only because this side reset the stream.
	cause = err
	if first := c.cause.Load(); first != nil {
		cause = *first
	}
	llp, ok := ddp.AsLLPError(cause)
	return ending{
		state: c.q.state, in: receptionOf(err),
		lost: lost, reset: ok && llp.Reset(), busy: cause == errBusy,
		clean: c.q.sq.idle() && c.q.err == nil, report: c.reportLoss,
	}, cause
}

// detach flushes the queues and detaches the stream; needs QP.mu. In Idle the send queue
// stays as it is. Everything is flushed before the state can be seen to allow another
// stream.
func (c *connection) detach() {
	q := c.q
	if q.state != Idle {
		q.sq.post.Lock()
		q.sq.flushAll()
		q.conn.Store(nil)
		q.sq.post.Unlock()
	}
	q.rq.post.Lock()
	q.rq.flushAll()
	q.conn.Store(nil)
	q.rq.post.Unlock()
}

// workFailed ends the stream because of a work request that failed. Its
// completion reports it, after the state, if the stream had not been ended before.
func (q *QP) workFailed(err error) (first bool) { return q.terminate(workError, err, 0) }

// condemn is workFailed for the receiving goroutine, which kicks when it has
// ended the reception: it may not now, in the middle of a read.
func (q *QP) condemn(err error) (first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.conn.Load()
	return c != nil && c.terminate(workError, err, 0)
}

// cqFailed ends the stream because one of its CQs lost completions.
func (q *QP) cqFailed(event EventID) { q.terminate(protocolError, errCQ, event) }

// terminate ends the stream, if there is one, with a Terminate message. It
// reports whether the queue pair was in RTS.
func (q *QP) terminate(t trigger, err error, event EventID) bool {
	q.mu.Lock()
	c := q.conn.Load()
	if c == nil || q.state != RTS {
		q.mu.Unlock()
		return false
	}
	first := c.terminate(t, err, event)
	q.mu.Unlock()
	c.stream.Kick()
	return first
}

var errCQ = rdmap.NewError(rdmap.RemoteOperation, rdmap.CodeStream, "a completion queue of the stream overflowed")
