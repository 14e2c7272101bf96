// This file is how queue pairs take receives from a shared receive queue and
// how those come back (Verbs §6.3.5): in arrival order, one for each message,
// taken when the first segment of the message is there.

package verbs

import (
	"container/list"

	"github.com/weft-rdma/weft/rdmap"
)

// A sharedEnd is what a queue pair's receive queue has to do with a shared one.
type sharedEnd struct {
	// taken is the receive of the message in progress: over an LLP in order
	// there is at most one. It belongs to the receiving goroutine, but while
	// that waits, to SRQ.mu.
	taken *recvWQE

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

// pop takes the first, nil if there is none.
func (l *wqeList) pop() *recvWQE {
	w := l.first
	if w != nil {
		l.first, w.next = w.next, nil
		l.n--
	}
	return w
}

// claim readies a receive for the message that has begun. If there is none, and the
// queue pair pauses for it, it joins the line: when it is woken it has been handed one.
// failed reports that the shared queue has failed.
func (r *recvQueue) claim() (ok, failed bool) {
	s := r.srq
	s.mu.Lock()
	if s.failed && r.taken == nil {
		r.unqueue()
		s.mu.Unlock()
		return false, true
	}
	if r.taken == nil && r.waiting == nil {
		if r.taken = s.posted.pop(); r.taken == nil && r.q.cfg.PauseOnEmptyRQ {
			r.waiting = s.waiting.PushBack(r)
		}
	}
	ok = r.taken != nil
	low := s.runLow()
	over := ok && r.armed && r.limit < 1 // one message is in progress
	r.armed = r.armed && !over
	s.mu.Unlock()
	if low {
		s.tellLow()
	}
	if over {
		r.q.rnic.raise(Event{ID: EventRQLimit, QP: r.q})
	}
	return ok, false
}

// stopWaiting leaves the line. A receive that was handed over meanwhile has not
// been used: it goes back to where it was (Verbs §6.3.6).
func (r *recvQueue) stopWaiting() {
	s := r.srq
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.unqueue()
	if r.taken != nil {
		s.posted.pushFront(r.taken)
		r.taken = nil
		s.serve()
	}
}

// unqueue leaves the line, if it is in it; needs SRQ.mu.
func (r *recvQueue) unqueue() {
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

// completeShared completes the receive of the message in progress. A
// completion that is lost frees its receive: nobody can poll it.
func (r *recvQueue) completeShared(wc *WC) {
	wc.ID, wc.wqe = r.taken.id, r.taken
	r.taken = nil
	if !r.q.cfg.RecvCQ.push(wc) {
		r.srq.release(wc)
	}
}

// serve hands posted receives over to the queue pairs that wait for one, first come
// first served: as posted or waiting is always empty, none can overtake another. It
// reports whether it handed over any; needs mu.
func (s *SRQ) serve() (any bool) {
	for s.posted.n > 0 && s.waiting.Len() > 0 {
		r := s.waiting.Remove(s.waiting.Front()).(*recvQueue)
		r.waiting = nil
		r.taken = s.posted.pop()
		r.wake()
		any = true
	}
	return any
}

// release frees the receive whose completion was polled, or is lost.
func (s *SRQ) release(wc *WC) {
	s.mu.Lock()
	s.spare.pushFront(wc.wqe)
	s.mu.Unlock()
	wc.wqe = nil
}

// runLow reports, once each time that the S-RQ Limit is armed, that fewer receives are
// posted than it says. It is called when a message needs a receive, whether there is
// one or not (Verbs §6.3.8); needs mu.
func (s *SRQ) runLow() bool {
	if !s.armed || s.posted.n >= s.limit {
		return false
	}
	s.armed = false
	return true
}

func (s *SRQ) tellLow() { s.pd.rnic.raise(Event{ID: EventSRQLimit, SRQ: s}) }

// srqFailed ends the stream because its shared receive queue has failed.
func (q *QP) srqFailed() { q.terminate(protocolError, errSRQ, EventSRQError) }

var errSRQ = rdmap.NewError(rdmap.RemoteOperation, rdmap.CodeStream, "the shared receive queue of the stream failed")

// checkRQLimit says whether limit can be the QP RQ Limit of a queue pair that
// uses s; needs mu.
func (s *SRQ) checkRQLimit(verb string, limit int) error {
	if limit < 0 || limit > s.wrs {
		return fail(verb, ErrRQLimit, "%d, expected 0 to %d, the work requests of the S-RQ", limit, s.wrs)
	}
	return nil
}

// checkLimit says whether limit can be the QP RQ Limit.
func (r *recvQueue) checkLimit(verb string, limit int) error {
	if r.srq == nil {
		return fail(verb, ErrModifier, "a QP RQ Limit is for queue pairs with an S-RQ")
	}
	r.srq.mu.Lock()
	defer r.srq.mu.Unlock()
	return r.srq.checkRQLimit(verb, limit)
}

// setLimit sets the QP RQ Limit to a number that was checked, if it is not nil,
// and arms it if arm is set.
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
