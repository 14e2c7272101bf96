// This file is the completion queue after its creation: Query, Resize, overflow, Fail
// and Destroy (Verbs §9.2.3, §8.3.3).

package verbs

import (
	"errors"

	"github.com/weft-rdma/weft/internal/panics"
)

// CQAttributes are the attributes of a CQ (Verbs §9.2.3.2).
type CQAttributes struct {
	Entries int       // how many completions it holds
	Handler HandlerID // as it was created with, 0 for none
}

// Query returns the attributes of the CQ. The results besides success are ErrCQ
// and ErrRNIC.
func (cq *CQ) Query() (CQAttributes, error) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if err := cq.check("query CQ"); err != nil {
		return CQAttributes{}, err
	}
	return CQAttributes{Entries: cq.entries, Handler: cq.cfg.Handler}, nil
}

// Resize changes how many completions the CQ holds, and returns the number it
// holds from now on (Modify CQ, Verbs §9.2.3.3). It may be called at any time:
// no completion is lost, and none is delayed for longer than it takes to copy
// those that are there. The results besides success are ErrRNIC, ErrCQ,
// ErrModifier, ErrCQEntries, ErrShrink for less than what is there, and
// ErrResources; then nothing has changed.
func (cq *CQ) Resize(entries int) (int, error) {
	const verb = "modify CQ"
	r := cq.rnic
	defer cq.expect(0) // when no lock is held
	cq.resize.Lock()
	defer cq.resize.Unlock()
	cq.mu.Lock()
	err, was := cq.check(verb), cq.entries
	cq.mu.Unlock()
	if err == nil {
		err = r.checkEntries(verb, entries)
	}
	if err != nil {
		return 0, err
	}
	ring := make([]WC, ringSize(entries)) // before the lock: it may take a while
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.reserveEntries(verb, entries-was); err != nil {
		return 0, err
	}
	if err := cq.replace(verb, ring, entries); err != nil {
		_ = r.reserveEntries(verb, was-entries) // giving back never fails
		return 0, err
	}
	return entries, nil
}

// replace moves the completions into another ring; needs RNIC.mu and resize.
func (cq *CQ) replace(verb string, ring []WC, entries int) error {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if err := cq.check(verb); err != nil {
		return err
	}
	if n := cq.tail - cq.head; n > uint64(entries) {
		return fail(verb, ErrShrink, "%d completions are there, %d entries were asked for: poll first", n, entries)
	}
	for n := cq.head; n != cq.tail; n++ {
		ring[n&uint64(len(ring)-1)] = cq.ring[n&uint64(len(cq.ring)-1)]
	}
	cq.ring, cq.entries = ring, entries
	if cq.tail-cq.head < uint64(entries) {
		cq.overflow = false
	}
	return nil
}

// lose handles a completion that the CQ cannot hold: the queue pairs that
// complete here, and no others, are ended, and an overflow is reported when it
// begins (Verbs §5.3.1, §10.2); needs mu. That a request was flushed is lost
// without consequences: its queue pair has ended already.
func (cq *CQ) lose(wc *WC) {
	cq.counts.Lost++
	first := cq.failed == nil && !cq.overflow
	if first {
		cq.overflow = true
		cq.counts.Overflows++
	}
	if !first && (cq.ending || wc.Status == Flushed) {
		return
	}
	cq.ending = true
	go func() {
		defer panics.Recover()
		if first {
			cq.rnic.raise(Event{ID: EventCQOverflow, CQ: cq})
		}
		cq.endQPs()
	}()
}

// endQPs ends the streams of the queue pairs that complete here.
func (cq *CQ) endQPs() {
	cq.mu.Lock()
	cq.ending = false // what is lost from here on has to end more
	var qps []*QP
	for q := range cq.qps {
		qps = append(qps, q)
	}
	cq.mu.Unlock()
	for _, q := range qps {
		id := EventCQRQ
		if q.cfg.SendCQ == cq {
			id = EventCQSQ
		}
		q.cqFailed(id)
	}
}

// Fail makes the CQ fail as hardware does, for tests of how a program handles it:
// a CQ Operation Error is raised, and the streams of the queue pairs
// that complete here are ended with a Terminate message 0/2/07 and a CQ/SQ or
// CQ/RQ Error each (Verbs figures 24 and 25). Completions that are there can
// still be polled; later ones are lost. All that can be done with the CQ then is
// to destroy it: other verbs fail with ErrCQ. The results besides success are
// ErrRNIC and ErrCQ.
func (cq *CQ) Fail() error {
	cq.mu.Lock()
	if err := cq.check("fail CQ"); err != nil {
		cq.mu.Unlock()
		return err
	}
	cq.failed = errCQFailed
	cq.armed = notifyNone
	cq.wakeWaiter()
	cq.mu.Unlock()
	cq.rnic.raise(Event{ID: EventCQOperation, CQ: cq, Err: errCQFailed})
	cq.endQPs()
	return nil
}

var errCQFailed = errors.New("CQ Operation Error")

// Destroy destroys the CQ. The results besides success are ErrRNIC, ErrCQ, and
// ErrCQInUse while a queue pair is attached (Verbs §9.2.3.4). Completions not
// polled are gone.
func (cq *CQ) Destroy() error {
	const verb = "destroy CQ"
	r := cq.rnic
	cq.resize.Lock()
	defer cq.resize.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.alive(verb); err != nil {
		return err
	}
	cq.mu.Lock()
	defer cq.mu.Unlock()
	switch n := len(cq.qps); {
	case cq.dead:
		return r.gone(verb, ErrCQ)
	case n > 0:
		return fail(verb, ErrCQInUse, "of %d queue pairs: destroy them first", n)
	}
	_ = r.reserveEntries(verb, -cq.entries) // giving back never fails
	delete(r.cqs, cq)
	r.pastCQs.add(&cq.counts)
	cq.end()
	return nil
}

// end ends the CQ; needs mu. What was not polled cannot be polled any more, and
// keeps no receive of a shared queue.
func (cq *CQ) end() {
	cq.dead = true
	for ; cq.head < cq.tail; cq.head++ {
		if at := cq.head & uint64(len(cq.ring)-1); cq.ring[at].wqe != nil {
			retire(cq.ring[at : at+1])
		}
	}
	cq.ring = nil
	cq.wakeWaiter()
}
