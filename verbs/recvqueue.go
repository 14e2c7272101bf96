// This file is a queue pair's receive queue: one of its own, or its end of a
// shared one (see sharedqueue.go).

package verbs

import (
	"sync"
	"sync/atomic"
	"time"
)

// A recvWQE is a receive in its slot of a queue.
type recvWQE struct {
	id     uint64
	sgl    []SGE // the slot's own elements
	length uint64
	next   *recvWQE // in a list of a shared queue
}

// set copies wr into the slot.
func (w *recvWQE) set(wr *RecvWR) {
	w.id, w.length = wr.ID, 0
	w.sgl = append(w.sgl[:0], wr.SGL...)
	for i := range w.sgl {
		w.length += uint64(w.sgl[i].Length)
	}
}

// newRecvWQEs makes n slots for lists of up to sges elements.
func newRecvWQEs(n, sges int) []recvWQE {
	wqes := make([]recvWQE, n)
	all := make([]SGE, n*sges)
	for i := range wqes {
		wqes[i].sgl = all[i*sges : i*sges : (i+1)*sges]
	}
	return wqes
}

// A recvQueue is where the receives of one queue pair come from. Without a
// shared queue it is a ring: posters own tail, the receiving goroutine owns
// head. A slot is free when its completion has been polled.
type recvQueue struct {
	q        *QP
	sges     int
	ring     atomic.Pointer[recvRing]
	post     sync.Mutex // one poster at a time; also guards the intake, the depth and full
	in       intake
	full     uint64 // posts refused because depth was reached
	depth    uint64
	tail     atomic.Uint64
	head     atomic.Uint64
	released atomic.Uint64
	counts   recvCounts // the lock of the CQ

	end *streamEnd // for completions in error; changes under post while nothing completes

	posted   chan struct{} // capacity 1: wakes a receiver that waits for a receive
	maxPause atomic.Int64  // how long it waits at most, in nanoseconds; below 0 is for ever

	srq *SRQ // if not nil: in place of the ring
	sharedEnd
}

// A recvRing holds receive n at n modulo its length, a power of two.
type recvRing struct {
	wqes []recvWQE
}

func (r *recvRing) at(n uint64) *recvWQE { return &r.wqes[n&uint64(len(r.wqes)-1)] }

func (r *recvQueue) init(q *QP) {
	r.q, r.srq, r.posted = q, q.cfg.SRQ, make(chan struct{}, 1)
	r.maxPause.Store(-1)
	if r.srq != nil {
		r.limit, r.armed = q.cfg.RQLimit, q.cfg.RQLimit > 0 // Verbs §6.3.8
		return
	}
	r.depth, r.sges = uint64(q.cfg.RecvDepth), q.cfg.RecvSGEs
	r.ring.Store(&recvRing{newRecvWQEs(ringSize(q.cfg.RecvDepth), r.sges)})
}

// push posts wr; needs post.
func (r *recvQueue) push(wr *RecvWR) error {
	const verb = "post to RQ"
	if r.srq != nil && r.in != gone {
		return fail(verb, ErrRQOfSRQ, "")
	}
	if err := r.in.refusal(r.q, verb); err != nil {
		return err
	}
	tail := r.tail.Load()
	switch {
	case tail-r.released.Load() >= r.depth:
		r.full++
		return fail(verb, ErrFull, "%d are outstanding; poll the completions of those that are done", r.depth)
	case len(wr.SGL) > r.sges:
		return fail(verb, ErrSGLLength, "%d elements, the queue was created for %d (QPConfig.RecvSGEs)", len(wr.SGL), r.sges)
	case r.q.cfg.Strict:
		if err := r.q.strictRecv(wr); err != nil {
			return err
		}
	}
	r.ring.Load().at(tail).set(wr)
	r.tail.Store(tail + 1)
	return nil
}

// fits reports whether a queue of depth holds the receives that are outstanding; needs
// post.
func (r *recvQueue) fits(depth int) bool {
	return r.tail.Load()-r.released.Load() <= uint64(depth)
}

