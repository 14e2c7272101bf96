// This file posts an endpoint's work requests: never more than the queue pair
// takes, and RDMA Reads no more than the peer serves.

package rpcrdma

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/verbs"
)

// A work is a list of work requests that are posted in order and completed
// together. It must not be changed between post and done.
type work struct {
	wrs []verbs.SendWR // ID and Signaled are set by post

	// done is called once, when no work request uses its memory any more: with
	// nil if all have succeeded, otherwise with an error, when the connection has
	// ended. It runs in the endpoint's goroutine and must not block.
	done func(w *work, err error)

	// status is what the first work request that failed completed with, if it did.
	status verbs.Status

	lane   *lane
	posted int // of wrs
	out    int // of those, not completed
	index  int // in sendQueue.works

	allowed time.Duration // what it adds to lane.allowed
	due     time.Duration // when it has to be over, since sendQueue.began
}

// A peer that makes a little progress now and then could make this side keep a
// work for days. So each work has a deadline: the stall of the connection, and
// this for each work request and its octets, and for those before it. Even slow
// networks are faster.
const (
	requestTime = time.Second
	leastRate   = 64 << 10 // octets a second
)

// allowance is how long the work requests of w may take.
func (w *work) allowance() time.Duration {
	octets := uint64(0)
	for i := range w.wrs {
		for _, s := range w.wrs[i].SGL {
			octets += uint64(s.Length)
		}
	}
	return time.Duration(len(w.wrs))*requestTime + time.Duration(octets)*(time.Second/leastRate)
}

// Work request IDs: receives have the highest bit and their index. Others have
// the index of their work and, if they are signaled, how many work requests end
// with them: bits 0 to 31, and 32 to 62.
const (
	receiveID  = 1 << 63
	countShift = 32
	countMask  = 1<<31 - 1
)

// A sendQueue hands works to the send queue of a queue pair. There are two
// lanes, each first in, first out: RDMA Reads are limited to those that the peer
// serves at a time, and do not hold up Writes and Sends.
//
// While goroutines that may send have been made runnable and have not begun, Writes and
// Sends are gathered, so that those of several goroutines are posted together.
//
// Methods may be called by any goroutine.
type sendQueue struct {
	qp    *verbs.QP
	stall time.Duration // without progress, that ends the connection
	began time.Time

	// posting is held for reading while work requests are posted, and for
	// writing to end that: nothing is posted afterwards.
	posting sync.RWMutex
	dead    error // why nothing is posted any more

	mu          sync.Mutex // for all below
	sends       lane       // Writes and Sends
	reads       lane       // RDMA Reads
	works       []*work    // by index, nil: free
	free        []int      // indices of works that are nil
	completions uint64     // completions so far, to see whether there is progress

	lastProgress time.Duration // when the last was, or something was awaited again, since began

	gather []verbs.SendWR // what is gathered
	spare  []verbs.SendWR // empty: the memory for the next

	// How many goroutines were made runnable, and how many of those have begun.
	expected, begun atomic.Uint64

	// target is the value of begun at which what is gathered is posted; 0: nothing is.
	// It is expected as it was when the first was gathered: goroutines that are made
	// runnable later delay nothing. It is written under mu.
	target atomic.Uint64
}

// mostGathered is how many work requests are gathered at most: the peer should have work
// meanwhile.
const mostGathered = 8

// expect notes that a goroutine that may send is made runnable. It must call begins as
// soon as it runs, or what is gathered is held back.
func (q *sendQueue) expect() { q.expected.Add(1) }

// begins notes that an expected goroutine runs. It may block before it sends, so that
// nothing waits for it any more.
func (q *sendQueue) begins() {
	n := q.begun.Add(1)
	if target := q.target.Load(); target == 0 || n < target {
		return
	}
	q.posting.RLock()
	defer q.posting.RUnlock()
	q.mu.Lock()
	q.handGathered()
}

