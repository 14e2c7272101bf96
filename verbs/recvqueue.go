package verbs

import (
	"sync"
	"sync/atomic"
)

// A recvWQE is a receive in its slot of the receive queue.
type recvWQE struct {
	id     uint64
	sgl    []SGE // the slot's own elements
	length uint64
}

// A recvQueue is a ring of receives: posters own tail, the receiving goroutine
// owns head. A slot is free when its completion has been polled.
type recvQueue struct {
	q        *QP
	depth    uint64
	mask     uint64
	sges     int
	wqes     []recvWQE
	post     sync.Mutex // one poster at a time; also guards the intake
	in       intake
	tail     atomic.Uint64
	head     atomic.Uint64
	released atomic.Uint64

	posted chan struct{} // capacity 1: a receive was posted, if the receiver pauses
}

func (r *recvQueue) init(q *QP, depth, sges int) {
	r.q, r.depth, r.sges = q, uint64(depth), sges
	r.wqes = make([]recvWQE, ringSize(depth))
	r.mask = uint64(len(r.wqes) - 1)
	all := make([]SGE, len(r.wqes)*sges)
	for i := range r.wqes {
		r.wqes[i].sgl = all[i*sges : i*sges : (i+1)*sges]
	}
	r.posted = make(chan struct{}, 1)
}

func (r *recvQueue) at(n uint64) *recvWQE { return &r.wqes[n&r.mask] }

// push posts wr; needs post.
func (r *recvQueue) push(wr *RecvWR) error {
	const verb = "post to RQ"
	if err := r.in.refusal(verb); err != nil {
		return err
	}
	tail := r.tail.Load()
	switch {
	case tail-r.released.Load() >= r.depth:
		return fail(verb, ErrFull, "%d are outstanding; poll the completions of those that are done", r.depth)
	case len(wr.SGL) > r.sges:
		return fail(verb, ErrSGLLength, "%d elements, the queue was created for %d (QPConfig.RecvSGEs)", len(wr.SGL), r.sges)
	}
	w := r.at(tail)
	w.id, w.length = wr.ID, 0
	w.sgl = append(w.sgl[:0], wr.SGL...)
	for _, e := range w.sgl {
		w.length += uint64(e.Length)
	}
	r.tail.Store(tail + 1)
	return nil
}

// front is the oldest receive.
func (r *recvQueue) front() (*recvWQE, bool) {
	head := r.head.Load()
	if head == r.tail.Load() {
		return nil, false
	}
	return r.at(head), true
}

// complete completes the oldest receive as wc says.
func (r *recvQueue) complete(wc *WC) {
	head := r.head.Load()
	wc.ID, wc.QP, wc.slot, wc.receive = r.at(head).id, r.q, head+1, true
	r.head.Store(head + 1)
	r.q.cfg.RecvCQ.push(wc)
}

// release frees the slots up to the one whose completion was polled.
func (r *recvQueue) release(to uint64) {
	for {
		was := r.released.Load()
		if to <= was || r.released.CompareAndSwap(was, to) {
			return
		}
	}
}

// flushAll completes every receive as Flushed. Needs post, and no goroutine
// that receives.
func (r *recvQueue) flushAll() {
	for r.head.Load() != r.tail.Load() {
		r.complete(&WC{Op: OpRecv, Status: Flushed})
	}
}