// resize sets the number of receives that may be outstanding, which fits; needs post. The
// receiving goroutine may be running: what it still reads in the old ring stays unchanged
// (Verbs §6.1.3).
func (r *recvQueue) resize(depth int) {
	r.depth = uint64(depth)
	old := r.ring.Load()
	if ringSize(depth) == len(old.wqes) {
		return
	}
	ring := &recvRing{newRecvWQEs(ringSize(depth), r.sges)}
	for n, tail := r.head.Load(), r.tail.Load(); n < tail; n++ {
		from, to := old.at(n), ring.at(n)
		to.id, to.length, to.sgl = from.id, from.length, append(to.sgl, from.sgl...)
	}
	r.ring.Store(ring)
}

// count returns how many posted receives no message has begun to use.
func (r *recvQueue) count() int {
	if r.srq == nil {
		return int(r.tail.Load() - r.head.Load())
	}
	r.srq.mu.Lock()
	defer r.srq.mu.Unlock()
	return r.srq.posted.n
}

// ready reports whether there is a receive for the message that has begun; failed
// reports that there will never be one.
func (r *recvQueue) ready() (ok, failed bool) {
	if r.srq != nil {
		return r.claim()
	}
	return r.head.Load() != r.tail.Load(), false
}

// await waits until there may be a receive for the message, which has waited since then.
// late reports that it has waited for maxPause. If both are false the stream has ended, or
// stop is closed.
func (r *recvQueue) await(c *connection, since time.Time, stop <-chan struct{}) (ok, late bool) {
	var limit <-chan time.Time
	if most := r.maxPause.Load(); most >= 0 {
		timer := time.NewTimer(time.Until(since.Add(time.Duration(most))))
		defer timer.Stop()
		limit = timer.C
	}
	select {
	case <-r.posted:
		return !c.hasEnded(), false // both may have happened
	case <-limit:
		return false, true
	case <-c.ended:
	case <-stop:
	}
	return false, false
}

// front is the receive of the message in progress or, without a shared queue,
// of the next one; nil if there is none.
func (r *recvQueue) front() *recvWQE {
	if r.srq != nil {
		return r.claimed
	}
	head := r.head.Load()
	if head == r.tail.Load() {
		return nil
	}
	return r.ring.Load().at(head)
}

// complete completes the front receive as wc says.
func (r *recvQueue) complete(wc *WC) {
	wc.QP = r.q
	if wc.Status != Success {
		wc.end = r.end
	}
	if r.srq != nil {
		r.completeShared(wc)
		return
	}
	head := r.head.Load()
	wc.ID, wc.slot = r.ring.Load().at(head).id, head+1
	r.head.Store(head + 1)
	if r.q.cfg.RecvCQ.sinks() { // see completeShared
		r.released.CompareAndSwap(head, head+1)
	}
	if !r.q.cfg.RecvCQ.push(wc) { // it cannot be polled
		r.released.CompareAndSwap(head, head+1)
	}
}

// another is the receive behind the next i, nil if there is none. With a shared queue there never is.
func (r *recvQueue) another(i int) *recvWQE {
	n := r.head.Load() + uint64(i)
	if n >= r.tail.Load() {
		return nil
	}
	return r.ring.Load().at(n)
}

// completeRun completes the receives in front, of messages of those lengths.
func (r *recvQueue) completeRun(lengths []uint32, solicited bool) {
	if r.q.cfg.RecvCQ.pushReceives(r, lengths, solicited) {
		return
	}
	for _, n := range lengths {
		r.complete(&WC{Op: OpRecv, Bytes: n, Solicited: solicited})
	}
}

// release frees the slots up to that of a completion that was polled.
func (r *recvQueue) release(wc *WC) {
	if r.srq != nil {
		r.srq.release(wc)
		return
	}
	for {
		was := r.released.Load()
		if wc.slot <= was || r.released.CompareAndSwap(was, wc.slot) {
			return
		}
	}
}

// flushAll completes every receive as Flushed; of a shared queue only the one that a
// message has begun to use (Verbs §6.3.6). Needs post; nothing may be receiving.
func (r *recvQueue) flushAll() {
	for r.front() != nil {
		r.complete(&WC{Op: OpRecv, Status: Flushed})
	}
}