// gathers gathers a batch, or posts it with what is gathered. It reports false if the
// batch is to be posted alone. It is called with mu locked, and unlocks it if it
// reports true.
func (q *sendQueue) gathers(batch []verbs.SendWR) bool {
	if len(q.gather) == 0 {
		expected := q.expected.Load()
		if q.begun.Load() >= expected {
			return false
		}
		q.target.Store(expected)
	}
	q.gather = append(q.gather, batch...)
	if len(q.gather) < mostGathered && q.begun.Load() < q.target.Load() {
		q.mu.Unlock()
		return true
	}
	q.handGathered()
	return true
}

// handGathered posts what is gathered. It is called with posting held for reading and mu
// locked, and unlocks mu.
func (q *sendQueue) handGathered() {
	batch := q.gather
	q.gather, q.spare = q.spare, nil
	q.target.Store(0)
	q.mu.Unlock()
	if len(batch) > 0 && q.dead == nil {
		q.hand(batch)
	}
	clear(batch)
	q.mu.Lock()
	q.spare = batch[:0]
	q.mu.Unlock()
}

// A lane is a share of the send queue.
type lane struct {
	room       int  // work requests that can be posted
	most       int  // of them when none is
	signalEach bool // every work request is signaled, so that room is given back soonest
	waiting    []*work
	pumping    bool // a goroutine posts what is waiting

	allowed time.Duration // of all works that are not over
}

// init gives the lanes their shares, which together are the queue pair's depth.
func (q *sendQueue) init(qp *verbs.QP, sends, reads int, stall time.Duration) {
	q.qp, q.stall, q.began = qp, stall, time.Now()
	q.sends = lane{room: sends, most: sends}
	q.reads = lane{room: reads, most: reads, signalEach: true}
}

// limitReads sets how many RDMA Reads are posted at a time, up to the limit given to init.
func (q *sendQueue) limitReads(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reads.room += n - q.reads.most
	q.reads.most = n
}

// send posts Writes and Sends, and fetch RDMA Reads: now, or when there is room.
// The requests of one work go out in their order, with those of others between
// them perhaps. With an error, which says why the connection has ended, nothing
// is posted and done is not called.
func (q *sendQueue) send(w *work) error  { return q.post(&q.sends, w) }
func (q *sendQueue) fetch(w *work) error { return q.post(&q.reads, w) }

func (q *sendQueue) post(l *lane, w *work) error {
	w.lane, w.posted, w.out, w.status, w.allowed = l, 0, 0, verbs.Success, w.allowance()
	q.posting.RLock()
	defer q.posting.RUnlock()
	if q.dead != nil {
		return q.dead
	}
	q.mu.Lock()
	l.allowed += w.allowed
	now := time.Since(q.began)
	w.due = now + q.stall + l.allowed
	if len(q.works) == len(q.free) {
		q.lastProgress = now
	}
	if n := len(q.free); n > 0 {
		w.index = q.free[n-1]
		q.free = q.free[:n-1]
		q.works[w.index] = w
	} else {
		w.index = len(q.works)
		q.works = append(q.works, w)
	}
	if len(l.waiting) == 0 && len(w.wrs) <= l.room {
		batch := l.nextBatch(w)
		if l == &q.sends && q.gathers(batch) {
			return nil
		}
		q.mu.Unlock()
		q.hand(batch)
	} else {
		l.waiting = append(l.waiting, w)
		q.pump(l)
	}
	return nil
}

// nextBatch returns as many work requests of w as there is room for.
func (l *lane) nextBatch(w *work) []verbs.SendWR {
	n := min(l.room, len(w.wrs)-w.posted)
	batch := w.wrs[w.posted:][:n]
	for i := range batch {
		wr := &batch[i]
		wr.ID, wr.Flags = uint64(w.index), wr.Flags&^verbs.Signaled
		if l.signalEach {
			wr.ID, wr.Flags = wr.ID|1<<countShift, wr.Flags|verbs.Signaled
		}
	}
	if last := &batch[n-1]; !l.signalEach {
		last.ID, last.Flags = last.ID|uint64(n)<<countShift, last.Flags|verbs.Signaled
	}
	l.room -= n
	w.posted += n
	w.out += n
	return batch
}

