package verbs

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// Notify is the kind of completion that a notification is asked for.
type Notify uint8

const (
	notifyNone Notify = iota
	// NotifySolicited: the next completion of a receive whose sender asked for
	// an event, or that is not a success.
	NotifySolicited
	// NotifyNext: the next completion of any kind.
	NotifyNext
)

// A CQConfig describes a completion queue to be created.
type CQConfig struct {
	Entries int // at least so many completions fit; the sum of the depths of the queues attached is always enough

	// Handler is called once for each notification asked for with
	// RequestNotify. Calls come one at a time, from a goroutine of the CQ's,
	// and may use any verb.
	Handler func(*CQ)

	// Spin is how long Wait polls before it goes to sleep: it trades a
	// processor for latency. 0 is not at all.
	Spin time.Duration
}

// A CQ is a completion queue: a ring of completions with a real capacity
// (Verbs §5.3). A completion that finds it full is lost, which is reported, and
// ends the queue pairs attached to this CQ and no others. Methods may be called
// by any goroutine.
type CQ struct {
	rnic *RNIC
	cfg  CQConfig

	mu       sync.Mutex
	ring     []WC // len is a power of two
	entries  int  // usable
	head     uint64
	tail     uint64
	armed    Notify
	waiters  int
	overflow bool // it was full when a completion came, and is still
	dead     bool
	qps      map[*QP]int // queue pairs attached, and by how many of their queues

	wake   chan struct{} // capacity 1: there may be something for a waiter
	notify dispatcher[*CQ]
}

// CreateCQ creates a completion queue (Verbs §9.2.3.1). The results besides
// success are ErrRNIC, ErrCQEntries and ErrResources.
func (r *RNIC) CreateCQ(cfg CQConfig) (*CQ, error) {
	const verb = "create CQ"
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, fail(verb, ErrRNIC, "")
	case cfg.Entries <= 0:
		return nil, fail(verb, ErrModifier, "%d entries, at least 1 is expected", cfg.Entries)
	case cfg.Entries > r.limits.CQEntries:
		return nil, fail(verb, ErrCQEntries, "%d were asked for, the limit is %d (Limits.CQEntries)", cfg.Entries, r.limits.CQEntries)
	case len(r.cqs) >= r.limits.CQs:
		return nil, fail(verb, ErrResources, "the limit is %d completion queues (Limits.CQs)", r.limits.CQs)
	}
	cq := &CQ{
		rnic: r, cfg: cfg, entries: cfg.Entries, ring: make([]WC, ringSize(cfg.Entries)),
		qps: map[*QP]int{}, wake: make(chan struct{}, 1),
	}
	r.cqs[cq] = struct{}{}
	return cq, nil
}

// ringSize is the power of two that n entries fit into.
func ringSize(n int) int {
	size := 1
	for size < n {
		size *= 2
	}
	return size
}

// Entries returns how many completions the CQ holds.
func (cq *CQ) Entries() int { return cq.entries }

// Poll takes up to len(wcs) completions, oldest first, and returns how many: 0
// if there are none. It never waits and allocates nothing (Verbs §9.3.2.1).
func (cq *CQ) Poll(wcs []WC) int {
	cq.mu.Lock()
	n := int(min(cq.tail-cq.head, uint64(len(wcs))))
	mask := uint64(len(cq.ring) - 1)
	for i := range n {
		e := &cq.ring[(cq.head+uint64(i))&mask]
		wcs[i] = *e
		e.QP, e.wqe = nil, nil
	}
	cq.head += uint64(n)
	if n > 0 {
		cq.overflow = false // there is room: another overflow is news
	}
	cq.mu.Unlock()
	for i := range n {
		wcs[i].retire()
	}
	return n
}

// Wait returns when there is something to be polled, or with the context's
// error, or with ErrCQ if the CQ is destroyed. Several goroutines may wait and
// poll: whoever polls first has the completion.
func (cq *CQ) Wait(ctx context.Context) error {
	if cq.cfg.Spin > 0 && cq.spin() {
		return nil
	}
	cq.mu.Lock()
	cq.waiters++
	defer func() {
		// Somebody else may be waiting for the same completions, or for others.
		if cq.waiters--; cq.waiters > 0 && (cq.tail != cq.head || cq.dead) {
			cq.rouse()
		}
		cq.mu.Unlock()
	}()
	for cq.tail == cq.head {
		if cq.dead {
			return fail("wait", ErrCQ, "it has been destroyed")
		}
		cq.mu.Unlock()
		select {
		case <-cq.wake:
			cq.mu.Lock()
		case <-ctx.Done():
			cq.mu.Lock()
			return ctx.Err()
		}
	}
	return nil
}

