// This file is Modify QP: attributes and states as the consumer changes them
// (Verbs §6.1.3, §6.2, §9.2.5.3).

package verbs

import (
	"context"
	"time"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/memory"
)

// A QPModify says what Modify changes besides the state. What is nil, false or
// empty stays as it is.
type QPModify struct {
	// Of Idle to RTS alone. LLP is required there: the LLP stream, established,
	// which the queue pair owns from then on. Terms are what its start-up has
	// agreed on; without them IRD and ORD are the queue pair's, and the side that
	// may send at once is the LLP's to know. StreamMessage is the last that is
	// sent before iWARP begins (Verbs §6.6.1); the LLP has to have a method
	//
	//	StreamMessage(ctx context.Context, b []byte) error
	//
	// as that of MPA has.
	LLP           ddp.LLP
	Terms         *Terms
	StreamMessage []byte

	// Of Idle to Idle, Idle to RTS and RTS to RTS. The depths are the numbers of
	// work requests outstanding at a time, at least 1. RecvDepth is for queue
	// pairs without an S-RQ, the others are for those with one.
	SendDepth, RecvDepth *int
	IRD, ORD             *int // not together with Terms
	RQLimit              *int
	ArmRQLimit           bool

	// Inbound is what the peer may do from now on: of RemoteRead, RemoteWrite and
	// RemoteAtomic. Answers to Reads of this side are let in with RemoteWrite, and
	// without it where QPConfig.ReadSinkLocalWrite is set. The Verbs fix this at creation;
	// programs for other kinds of RDMA devices set it when they know their peer.
	Inbound *memory.Access

	// MaxPause is how long a message waits for a receive with QPConfig.PauseOnEmptyRQ
	// until the stream ends as without it, with 1/2/02; below 0, as it is at first, is for
	// ever. It is for queue pairs with PauseOnEmptyRQ, and holds for a message that waits
	// already.
	MaxPause *time.Duration

	proven bool // Idle to RTS, with an LLP that was established a moment ago, by start-up
}

// streaming reports whether m has fields that are for Idle to RTS only.
func (m *QPModify) streaming() bool {
	return m.LLP != nil || m.Terms != nil || len(m.StreamMessage) > 0
}

// attributes reports whether m changes any attribute.
func (m *QPModify) attributes() bool {
	return m.SendDepth != nil || m.RecvDepth != nil || m.IRD != nil || m.ORD != nil || m.RQLimit != nil || m.ArmRQLimit || m.Inbound != nil || m.MaxPause != nil
}

// QPModified is what a queue pair has after Modify; RecvDepth is 0 with an S-RQ.
type QPModified struct {
	SendDepth, RecvDepth int
	IRD, ORD             int // with a stream, those of the stream
}

// Modify moves the queue pair to a state, or leaves it in the one that it is in,
// and changes attributes on the way (Modify QP, Verbs §9.2.5.3):
//
//	from   to         attributes
//	Idle   Idle       SendDepth, RecvDepth, IRD, ORD, RQLimit, ArmRQLimit, Inbound, MaxPause
//	Idle   RTS        the same, LLP, Terms, StreamMessage
//	Idle   Error      none; what is posted is flushed
//	RTS    RTS        as Idle to Idle
//	RTS    Closing    none; a graceful close begins, see below
//	RTS    Terminate  none; the peer is sent a Terminate message, 0/0/00, or
//	                  the stream is reset if it has to send first and has not
//	RTS    Error      none; the stream is reset, and what is posted is flushed
//	Error  Idle       none
//
// When it succeeds the state has been entered, though the queue pair may have
// left it by itself; when it fails nothing has changed. The results besides
// success are ErrRNIC, ErrQP, ErrState for any other way, ErrFlushing for Error
// to Idle while the last stream is not over, ErrAttribute for an attribute that
// cannot be changed on that way, ErrModifier for one that is not of that way or
// that queue pair, ErrWRMax, ErrIRD, ErrORD, ErrRQLimit, ErrShrink when more work
// requests are outstanding than SendDepth or RecvDepth, ErrLLP for no LLP stream,
// one that is not established, or one that did not take the StreamMessage, and
// ErrResources.
//
// To Closing belongs a queue pair whose send queue is empty and that owes the
// peer no answer. Any other is reset, and goes to Error with EventBadClose (Verbs
// §6.2.2.2, §6.2.5). [QP.Close] waits first.
//
// Only a StreamMessage takes time, no more than Config.CloseTimeout. The queue
// pair is Idle meanwhile.
func (q *QP) Modify(next State, m QPModify) (QPModified, error) {
	return q.modify(next, &m)
}

