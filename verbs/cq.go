// This file is the completion queue: how it is created, polled and waited for, and how
// queue pairs add completions (Verbs §5.3, §9.3.2).

package verbs

import (
	"context"
	"sync"
	"time"

	"github.com/weft-rdma/weft/ddp"
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
	// Entries is how many completions fit. The sum of the depths of the queues
	// attached is always enough; less is never refused, but the Logger of the RNIC
	// is warned.
	Entries int

	// Handler identifies the function that is called once for each
	// notification asked for with RequestNotify; see
	// [RNIC.SetCompletionHandler]. 0 is none.
	Handler HandlerID

	// Spin is how long Wait polls before it sleeps. With it, each Poll, and Wait while it
	// polls, also look into the connections of the attached queue pairs; and where
	// nobody does, the connections poll for as long by themselves, to answer the peer's
	// RDMA Reads and atomics sooner. That trades processors for latency. 0 means no
	// polling.
	Spin time.Duration

	// Sink, if not nil, is called with each completion: Poll returns none, and there is
	// nothing to Wait for. Poll still receives what has arrived for connections that poll.
	Sink Sink
}

// A CQ is a completion queue: a ring of completions with a real capacity
// (Verbs §5.3). A completion that finds it full is lost, which is reported, and
// ends the queue pairs attached to this CQ and no others. Methods may be called
// by any goroutine.
type CQ struct {
	rnic *RNIC
	cfg  CQConfig

	resize sync.Mutex // one change of the number of entries, or the destruction, at a time

	mu       sync.Mutex
	ring     []WC // len is a power of two
	entries  int  // usable
	head     uint64
	tail     uint64
	armed    Notify
	waiters  int
	overflow bool  // a completion found it full, and none has been polled since
	ending   bool  // lose is about to end the queue pairs
	failed   error // why it accepts no more completions, see Fail
	counts   CQStats
	dead     bool
	qps      map[*QP]int // queue pairs attached, and by how many of their queues
	expected expected
	sinkWC   WC // what the Sink is called with

	// The receiving halves of the queue pairs attached; see consumer.go.
	pollers []ddp.Poller
	turn    int // of pollers
	empty   emptyPolls
	leading ddp.Poller // the one that a Wait waits on itself

	wake   chan struct{} // capacity 1: wakes a waiter to look for completions
	notify dispatcher[*CQ]
}

// CreateCQ creates a completion queue (Verbs §9.2.3.1). The results besides
// success are ErrRNIC, ErrModifier for a number of entries below 1, ErrCQEntries,
// ErrHandler and ErrResources.
func (r *RNIC) CreateCQ(cfg CQConfig) (*CQ, error) {
	const verb = "create CQ"
	if err := r.checkEntries(verb, cfg.Entries); err != nil {
		return nil, err
	}
	cq := &CQ{
		rnic: r, cfg: cfg, entries: cfg.Entries, ring: make([]WC, ringSize(cfg.Entries)),
		qps: map[*QP]int{}, expected: expected{shared: map[*SRQ]due{}}, wake: make(chan struct{}, 1),
		empty: emptyPolls{limit: firstLimit},
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.life.Load() != lifeOpen:
		return nil, r.alive(verb)
	case cfg.Handler != 0 && r.completionHandler(cfg.Handler) == nil:
		return nil, fail(verb, ErrHandler, "%d is not set: SetCompletionHandler gives identifiers", cfg.Handler)
	case len(r.cqs) >= r.limits.CQs:
		return nil, r.limited(verb, ErrResources, "CQs", "the limit is %d completion queues", r.limits.CQs)
	}
	if err := r.reserveEntries(verb, cfg.Entries); err != nil {
		return nil, err
	}
	r.cqs[cq] = struct{}{}
	return cq, nil
}

// checkEntries checks how many entries a CQ is to have.
func (r *RNIC) checkEntries(verb string, n int) error {
	switch {
	case r.alive(verb) != nil:
		return r.alive(verb)
	case n <= 0:
		return fail(verb, ErrModifier, "%d entries, at least 1 is expected", n)
	case n > r.limits.CQEntries:
		return r.limited(verb, ErrCQEntries, "CQEntries", "%d were asked for, the limit is %d", n, r.limits.CQEntries)
	}
	return nil
}