// pump posts what is waiting, as far as there is room. One goroutine does so at
// a time, which keeps the requests of a work in their order. It is called with
// mu locked, and unlocks it.
func (q *sendQueue) pump(l *lane) {
	for !l.pumping && len(l.waiting) > 0 && q.dead == nil {
		w := l.waiting[0]
		// A long work goes in few batches rather than request by request.
		if l.room < min(len(w.wrs)-w.posted, (l.most+3)/4) || l.room < 1 {
			break
		}
		batch := l.nextBatch(w)
		if w.posted == len(w.wrs) {
			l.waiting[0] = nil
			l.waiting = l.waiting[1:]
		}
		l.pumping = true
		q.mu.Unlock()
		q.hand(batch)
		q.mu.Lock()
		l.pumping = false
	}
	q.mu.Unlock()
}

// hand hands a batch to the queue pair. When it is not taken the connection
// ends, and the works that belong to it with it.
func (q *sendQueue) hand(batch []verbs.SendWR) {
	if _, err := q.qp.PostSends(batch); err != nil && !errors.Is(err, verbs.ErrState) { // else the stream is being closed
		q.qp.Abort()
	}
}

// completed counts a completion of the send queue. It reports false if that was
// no success: the connection is at its end then.
func (q *sendQueue) completed(wc *verbs.WC) bool {
	q.mu.Lock()
	w := q.works[uint32(wc.ID)]
	q.completions++
	q.lastProgress = time.Since(q.began)
	if wc.Status != verbs.Success {
		if w.status == verbs.Success {
			w.status = wc.Status
		}
		q.mu.Unlock()
		return false
	}
	n := int(wc.ID >> countShift & countMask)
	w.out -= n
	l := w.lane
	l.room += n
	over := w.out == 0 && w.posted == len(w.wrs)
	if over {
		l.allowed -= w.allowed
		q.works[w.index] = nil
		q.free = append(q.free, w.index)
	}
	if len(l.waiting) > 0 {
		q.mu.Unlock()
		q.posting.RLock()
		q.mu.Lock()
		q.pump(l)
		q.posting.RUnlock()
	} else {
		q.mu.Unlock()
	}
	if over {
		w.done(w, nil)
	}
	return true
}

// progress reports how many completions there were, and whether any is awaited.
func (q *sendQueue) progress() (number uint64, awaited bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.completions, len(q.works) > len(q.free)
}

// moved reports how long ago the last completion was, or that nothing was awaited, and
// whether any is.
func (q *sendQueue) moved() (ago time.Duration, awaited bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Since(q.began) - q.lastProgress, len(q.works) > len(q.free)
}

// overdue reports whether a work has exceeded its deadline.
func (q *sendQueue) overdue() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Since(q.began)
	return slices.ContainsFunc(q.works, func(w *work) bool { return w != nil && w.due < now })
}

// stop ends posting: from now on it fails with err.
func (q *sendQueue) stop(err error) {
	q.posting.Lock()
	q.dead = err
	q.posting.Unlock()
}

// flush ends all works with the error of stop, once the queue pair is gone.
func (q *sendQueue) flush() {
	q.mu.Lock()
	works := q.works
	q.works, q.free, q.sends.waiting, q.reads.waiting = nil, nil, nil, nil
	q.gather = nil
	q.mu.Unlock()
	for _, w := range works {
		if w != nil {
			w.done(w, q.dead)
		}
	}
}

// mostReads returns how many RDMA Reads are posted at a time, at most.
func (q *sendQueue) mostReads() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reads.most
}
