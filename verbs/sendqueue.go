// This file is the send queue: posting, completion in order, and flushing.

package verbs

import (
	"sync"
	"sync/atomic"
)

// A sendWQE is a work request in its slot of the send queue.
type sendWQE struct {
	wr            SendWR // SGL refers to the slot's own elements
	length        uint64 // of the SGL, octets
	status        Status // what it completes with
	needsResponse bool   // is done when the peer has answered
	local         bool   // sends nothing
	done          bool   // is done, if local, or in error
	unacked       bool   // has a completion that was not polled

	memory *memoryWQE // the slot's own, once it has needed one
}

// set copies wr into the slot: field by field, so that nothing of the consumer's escapes to
// the heap. Fields that the operation does not use keep their values.
func (w *sendWQE) set(wr *SendWR) {
	op := wr.Op.row()
	w.wr.ID, w.wr.Op, w.wr.Flags, w.wr.Remote, w.wr.Invalidate = wr.ID, wr.Op, wr.Flags, wr.Remote, wr.Invalidate
	w.wr.SGL, w.length = w.wr.SGL[:0], 0
	if op.list != noList {
		w.wr.SGL = append(w.wr.SGL, wr.SGL...)
		for i := range w.wr.SGL {
			w.length += uint64(w.wr.SGL[i].Length)
		}
	}
	if op.extension {
		w.wr.Immediate, w.wr.Atomic = wr.Immediate, wr.Atomic
	}
	w.status, w.needsResponse, w.local, w.done, w.unacked = Success, op.needsResponse, op.local != nil, false, false
	if w.local {
		w.memory = w.memory.with(wr)
	}
}

// A sendQueue is a ring of work requests, numbered as they are posted. Of the
// numbers, released <= head <= next <= tail:
//
//	released .. head  complete, but their slots are not free yet
//	head .. next      given to RDMAP, not complete
//	next .. tail      not started
//
// Posters own tail, the owner of RDMAP's outgoing half owns next.
type sendQueue struct {
	q    *QP
	sges int
	ring atomic.Pointer[sendRing]

	post  sync.Mutex // one poster at a time; also guards the intake, the depth and full
	in    intake
	depth uint64
	full  uint64 // posts refused because depth was reached
	freed uint64 // released, when post last looked; post
	burst burst
	tail  atomic.Uint64
	next  atomic.Uint64 // written by the sender

	gathered uint64 // requests below it may be on their way out; the sender's
	heard    uint64 // the peer has answered those below it that need a response; the receiver's
	told     uint64 // answered, as the receiver has set it

	empty chan struct{} // closed when head == tail; nil unless drained was called; done

	done     sync.Mutex // guards all below
	head     uint64
	released uint64
	sent     uint64 // requests below it that need no response are done
	answered uint64 // requests below it that need a response are done
	failed   bool   // a request has completed in error: what follows will be flushed
	closed   bool   // flushed: calls of RDMAP are ignored
	counts   sendCounts
	end      *streamEnd // for completions in error
}

// An intake is what happens to a work request that is posted.
type intake uint8

const (
	accept intake = iota
	refuse        // ErrState
	flush         // it is accepted and completes as Flushed (Verbs §6.2.4)
	gone          // ErrQP or ErrRNIC: the queue pair has been destroyed
)

// refusal returns the error for a post to verb's queue of q, or nil.
func (in intake) refusal(q *QP, verb string) error {
	switch in {
	case refuse:
		return fail(verb, ErrState, "the queue pair is closing")
	case gone:
		return q.rnic.gone(verb, ErrQP)
	}
	return nil
}

func (s *sendQueue) init(q *QP, depth, sges int) {
	s.q, s.depth, s.sges = q, uint64(depth), sges
	s.ring.Store(newSendRing(depth, sges))
}

func (s *sendQueue) at(n uint64) *sendWQE { return s.ring.Load().at(n) }

// push puts wr into the slot of request n, the next one; needs post. It is posted when
// tail counts it.
func (s *sendQueue) push(n uint64, wr *SendWR) error {
	const verb = "post to SQ"
	if err := s.in.refusal(s.q, verb); err != nil {
		return err
	}
	if s.filled(n) {
		s.full++
		return fail(verb, ErrFull, "%d are outstanding; poll the completions of those that are done", s.depth)
	}
	if err := s.q.checkSend(wr); err != nil {
		return err
	}
	s.at(n).set(wr)
	return nil
}

// filled reports that there is no slot for request n; needs post. It takes the other lock
// only when all the slots that were free the last time are used up.
func (s *sendQueue) filled(n uint64) bool {
	if n-s.freed < s.depth {
		return false
	}
	s.done.Lock()
	s.freed = s.released
	s.done.Unlock()
	return n-s.freed >= s.depth
}

