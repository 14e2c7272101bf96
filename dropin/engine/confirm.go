package main

import (
	"runtime"
	"sync"
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
	h.skip = min(max(leastSkip, 2*h.skip), mostSkip)
	h.left = h.skip
}

// answerTime is how long a request waits for the answer to the peer to go first.
const answerTime = 2 * time.Millisecond

// answerFirst lets the peer have the answer to the Read behind its last message before what
// this side sends now, as it would have an acknowledgement. A peer may have a receive for
// this side's message only when its own has completed.
func (q *queuePair) answerFirst() {
	h := &q.sends.peer
	if !q.qp.Unconfirmed() || !h.asks() {
		return
	}
	end := time.Now().Add(answerTime)
	for q.qp.Unconfirmed() && time.Now().Before(end) {
		runtime.Gosched()
	}
	h.saw(!q.qp.Unconfirmed())
}