// reserveEntries counts n more entries of CQs, or fewer if n is negative; needs mu.
func (r *RNIC) reserveEntries(verb string, n int) error {
	if l := r.limits.TotalCQEntries; n > 0 && l > 0 && n > l-r.cqEntries {
		return r.limited(verb, ErrResources, "TotalCQEntries", "%d more entries, of %d in all completion queues together %d are left", n, l, l-r.cqEntries)
	}
	r.cqEntries += n
	return nil
}

// ringSize returns the smallest power of two that n entries fit into.
func ringSize(n int) int {
	size := 1
	for size < n {
		size *= 2
	}
	return size
}

// RNIC returns the RNIC of the CQ.
func (cq *CQ) RNIC() *RNIC { return cq.rnic }

// Entries returns how many completions the CQ holds.
func (cq *CQ) Entries() int {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return cq.entries
}

// check returns the failure of a verb on the CQ, or nil; needs mu.
func (cq *CQ) check(verb string) error {
	switch {
	case cq.dead:
		return cq.rnic.gone(verb, ErrCQ)
	case cq.failed != nil:
		return fail(verb, ErrCQ, "it has failed: %v", cq.failed)
	}
	return cq.rnic.alive(verb)
}

// Poll takes up to len(wcs) completions, oldest first, and returns how many: 0
// if there are none, or the CQ is destroyed. It never waits and allocates nothing
// (Verbs §9.3.2.1).
//
// If there are none, and [CQConfig] Spin is set or the caller polls without end, it receives
// what has arrived for one of the attached queue pairs over TCP on Linux, one connection a
// call, in turns, and lets other goroutines run now and then. What else there is to do may wait
// up to 10 ms for such a loop on one processor, as Go does not look for it sooner: to send on
// when the socket takes more of a long message, and to receive over other connections, with TLS
// say, and for queue pairs with PauseOnEmptyRQ. Wait is the better way there.
func (cq *CQ) Poll(wcs []WC) int {
	cq.mu.Lock()
	n := 0
	if cq.find() {
		n = cq.dequeue(wcs)
	}
	cq.mu.Unlock()
	retire(wcs[:n])
	return n
}

// dequeue takes up to len(wcs) completions; needs mu.
func (cq *CQ) dequeue(wcs []WC) int {
	n := int(min(cq.tail-cq.head, uint64(len(wcs))))
	mask := uint64(len(cq.ring) - 1)
	for i := range n {
		e := &cq.ring[(cq.head+uint64(i))&mask]
		wcs[i] = *e
		e.QP, e.wqe, e.end = nil, nil, nil
	}
	cq.head += uint64(n)
	if cq.head == cq.tail {
		cq.head, cq.tail = 0, 0 // the same entries again: they are in the cache
	}
	if n > 0 {
		cq.overflow = false // there is room: another overflow is reported again
		cq.empty.completed()
	}
	return n
}

// PollOne takes the oldest completion. The results besides success are
// ErrCQEmpty, ErrCQ and ErrRNIC (Verbs §9.3.2.1). It never waits, and allocates
// nothing unless the CQ is destroyed.
func (cq *CQ) PollOne() (WC, error) {
	var wc [1]WC
	if cq.Poll(wc[:]) > 0 {
		return wc[0], nil
	}
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if err := cq.check("poll CQ"); err != nil {
		return WC{}, err
	}
	return WC{}, errPollEmpty
}

var errPollEmpty = fail("poll CQ", ErrCQEmpty, "")

