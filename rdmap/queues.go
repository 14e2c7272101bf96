// This file is the queues of Reads and atomics: those of the peer, and those of this side.

package rdmap

import (
	"sync"
	"sync/atomic"
)

// A request is a Read or atomic of the peer that has not been answered: an entry of
// the inbound RDMA Read Request Queue.
type request struct {
	opcode Opcode        // of the request
	read   ReadRequest   // of a Read
	op     AtomicRequest // of an atomic
	sent   uint32        // octets of the Read Response already cut into segments
	header [18]byte      // DDP header of the request, for a Terminate message
	length int           // of its segment, in octets
}

// A requestQueue holds the peer's requests in the order of arrival, which is
// the order of the answers (RFC 5040 §5.2.2, RFC 7306 §5.4). The receiving
// goroutine fills it, the owner of the outgoing half empties it.
type requestQueue struct {
	fifo[request]
	cut   uint32       // requests popped that the fifo still counts; of the outgoing half's owner
	limit atomic.Int32 // requests that the peer may have outstanding: IRD

	mu    sync.Mutex
	asked atomic.Bool   // empty is not nil
	empty chan struct{} // closed when there is no request; mu
}

func (q *requestQueue) init(depth int) {
	q.limit.Store(int32(depth))
	q.fifo.init(depth)
}

// resize changes the limit. Requests that are beyond it already stay.
func (q *requestQueue) resize(limit int) { q.limit.Store(int32(limit)) }

// full reports whether the peer has as many requests outstanding as limit, IRD,
// allows.
func (q *requestQueue) full() (limit int, full bool) {
	limit = int(q.limit.Load())
	return limit, q.len() >= limit
}

// drained returns a channel that is closed when no request waits.
func (q *requestQueue) drained() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.empty == nil {
		q.empty = make(chan struct{})
		q.asked.Store(true) // before the look at the queue: see pop
	}
	ch := q.empty
	q.notifyEmpty()
	return ch
}

// notifyEmpty closes the channel of drained if the queue is empty; needs mu.
func (q *requestQueue) notifyEmpty() {
	if q.len() == 0 && q.empty != nil {
		close(q.empty)
		q.empty = nil
		q.asked.Store(false)
	}
}

// front copies the oldest request to r.
func (q *requestQueue) front(r *request) bool {
	n := q.popped.Load() + q.cut
	if n == q.pushed.Load() {
		return false
	}
	*r = *q.at(n)
	return true
}

// ahead is the oldest request but n, nil if there are no more.
func (q *requestQueue) ahead(n int) *request { return q.fifo.ahead(int(q.cut) + n) }

// any reports whether front would find a request.
func (q *requestQueue) any() bool { return q.popped.Load()+q.cut != q.pushed.Load() }

// pop takes the oldest request off the queue: its response has been cut to the last segment.
// free frees its place.
func (q *requestQueue) pop() { q.cut++ }

// free frees the places of the requests that pop has taken off. It is called before the peer
// can have seen their responses: a peer that has its answer may ask again at once.
func (q *requestQueue) free() {
	if q.cut == 0 {
		return
	}
	q.popped.Add(q.cut)
	q.cut = 0
	if q.asked.Load() {
		q.mu.Lock()
		q.notifyEmpty()
		q.mu.Unlock()
	}
}

// A pending is a Read or atomic of this side that waits for its response.
type pending struct {
	ticket   uint64
	opcode   Opcode // of the request
	rtr      bool   // the Read that opens a peer-to-peer stream: no operation of the ULP
	msn      uint32 // of the request
	id       uint32 // of an atomic: Request Identifier
	sinkSTag uint32
	sinkTO   uint64
	length   uint32
}

// A responseQueue holds our requests in the order sent. The owner of the
// outgoing half fills it, the receiving goroutine empties it.
type responseQueue struct {
	fifo[pending]
	limit atomic.Int32  // requests that may be outstanding: ORD
	seen  atomic.Uint32 // requests whose response the ULP has seen: what a fence waits for
}

func (q *responseQueue) init(limit, depth int) {
	q.limit.Store(int32(limit))
	q.fifo.init(depth)
}

// resize changes the limit. Requests that are beyond it already stay.
func (q *responseQueue) resize(limit int) { q.limit.Store(int32(limit)) }

// allReported reports whether the ULP has seen every response.
func (q *responseQueue) allReported() bool { return q.seen.Load() == q.pushed.Load() }

// full reports whether as many requests are outstanding as limit, ORD, allows.
func (q *responseQueue) full() (limit int, full bool) {
	limit = int(q.limit.Load())
	return limit, q.len() >= limit
}

// find copies to p the first request for which f returns true.
func (q *responseQueue) find(p *pending, f func(*pending) bool) bool {
	for n := q.popped.Load(); n != q.pushed.Load(); n++ {
		if *p = *q.at(n); f(p) {
			return true
		}
	}
	return false
}

// front copies the oldest to p.
func (q *responseQueue) front(p *pending) bool {
	oldest := q.fifo.front()
	if oldest == nil {
		return false
	}
	*p = *oldest
	return true
}

// reported notes that the ULP has seen the response to a request popped: it has put the
// value of an atomic in place, or invalidated the sink of a Read.
func (q *responseQueue) reported() { q.seen.Add(1) }
