// This file is the queue pair: its parts, its state, and posting to it.

package verbs

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/rdmap"
)

// A QP is a queue pair: the consumer's end of an RDMA stream (Verbs §6).
// Methods may be called by any goroutine.
type QP struct {
	rnic *RNIC
	pd   *PD
	cfg  QPConfig
	num  uint32

	sq sendQueue
	rq recvQueue

	inbound inbound

	// Ways to memory: out belongs to the owner of RDMAP's outgoing half, in to
	// the receiving goroutine, like shared: the way to the memory of receives of
	// an S-RQ in another protection domain, otherwise nil.
	out    hold
	in     memory.Holder
	shared *memory.Holder

	mu      sync.Mutex
	state   State
	changed chan struct{} // closed and replaced when state changes
	err     error         // why it left RTS
	end     *streamEnd    // what completions in error refer to, for that
	terms   Terms
	// IRD and ORD as they were asked for, taken from the RNIC's pools.
	ird, ord int
	speaking bool          // a StreamMessage is being sent
	past     QPStats       // counts of streams that have ended, and those that nothing else has
	dead     bool          // destroyed
	gone     chan struct{} // closed when its destruction is complete

	conn atomic.Pointer[connection] // of RTS, Closing and Terminate; set under mu
	peer atomic.Pointer[string]     // of the last stream, for the log; nil where the LLP knows none
}

// Terms are what the start-up of a stream has agreed on.
type Terms struct {
	IRD, ORD  int       // in place of those of the QPConfig
	Initiator bool      // this side sends first
	RTR       rdmap.RTR // the ready-to-receive message, see rdmap.Config

	// Nudge, of an initiator, is after how long without an answer to its first
	// message the peer is sent an empty RDMA Write, which completes nothing, and
	// then four more, each after three times as long, until something comes. 0 is
	// never. See cm.Params.
	Nudge time.Duration
}

// Num is the QP ID: a number that no other queue pair of the RNIC has.
func (q *QP) Num() uint32 { return q.num }

// RNIC returns the queue pair's RNIC.
func (q *QP) RNIC() *RNIC { return q.rnic }

// PD returns the queue pair's protection domain.
func (q *QP) PD() *PD { return q.pd }

// Config returns what the queue pair was created with, defaults filled in.
func (q *QP) Config() QPConfig { return q.cfg }

// State returns the state that the queue pair is in.
func (q *QP) State() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state
}

// Err says why the queue pair left RTS: a *rdmap.TerminateError when either
// side sent a Terminate message, an error of the transport, or nil while it is
// in RTS and after a graceful close.
func (q *QP) Err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// WaitState returns when the queue pair is in one of the states, and says in which state it
// is. The error is the context's; or ErrQP, or ErrRNIC, if the queue pair has been destroyed
// and its last state is none of them.
func (q *QP) WaitState(ctx context.Context, states ...State) (State, error) {
	for {
		destroyed := false
		select {
		case <-q.gone: // looked at before the state, which does not change afterwards
			destroyed = true
		default:
		}
		q.mu.Lock()
		state, changed := q.state, q.changed
		q.mu.Unlock()
		switch {
		case slices.Contains(states, state):
			return state, nil
		case destroyed:
			return state, q.rnic.gone("wait for a state", ErrQP)
		}
		select {
		case <-changed:
		case <-q.gone:
		case <-ctx.Done():
			return state, ctx.Err()
		}
	}
}

// enter moves the queue pair by a trigger, if its state has that transition; needs mu.
// The queues change before the new state is visible.
func (q *QP) enter(t trigger) bool {
	to, ok := q.state.next(t)
	if !ok {
		return false
	}
	q.setIntake(intakeOf(to))
	if to != q.state {
		q.rnic.log.Debug("state", "qp", q.num, "from", q.state, "to", to)
		q.state = to
		close(q.changed)
		q.changed = make(chan struct{})
	}
	return true
}

// intakeOf returns what a state does with work requests (Verbs §6.2).
func intakeOf(s State) intake {
	switch s {
	case Closing:
		return refuse
	case Error:
		return flush
	}
	return accept
}

// setIntake sets what the queues do with what is posted, unless the RNIC is closed.
func (q *QP) setIntake(in intake) {
	if q.rnic.life.Load() != lifeOpen {
		in = gone
	}
	q.sq.post.Lock()
	q.sq.in = in
	q.sq.post.Unlock()
	q.rq.post.Lock()
	q.rq.in = in
	q.rq.post.Unlock()
}

// PostSend posts one work request to the send queue; see PostSends.
func (q *QP) PostSend(wr SendWR) error {
	q.sq.post.Lock()
	tail := q.sq.tail.Load()
	err := q.sq.push(tail, &wr)
	if err == nil {
		q.sq.tail.Store(tail + 1)
	}
	q.posted(err == nil, err == nil && q.sq.burst.another(1, sinceStart()))
	return err
}

