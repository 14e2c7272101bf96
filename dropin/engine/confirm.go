package main

import (
	"sync"
	"time"

	"github.com/weft-rdma/weft/internal/panics"
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
		all.Go(func() {
			defer panics.Recover()
			q.confirm()
		})
	}
	all.Wait()
}