// spin polls for a while and reports whether there is something.
func (cq *CQ) spin() bool {
	for until := time.Now().Add(cq.cfg.Spin); ; {
		cq.mu.Lock()
		any := cq.tail != cq.head
		cq.mu.Unlock()
		if any {
			return true
		}
		if !time.Now().Before(until) {
			return false
		}
		runtime.Gosched()
	}
}

// rouse wakes a waiter; needs mu.
func (cq *CQ) rouse() {
	select {
	case cq.wake <- struct{}{}:
	default:
	}
}

// RequestNotify asks for one call of the CQ's handler at the next completion of
// the kind asked for (Verbs §9.3.2.2). It lasts until that completion is added;
// NotifyNext wins over NotifySolicited. Completions that are there already do
// not count: poll again after asking.
func (cq *CQ) RequestNotify(kind Notify) error {
	if kind != NotifyNext && kind != NotifySolicited {
		return fail("request completion notification", ErrNotify, "%d", kind)
	}
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.dead {
		return fail("request completion notification", ErrCQ, "it has been destroyed")
	}
	cq.armed = max(cq.armed, kind)
	return nil
}

// push adds a completion. It reports whether it can be polled, and is not lost.
func (cq *CQ) push(wc *WC) bool {
	cq.mu.Lock()
	if cq.dead {
		cq.mu.Unlock()
		return false
	}
	if int(cq.tail-cq.head) >= cq.entries {
		first := !cq.overflow
		cq.overflow = true
		cq.mu.Unlock()
		if first {
			go cq.overflowed()
		}
		return false
	}
	cq.ring[cq.tail&uint64(len(cq.ring)-1)] = *wc
	cq.tail++
	if cq.waiters > 0 {
		cq.rouse()
	}
	fire := cq.armed == NotifyNext || cq.armed == NotifySolicited && (wc.Solicited || wc.Status != Success)
	if fire {
		cq.armed = notifyNone
	}
	cq.mu.Unlock()
	if fire && cq.cfg.Handler != nil {
		cq.notify.tell(cq, cq.cfg.Handler)
	}
	return true
}

// overflowed reports the loss of completions and ends the queue pairs that
// suffered it (Verbs §5.3.5, §10.2).
func (cq *CQ) overflowed() {
	cq.rnic.raise(Event{ID: EventCQOverflow, CQ: cq})
	cq.mu.Lock()
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

// attach and detach count the queues that complete here.
func (cq *CQ) attach(q *QP) error {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.dead {
		return fail("create QP", ErrCQ, "it has been destroyed")
	}
	cq.qps[q]++
	return nil
}

func (cq *CQ) detach(q *QP) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.qps[q]--; cq.qps[q] <= 0 {
		delete(cq.qps, q)
	}
}

// Destroy destroys the CQ. It fails with ErrCQInUse while a queue pair is
// attached (Verbs §9.2.3.4). Completions not polled are gone.
func (cq *CQ) Destroy() error {
	cq.mu.Lock()
	switch n := len(cq.qps); {
	case cq.dead:
		cq.mu.Unlock()
		return fail("destroy CQ", ErrCQ, "it has been destroyed")
	case n > 0:
		cq.mu.Unlock()
		return fail("destroy CQ", ErrCQInUse, "of %d queue pairs: destroy them first", n)
	}
	cq.end()
	cq.mu.Unlock()
	cq.rnic.mu.Lock()
	delete(cq.rnic.cqs, cq)
	cq.rnic.mu.Unlock()
	return nil
}

// end ends the CQ; needs mu. What was not polled cannot be polled any more, and
// keeps no receive of a shared queue.
func (cq *CQ) end() {
	cq.dead = true
	for ; cq.head < cq.tail; cq.head++ {
		if wc := &cq.ring[cq.head&uint64(len(cq.ring)-1)]; wc.wqe != nil {
			wc.retire()
		}
	}
	cq.rouse()
}