// PostSends posts work requests, in order, as one batch that rings the bell
// once. It stops at the first that cannot be posted and returns how many were,
// and why (Verbs §8.2.1). It never waits for the network. Of the requests
// nothing is retained but the memory that they name.
//
// The results besides success are ErrFull, ErrState, ErrOp, ErrSGLFormat,
// ErrSGLLength, ErrModifier and ErrQP; with QPConfig.Strict ErrModifier is also the
// Status that the request would have completed with. In the Idle state requests are held
// until the queue pair enters RTS; in Terminate and Error they complete as
// Flushed.
func (q *QP) PostSends(wrs []SendWR) (n int, err error) {
	q.sq.post.Lock()
	tail := q.sq.tail.Load()
	for n < len(wrs) && err == nil {
		if err = q.sq.push(tail+uint64(n), &wrs[n]); err == nil {
			n++
		}
	}
	q.sq.tail.Store(tail + uint64(n))
	q.posted(n > 0, n > 0 && err == nil && q.sq.burst.another(n, sinceStart()))
	return n, err
}

// posted rings the bell, if anything was posted, and unlocks the queue. more says that
// more posts are expected soon.
func (q *QP) posted(any, more bool) {
	c := q.conn.Load()
	if any && c == nil && q.sq.in == flush {
		q.sq.flushAll()
	}
	q.sq.post.Unlock()
	switch {
	case !any || c == nil:
	case more:
		c.stream.KickLater()
	default:
		c.stream.Kick()
		q.sq.burst.sent(sinceStart())
	}
}

// PostRecv posts one receive; see PostRecvs.
func (q *QP) PostRecv(wr RecvWR) error {
	q.rq.post.Lock()
	err := q.rq.push(&wr)
	q.postedRecv(err == nil)
	return err
}

// PostRecvs posts receives, in order. It stops at the first that cannot be
// posted and returns how many were, and why. The results besides success are
// ErrFull, ErrState, ErrSGLLength, ErrQP and, if the queue pair uses an S-RQ,
// ErrRQOfSRQ.
func (q *QP) PostRecvs(wrs []RecvWR) (n int, err error) {
	q.rq.post.Lock()
	for n = range wrs {
		if err = q.rq.push(&wrs[n]); err != nil {
			q.postedRecv(n > 0)
			return n, err
		}
	}
	q.postedRecv(len(wrs) > 0)
	return len(wrs), nil
}

func (q *QP) postedRecv(any bool) {
	if any && q.rq.in == flush && q.conn.Load() == nil {
		q.rq.flushAll()
	}
	q.rq.post.Unlock()
	if any && q.cfg.PauseOnEmptyRQ {
		q.rq.wake()
	}
}

// checkSend makes the checks of a send work request that have an immediate result.
// Memory is checked later, when it is used (Verbs §8.3). Fields that the operation does
// not use are ignored (Verbs §9.3.1.1).
func (q *QP) checkSend(wr *SendWR) error {
	const verb = "post to SQ"
	n, op := 0, wr.Op.row()
	if op.list != noList {
		n = len(wr.SGL)
	}
	switch {
	case !op.posted():
		return fail(verb, ErrOp, "%s", noOp(wr.Op))
	case op.extension && !q.cfg.Extensions:
		return fail(verb, ErrOp, "%v is of RFC 7306: set QPConfig.Extensions, if the peer knows them", wr.Op)
	case wr.Op == OpWrite && n > q.cfg.WriteSGEs:
		return fail(verb, ErrSGLLength, "%d elements, the queue was created for %d (QPConfig.WriteSGEs)", n, q.cfg.WriteSGEs)
	case wr.Op != OpWrite && n > q.cfg.SendSGEs:
		return fail(verb, ErrSGLLength, "%d elements, the queue was created for %d (QPConfig.SendSGEs)", n, q.cfg.SendSGEs)
	case op.needsResponse && n != 1:
		return fail(verb, ErrSGLFormat, "%v takes one element, not %d", wr.Op, n)
	case op.list == value && wr.SGL[0].Length != 8:
		return fail(verb, ErrSGLFormat, "%v returns 8 octets, its element has %d", wr.Op, wr.SGL[0].Length)
	case op.invalidates && wr.Invalidate.Index() == 0:
		return fail(verb, ErrModifier, "%v of STag %v, whose index is 0", wr.Op, wr.Invalidate)
	}
	if op.local != nil {
		if lacks := wr.localLacks(); lacks != "" {
			return fail(verb, ErrModifier, "%v takes %s", wr.Op, lacks)
		}
	}
	if q.cfg.Strict {
		return q.strictSend(wr)
	}
	return nil
}

// noOp says what is wrong with an Op that cannot be posted.
func noOp(op Op) string {
	if op == 0 {
		return "SendWR.Op is not set"
	}
	return fmt.Sprintf("%d (%v) cannot be posted to the send queue", op, op)
}

// maxMessage is the longest message, in octets (RFC 5041 §5.2).
const maxMessage = math.MaxUint32