// finish marks request n as done with status, and generates the completions that are due.
func (s *sendQueue) finish(n uint64, status Status) {
	s.done.Lock()
	defer s.done.Unlock()
	if s.closed {
		return
	}
	w := s.at(n)
	if w.done = true; w.status == Success { // and not condemned
		w.status = status
	}
	s.advance()
}

// sentTo marks the requests below n that need no response as done.
func (s *sendQueue) sentTo(n uint64) {
	s.done.Lock()
	defer s.done.Unlock()
	if s.closed {
		return
	}
	s.sent = n
	s.advance()
}

// hear notes that the peer has answered request n, and all before it. tell completes them,
// once for as many as nobody waits for in between. Both are the receiving goroutine's.
func (s *sendQueue) hear(n uint64) { s.heard = n + 1 }

func (s *sendQueue) tell() {
	if s.heard == s.told {
		return
	}
	s.told = s.heard
	s.done.Lock()
	defer s.done.Unlock()
	if s.closed {
		return
	}
	s.answered = s.heard
	s.advance()
}

// outstanding reports that the request at head is not done; needs done.
func (s *sendQueue) outstanding(w *sendWQE) bool {
	switch {
	case w.done:
		return false
	case w.needsResponse:
		return s.head >= s.answered
	}
	return w.local || s.head >= s.sent
}

// advance completes requests in the order of posting (RFC 5040 §5.5 rule 15);
// needs done. A request in error stops it: what follows will be flushed.
func (s *sendQueue) advance() {
	for next := s.next.Load(); s.head < next && !s.failed; s.head++ {
		w := s.at(s.head)
		if s.outstanding(w) {
			break
		}
		s.complete(w)
		s.failed = w.status != Success
	}
	s.notifyEmpty()
}

// complete generates the completion of the request at head, if it has one;
// needs done.
func (s *sendQueue) complete(w *sendWQE) {
	s.counts.count(w)
	w.unacked = w.wr.Flags&Signaled != 0 || w.status != Success
	if w.unacked { // and nobody can poll what is lost
		var end *streamEnd
		if w.status != Success {
			end = s.end
		}
		w.unacked = s.q.cfg.SendCQ.push(&WC{ID: w.wr.ID, QP: s.q, Op: w.wr.Op, Status: w.status, slot: s.head + 1, end: end})
	}
	if !w.unacked && s.released == s.head {
		s.released++
	}
}

// notifyEmpty closes the channel of drained if the queue is empty; needs done.
func (s *sendQueue) notifyEmpty() {
	if s.empty != nil && s.head == s.tail.Load() {
		close(s.empty)
		s.empty = nil
	}
}

// flushes reports whether the queue pair is in Error or destroyed: what is not complete
// will be flushed.
func (s *sendQueue) flushes() bool {
	s.post.Lock()
	defer s.post.Unlock()
	return s.in == flush || s.in == gone
}

// release frees the slots up to the one whose completion was polled, and those
// of the unsignaled requests behind it that are done (Verbs §8.1.3.1).
func (s *sendQueue) release(to uint64) {
	s.done.Lock()
	defer s.done.Unlock()
	if to <= s.released {
		return
	}
	s.released = to
	for s.released < s.head && !s.at(s.released).unacked {
		s.released++
	}
}

// idle reports that every request has completed.
func (s *sendQueue) idle() bool {
	s.done.Lock()
	defer s.done.Unlock()
	return s.head == s.tail.Load()
}

// shut makes the queue refuse what is posted, if every request has completed.
func (s *sendQueue) shut() bool {
	s.post.Lock()
	defer s.post.Unlock()
	if !s.idle() {
		return false
	}
	s.in = refuse
	return true
}

// drained returns a channel that is closed when every request has completed.
func (s *sendQueue) drained() <-chan struct{} {
	s.done.Lock()
	defer s.done.Unlock()
	if s.empty == nil {
		s.empty = make(chan struct{})
	}
	ch := s.empty
	s.notifyEmpty()
	return ch
}

// flushAll completes everything that is not complete: the first that has failed with its
// own status, the rest as Flushed. Later calls of RDMAP are ignored. Needs post; no
// goroutine may be in RDMAP's outgoing half.
func (s *sendQueue) flushAll() {
	s.done.Lock()
	defer s.done.Unlock()
	s.closed = true
	for tail := s.tail.Load(); s.head < tail; s.head++ {
		w := s.at(s.head)
		if w.status == Success || s.failed {
			w.status = Flushed
		}
		s.failed = s.failed || w.status != Flushed
		s.complete(w)
	}
	s.next.Store(s.head)
	s.notifyEmpty()
}

// reopen readies the queue for another stream.
func (s *sendQueue) reopen() {
	s.done.Lock()
	s.closed, s.failed, s.sent, s.answered, s.gathered = false, false, s.head, s.head, s.head
	s.heard, s.told = s.head, s.head
	s.done.Unlock()
}