func (q *QP) modify(next State, m *QPModify) (QPModified, error) {
	verb := "modify QP to " + next.String()
	if err := q.rnic.alive(verb); err != nil {
		return QPModified{}, err
	}
	q.mu.Lock()
	err := q.checkModify(verb, next, m)
	if err == nil {
		err = q.prepare(verb, next, m)
	}
	if err != nil {
		q.mu.Unlock()
		return QPModified{}, err
	}
	after := q.transit(next, m)
	result := q.allocated()
	q.mu.Unlock()
	if after != nil {
		after()
	}
	return result, nil
}

// modifies are the triggers of Modify, by the state that is asked for.
var modifies = [...]trigger{
	Idle: modifyIdle, RTS: modifyRTS, Closing: modifyClosing, Terminate: modifyTerminate, Error: modifyError,
}

// checkModify makes the checks that need neither the queues nor the LLP; needs mu.
func (q *QP) checkModify(verb string, next State, m *QPModify) error {
	if q.dead {
		return q.rnic.gone(verb, ErrQP)
	}
	ok := int(next) < len(modifies)
	if ok {
		_, ok = q.state.next(modifies[next])
	}
	setUp := q.state == Idle && next == RTS
	switch {
	case !ok, m.proven && !setUp:
		return fail(verb, ErrState, "it is %v", q.state)
	case q.speaking && next != Error:
		return fail(verb, ErrState, "it is on its way to RTS")
	case q.state == Error && q.conn.Load() != nil:
		return fail(verb, ErrFlushing, "")
	case !setUp && m.streaming():
		return fail(verb, ErrModifier, "LLP, Terms and StreamMessage are for Idle to RTS, not for %v to %v", q.state, next)
	case !setUp && next != q.state && m.attributes():
		return fail(verb, ErrAttribute, "none can be changed from %v to %v", q.state, next)
	case m.Terms != nil && (m.IRD != nil || m.ORD != nil):
		return fail(verb, ErrModifier, "IRD and ORD are in Terms already")
	}
	return q.checkAttributes(verb, m)
}

// checkAttributes checks the values of attributes.
func (q *QP) checkAttributes(verb string, m *QPModify) error {
	l := &q.rnic.limits
	for _, depth := range [...]*int{m.SendDepth, m.RecvDepth} {
		switch {
		case depth == nil:
		case *depth < 1:
			return fail(verb, ErrModifier, "a queue of %d work requests, at least 1 is expected", *depth)
		case *depth > l.WRs:
			return q.rnic.limited(verb, ErrWRMax, "WRs", "%d were asked for, the limit is %d", *depth, l.WRs)
		}
	}
	if m.RecvDepth != nil && q.cfg.SRQ != nil {
		return fail(verb, ErrModifier, "RecvDepth is not for a queue pair with an S-RQ")
	}
	if m.MaxPause != nil && !q.cfg.PauseOnEmptyRQ {
		return fail(verb, ErrModifier, "MaxPause is for a queue pair with PauseOnEmptyRQ")
	}
	if m.Inbound != nil && *m.Inbound&^inboundRights != 0 {
		return fail(verb, ErrModifier, "Inbound is %v, of remote rights alone", *m.Inbound)
	}
	ird, ord := m.reads(q.ird, q.ord)
	switch {
	case ird < 0 || ird > l.IRD:
		return q.rnic.limited(verb, ErrIRD, "IRD", "%d was asked for, expected 0 to %d", ird, l.IRD)
	case ord < 0 || ord > l.ORD:
		return q.rnic.limited(verb, ErrORD, "ORD", "%d was asked for, expected 0 to %d", ord, l.ORD)
	}
	if m.RQLimit == nil && !m.ArmRQLimit {
		return nil
	}
	limit, _ := q.rq.queryLimit()
	if m.RQLimit != nil {
		limit = *m.RQLimit
	}
	return q.rq.checkLimit(verb, limit)
}

// reads is what IRD and ORD are to be, if they are ird and ord now.
func (m *QPModify) reads(ird, ord int) (int, int) {
	if m.Terms != nil {
		return m.Terms.IRD, m.Terms.ORD
	}
	if m.IRD != nil {
		ird = *m.IRD
	}
	if m.ORD != nil {
		ord = *m.ORD
	}
	return ird, ord
}

// prepare does all of Modify that can fail and is not checked yet, or none of it;
// needs mu, and unlocks it while the LLP is made ready.
func (q *QP) prepare(verb string, next State, m *QPModify) error {
	ird, ord := m.reads(q.ird, q.ord)
	if m.Terms != nil { // of this stream: what the queue pair has stays its own
		ird, ord = max(ird, q.ird), max(ord, q.ord)
	}
	// What is more is taken first, and what is less given back last, so that it is
	// there still when something fails.
	moreIRD, moreORD := ird-q.ird, ord-q.ord
	if err := q.rnic.reserveReads(verb, max(moreIRD, 0), max(moreORD, 0)); err != nil {
		return err
	}
	var err error
	if q.state == Idle && next == RTS {
		err = q.readyLLP(verb, m)
	}
	if err == nil {
		err = q.change(verb, m)
	}
	if err != nil {
		_ = q.rnic.reserveReads(verb, -max(moreIRD, 0), -max(moreORD, 0)) // giving back never fails
		return err
	}
	_ = q.rnic.reserveReads(verb, min(moreIRD, 0), min(moreORD, 0))
	q.ird, q.ord = ird, ord
	return nil
}