// Wait returns when there is a completion to be polled, or with the context's error,
// or with ErrCQ or ErrRNIC when there will be none. Several
// goroutines may wait and poll: the first to poll gets the completion.
//
// While it waits it may receive in its own goroutine, which saves a wakeup: on Linux, if
// one queue pair is connected, over TCP and without PauseOnEmptyRQ, and no other
// goroutine waits. The end of the context is then noticed within milliseconds.
func (cq *CQ) Wait(ctx context.Context) error {
	if cq.cfg.Spin > 0 && cq.spin() {
		return nil
	}
	leads := !brief(ctx)
	cq.mu.Lock()
	cq.waiters++
	defer func() {
		// Another waiter may be waiting for the same completions, or for others.
		if cq.waiters--; cq.waiters > 0 && (cq.tail != cq.head || cq.dead || cq.failed != nil) {
			cq.wakeWaiter()
		}
		cq.mu.Unlock()
	}()
	for cq.tail == cq.head {
		if err := cq.check("wait"); err != nil {
			return err
		}
		if leads && cq.lead(ctx) {
			if err := ctx.Err(); err != nil && cq.tail == cq.head {
				return err
			}
			continue
		}
		if cq.tail != cq.head || cq.check("wait") != nil {
			continue // lead unlocked mu meanwhile
		}
		cq.leaveToReaders()
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

// wakeWaiter wakes a goroutine in Wait; needs mu.
func (cq *CQ) wakeWaiter() {
	if cq.leading != nil && cq.waiters == 1 {
		cq.leading.Interrupt()
		return
	}
	select {
	case cq.wake <- struct{}{}:
	default:
	}
}

// RequestNotify asks for one call of the CQ's handler at the next completion of
// the kind asked for (Verbs §9.3.2.2). It lasts until that completion is added;
// NotifyNext wins over NotifySolicited. Completions that are there already do
// not count: poll again after asking. The results besides success are ErrRNIC,
// ErrCQ and ErrNotify.
func (cq *CQ) RequestNotify(kind Notify) error {
	const verb = "request completion notification"
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if err := cq.check(verb); err != nil {
		return err
	}
	if kind != NotifyNext && kind != NotifySolicited {
		return fail(verb, ErrNotify, "%d", kind)
	}
	cq.armed = max(cq.armed, kind)
	return nil
}

// push adds a completion. It reports whether it can be polled; otherwise it is lost.
func (cq *CQ) push(wc *WC) bool {
	cq.mu.Lock()
	if cq.dead {
		cq.mu.Unlock()
		return false
	}
	cq.count(wc)
	sinks := cq.sinks()
	if cq.failed != nil || int(cq.tail-cq.head) >= cq.entries || sinks && !cq.sink(wc) {
		cq.lose(wc)
		cq.mu.Unlock()
		return false
	}
	if !sinks {
		cq.ring[cq.tail&uint64(len(cq.ring)-1)] = *wc
		cq.tail++
	}
	fire := cq.pushed(wc.Solicited || wc.Status != Success)
	cq.mu.Unlock()
	if fire {
		cq.fire()
	}
	return !sinks
}

// pushReceives adds the completions of the receives at the front of r, of messages of those
// lengths, and takes them off r. It reports whether all can be polled; otherwise it has done
// nothing, and they are to be pushed one by one.
func (cq *CQ) pushReceives(r *recvQueue, lengths []uint32, solicited bool) bool {
	cq.mu.Lock()
	if cq.dead || cq.failed != nil || cq.sinks() || int(cq.tail-cq.head)+len(lengths) > cq.entries {
		cq.mu.Unlock()
		return false
	}
	head, ring, mask := r.head.Load(), r.ring.Load(), uint64(len(cq.ring)-1)
	for i, n := range lengths {
		slot := head + uint64(i)
		wc := &cq.ring[(cq.tail+uint64(i))&mask]
		*wc = WC{ID: ring.at(slot).id, QP: r.q, Op: OpRecv, Bytes: n, Solicited: solicited, slot: slot + 1}
		cq.count(wc)
	}
	r.head.Store(head + uint64(len(lengths)))
	cq.tail += uint64(len(lengths))
	fire := cq.pushed(solicited)
	cq.mu.Unlock()
	if fire {
		cq.fire()
	}
	return true
}

// pushed wakes a waiter for new completions, and reports whether a notification is due; needs mu.
func (cq *CQ) pushed(solicited bool) (fire bool) {
	cq.counts.MostUsed = max(cq.counts.MostUsed, int(cq.tail-cq.head))
	if cq.waiters > 0 {
		cq.wakeWaiter()
	}
	if cq.armed == NotifyNext || cq.armed == NotifySolicited && solicited {
		cq.armed = notifyNone
		cq.counts.Notifications++
		return true
	}
	return false
}

// fire has the handler called, if there is one.
func (cq *CQ) fire() {
	if cq.rnic.completionHandler(cq.cfg.Handler) != nil {
		cq.notify.dispatch(cq, (*CQ).handle)
	}
}

// handle calls the handler that is set now.
func (cq *CQ) handle() {
	if fn := cq.rnic.completionHandler(cq.cfg.Handler); fn != nil {
		fn(cq)
	}
}

// attach and detach count the work queues that complete into the CQ.
func (cq *CQ) attach(q *QP) error {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if err := cq.check("create QP"); err != nil {
		return err
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
