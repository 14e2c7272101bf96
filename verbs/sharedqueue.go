// This file is the way of receives from a shared receive queue to its queue pairs and
// back (Verbs §6.3.5): in arrival order, one for each message, claimed when the first
// segment of the message has arrived.

package verbs

import (
	"container/list"

	"github.com/weft-rdma/weft/rdmap"
)

// A sharedEnd is the part of a queue pair's receive queue for use with a shared one.
type sharedEnd struct {
	// claimed is the receive of the message in progress: over an LLP that keeps order
	// there is at most one. The receiving goroutine owns it; SRQ.mu guards it while
	// that goroutine waits.
	claimed *recvWQE

	waiting *list.Element // in SRQ.waiting, or nil; SRQ.mu
	limit   int           // the QP RQ Limit (Verbs §6.3.8); SRQ.mu
	armed   bool          // EventRQLimit is to be raised for more messages in progress; SRQ.mu
}

// A wqeList is a list of receives.
type wqeList struct {
	first, last *recvWQE
	n           int
}

func (l *wqeList) pushBack(w *recvWQE) {
	if w.next = nil; l.n == 0 {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
	l.n++
}

func (l *wqeList) pushFront(w *recvWQE) {
	if w.next = l.first; l.n == 0 {
		l.last = w
	}
	l.first = w
	l.n++
}

// pop removes the first and returns it, or nil if there is none.
func (l *wqeList) pop() *recvWQE {
	w := l.first
	if w != nil {
		l.first, w.next = w.next, nil
		l.n--
	}
	return w
}

// claim claims a receive for the message that has begun. If there is none, and the queue
// pair pauses for one, it enqueues the queue pair, which has a receive when it is woken.
// failed reports that the shared queue has failed.
func (r *recvQueue) claim() (ok, failed bool) {
	s := r.srq
	s.mu.Lock()
	if s.failed && r.claimed == nil {
		r.dequeue()
		s.mu.Unlock()
		return false, true
	}
	if r.claimed == nil && r.waiting == nil {
		if r.claimed = s.posted.pop(); r.claimed == nil && r.q.cfg.PauseOnEmptyRQ {
			r.waiting = s.waiting.PushBack(r)
		}
	}
	ok = r.claimed != nil
	low := s.reachLimit()
	over := ok && r.armed && r.limit < 1 // one message is in progress
	r.armed = r.armed && !over
	s.mu.Unlock()
	if low {
		s.raiseLimit()
	}
	if over {
		r.q.rnic.raise(Event{ID: EventRQLimit, QP: r.q})
	}
	return ok, false
}

// stopWaiting ends the wait for a receive. One that was claimed meanwhile has not been
// used: it goes back to the front of the shared queue (Verbs §6.3.6).
func (r *recvQueue) stopWaiting() {
	s := r.srq
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.dequeue()
	if r.claimed != nil {
		s.posted.pushFront(r.claimed)
		r.claimed = nil
		s.serve()
	}
}

// dequeue removes r from SRQ.waiting, if it is there; needs SRQ.mu.
func (r *recvQueue) dequeue() {
	if r.waiting != nil {
		r.srq.waiting.Remove(r.waiting)
		r.waiting = nil
	}
}

// wake wakes a receiver that pauses.
func (r *recvQueue) wake() {
	select {
	case r.posted <- struct{}{}:
	default:
	}
}

// completeShared completes the receive of the message in progress. A completion that is
// lost cannot be polled, so its receive is freed at once. One for a Sink frees it first:
// the consumer may see it before the Sink returns, and post at once.
func (r *recvQueue) completeShared(wc *WC) {
	wc.ID, wc.wqe = r.claimed.id, r.claimed
	r.claimed = nil
	if r.q.cfg.RecvCQ.sinks() {
		r.srq.release(wc)
		r.q.cfg.RecvCQ.push(wc)
		return
	}
	if !r.q.cfg.RecvCQ.push(wc) {
		r.srq.release(wc)
	}
}

// serve gives posted receives to the queue pairs that wait for one, first come, first
// served: as posted or waiting is always empty, none can overtake another. It reports
// whether it gave any; needs mu.
func (s *SRQ) serve() (any bool) {
	for s.posted.n > 0 && s.waiting.Len() > 0 {
		r := s.waiting.Remove(s.waiting.Front()).(*recvQueue)
		r.waiting = nil
		r.claimed = s.posted.pop()
		r.wake()
		any = true
	}
	return any
}

// release frees the receive of a completion that was polled or lost.
func (s *SRQ) release(wc *WC) {
	s.mu.Lock()
	s.spare.pushFront(wc.wqe)
	s.mu.Unlock()
	wc.wqe = nil
}

// reachLimit reports whether fewer receives are posted than the S-RQ Limit, and disarms it
// then. It is called when a message needs a receive, whether there is one or not (Verbs
// §6.3.8); needs mu.
func (s *SRQ) reachLimit() bool {
	if !s.armed || s.posted.n >= s.limit {
		return false
	}
	s.armed = false
	return true
}

// raiseLimit raises the event of a limit that was reached.
func (s *SRQ) raiseLimit() { s.pd.rnic.raise(Event{ID: EventSRQLimit, SRQ: s}) }

// srqFailed ends the stream because its shared receive queue has failed.
func (q *QP) srqFailed() { q.terminate(protocolError, errSRQ, EventSRQError) }

var errSRQ = rdmap.NewError(rdmap.RemoteOperation, rdmap.CodeStream, "the shared receive queue of the stream failed")

// checkRQLimit checks that limit can be the QP RQ Limit of a queue pair that
// uses s; needs mu.
func (s *SRQ) checkRQLimit(verb string, limit int) error {
	if limit < 0 || limit > s.wrs {
		return fail(verb, ErrRQLimit, "%d, expected 0 to %d, the work requests of the S-RQ", limit, s.wrs)
	}
	return nil
}

// checkLimit checks that limit can be the QP RQ Limit.
func (r *recvQueue) checkLimit(verb string, limit int) error {
	if r.srq == nil {
		return fail(verb, ErrModifier, "a QP RQ Limit is for queue pairs with an S-RQ")
	}
	r.srq.mu.Lock()
	defer r.srq.mu.Unlock()
	return r.srq.checkRQLimit(verb, limit)
}

// setLimit sets the QP RQ Limit, if limit is not nil, and arms it if arm is set. The
// limit has been checked.
func (r *recvQueue) setLimit(limit *int, arm bool) {
	r.srq.mu.Lock()
	defer r.srq.mu.Unlock()
	if limit != nil {
		r.limit = *limit
	}
	r.armed = r.armed || arm
}

// queryLimit returns the QP RQ Limit and whether it is armed.
func (r *recvQueue) queryLimit() (limit int, armed bool) {
	if r.srq == nil {
		return 0, false
	}
	r.srq.mu.Lock()
	defer r.srq.mu.Unlock()
	return r.limit, r.armed
}