// readyLLP checks that the LLP stream is established, and sends the StreamMessage; needs
// mu, and unlocks it meanwhile.
func (q *QP) readyLLP(verb string, m *QPModify) error {
	s, speaks := m.LLP.(ddp.StreamingLLP)
	switch llp := m.LLP.(type) {
	case nil:
		return fail(verb, ErrLLP, "it is nil")
	case ddp.EstablishedLLP:
		if m.proven {
			break
		}
		if err := llp.Established(); err != nil {
			return fail(verb, ErrLLP, "it is not established: %v", err)
		}
	}
	if len(m.StreamMessage) == 0 {
		return nil
	}
	if !speaks {
		return fail(verb, ErrLLP, "it takes no StreamMessage: it is a %T", m.LLP)
	}
	if err := q.fitsNow(verb, m); err != nil {
		return err // before a message that could not be taken back
	}
	q.speaking = true
	q.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), q.rnic.cfg.CloseTimeout)
	err := s.StreamMessage(ctx, m.StreamMessage)
	cancel()
	q.mu.Lock()
	q.speaking = false
	if err != nil {
		return fail(verb, ErrLLP, "it did not take the StreamMessage: %v", err)
	}
	return q.checkModify(verb, RTS, m) // it may have been destroyed meanwhile
}

// fitsNow checks that the queues can be resized as m says; needs mu.
func (q *QP) fitsNow(verb string, m *QPModify) error {
	q.sq.post.Lock()
	defer q.sq.post.Unlock()
	q.rq.post.Lock()
	defer q.rq.post.Unlock()
	return q.checkFit(verb, m)
}

// checkFit is fitsNow with both queues' post locked.
func (q *QP) checkFit(verb string, m *QPModify) error {
	switch {
	case m.SendDepth != nil && !q.sq.fits(*m.SendDepth):
		return fail(verb, ErrShrink, "more than %d work requests are outstanding on the send queue: poll their completions", *m.SendDepth)
	case m.RecvDepth != nil && !q.rq.fits(*m.RecvDepth):
		return fail(verb, ErrShrink, "more than %d work requests are outstanding on the receive queue: poll their completions", *m.RecvDepth)
	}
	return nil
}

// change changes the attributes of the queues, all of them or none; needs mu.
func (q *QP) change(verb string, m *QPModify) error {
	q.sq.post.Lock()
	q.rq.post.Lock()
	err := q.checkFit(verb, m)
	send, recv := 0, 0 // how many more than before
	if err == nil && m.SendDepth != nil {
		send = *m.SendDepth - int(q.sq.depth)
		q.sq.resize(*m.SendDepth)
	}
	if err == nil && m.RecvDepth != nil {
		recv = *m.RecvDepth - int(q.rq.depth)
		q.rq.resize(*m.RecvDepth)
	}
	q.rq.post.Unlock()
	q.sq.post.Unlock()
	if err != nil {
		return err
	}
	q.cfg.SendCQ.expect(send)
	q.cfg.RecvCQ.expect(recv)
	if m.MaxPause != nil {
		q.rq.maxPause.Store(int64(*m.MaxPause))
		q.rq.wake()
	}
	if m.Inbound != nil {
		q.inbound.set(*m.Inbound, q.cfg.ReadSinkLocalWrite)
	}
	if m.RQLimit != nil || m.ArmRQLimit {
		q.rq.setLimit(m.RQLimit, m.ArmRQLimit)
	}
	return nil
}

// transit enters the state; needs mu. It cannot fail. after, if not nil, has to be called
// without mu.
func (q *QP) transit(next State, m *QPModify) (after func()) {
	c := q.conn.Load()
	switch {
	case q.state == Idle && next == RTS:
		terms := Terms{IRD: q.ird, ORD: q.ord}
		if m.Terms != nil {
			terms = *m.Terms
		}
		c = q.begin(m.LLP, terms)
		return c.stream.Kick // what was posted in Idle, and an RTR
	case next == RTS:
		q.terms.IRD, q.terms.ORD = m.reads(q.terms.IRD, q.terms.ORD)
		if m.IRD != nil { // otherwise there may be a place more, for an RTR
			c.stream.SetIRD(q.terms.IRD)
		}
		c.stream.SetORD(q.terms.ORD)
		return c.stream.Kick // what ORD has held up
	case next == Closing:
		return c.close()
	case next == Terminate:
		c.terminate(modifyTerminate, nil, 0)
		return c.stream.Kick
	case next == Error:
		return q.abort()
	case q.state == Error:
		q.newEnd()
		q.enter(modifyIdle)
	}
	return nil
}
