package main

import (
	"sync"
	"syscall"
	"time"

	"github.com/weft-rdma/weft/verbs"
)

// This file is what an rc device owes its peer before a stream ends. A device acknowledges
// what it has received by itself. Here the peer asks by a Read right behind its last
// message (see acks). A program that has what it wants may end its queue pair, or itself,
// before that Read has arrived.

const (
	// confirming is how long the Read is waited for. It follows its message at once; a
	// peer that wants no completion for its last messages sends none.
	confirming = 200 * time.Millisecond
	// lookAgain is the pause between two looks.
	lookAgain = 100 * time.Microsecond
)

// confirm lets the peer find out that what it has sent has arrived.
func (q *queuePair) confirm() {
	if !q.sends.acks.on {
		return
	}
	end := time.Now().Add(confirming)
	for q.qp.State() == verbs.RTS && q.qp.Unconfirmed() && time.Now().Before(end) {
		time.Sleep(lookAgain)
	}
}

// confirmAll is confirm for all queue pairs, at the end of the process.
func confirmAll() {
	var all sync.WaitGroup
	for _, q := range queuePairs.all() {
		all.Go(q.confirm)
	}
	all.Wait()
}

// A habit is whether a peer asks behind each of its messages. Many signal only some of
// their requests: they are waited for more and more seldom.
type habit struct {
	skip int // waits that are left out after one that was for nothing
	left int // of those

	vain uint64 // the peer's messages when it was last waited for at length, for nothing
}

// The bounds of habit.skip.
const leastSkip, mostSkip = 64, 1 << 16

// asks reports whether the peer is to be waited for.
func (h *habit) asks() bool {
	if h.left > 0 {
		h.left--
		return false
	}
	return true
}

// saw notes whether it has asked.
func (h *habit) saw(asked bool) {
	if asked {
		h.skip = 0
		return
	}
	h.skip = min(max(leastSkip, 16*h.skip), mostSkip)
	h.left = h.skip
}

// often reports whether a peer has asked behind most of its messages, if it does so behind
// the last. Where it has sent none since it was waited for in vain, it does not.
func (h *habit) often(messages, asked uint64) bool {
	return messages != h.vain && 2*(asked+1) > messages
}

// answerTime is how long a request waits for the answer to the peer to go first, and
// longestAnswer if the peer has asked behind most of its messages.
const (
	answerTime    = 2 * time.Millisecond
	longestAnswer = 100 * time.Millisecond
)

// answerFirst lets the peer have the answer to the Read behind its last message before what
// this side sends now, as it would have an acknowledgement. A peer may have a receive for
// this side's message only when its own request has completed, and then a message that
// waits for a receive would hold up the answer that is behind it.
func (q *queuePair) answerFirst() {
	h := &q.sends.peer
	if !q.qp.Unconfirmed() || !h.asks() {
		return
	}
	if q.awaitAnswer(answerTime) {
		h.saw(true)
		return
	}
	s := q.qp.Stats()
	messages := s.Received.Messages + s.PeerWrites.Messages
	switch {
	case !h.often(messages, s.PeerReads.Messages):
		h.saw(false)
	case !q.awaitAnswer(longestAnswer):
		h.vain = messages
	}
}

// yield lets other threads run. The program's thread is locked to its goroutine, so that
// runtime.Gosched would hand over to another thread, and back.
func yield() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

// awaitAnswer waits until the peer has its answer, and reports whether it has.
func (q *queuePair) awaitAnswer(d time.Duration) bool {
	for end := time.Now().Add(d); q.qp.Unconfirmed(); yield() {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
