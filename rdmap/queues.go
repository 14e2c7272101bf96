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
	mu    sync.Mutex
	limit int // requests that the peer may have outstanding: IRD
	ring  []request
	head  int
	n     int
	empty chan struct{} // closed when n is 0, if somebody asked

	count atomic.Int32 // n, to be read without mu
}

func (q *requestQueue) init(depth int) { q.limit, q.ring = depth, make([]request, depth) }

// resize changes the limit. Requests that are beyond it already stay.
func (q *requestQueue) resize(limit int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ring, q.head = growRing(q.ring, q.head, q.n, limit)
	q.limit = limit
}

// growRing returns a ring with room for limit elements, and the index of the first: ring
// itself, or a copy of its n elements from head on.
func growRing[T any](ring []T, head, n, limit int) ([]T, int) {
	if limit <= len(ring) {
		return ring, head
	}
	bigger := make([]T, limit)
	for i := range n {
		bigger[i] = ring[(head+i)%len(ring)]
	}
	return bigger, 0
}

func (q *requestQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n
}

// full reports whether the peer has as many requests outstanding as limit, IRD,
// allows.
func (q *requestQueue) full() (limit int, full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.limit, q.n >= q.limit
}

// drained returns a channel that is closed when no request waits.
func (q *requestQueue) drained() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.empty == nil {
		q.empty = make(chan struct{})
	}
	ch := q.empty
	q.notifyEmpty()
	return ch
}

// notifyEmpty closes the channel of drained if the queue is empty; needs mu.
func (q *requestQueue) notifyEmpty() {
	if q.n == 0 && q.empty != nil {
		close(q.empty)
		q.empty = nil
	}
}

func (q *requestQueue) push(r *request) {
	q.mu.Lock()
	q.ring[(q.head+q.n)%len(q.ring)] = *r
	q.n++
	q.mu.Unlock()
	q.count.Add(1)
}

// front copies the oldest request to r.
func (q *requestQueue) front(r *request) bool {
	if q.count.Load() == 0 {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == 0 {
		return false
	}
	*r = q.ring[q.head]
	return true
}

// pop frees the oldest request's place. That happens when its response has
// been cut to the last segment, before the peer can have seen it: a peer that
// has its answer may ask again at once.
func (q *requestQueue) pop() {
	q.count.Add(-1)
	q.mu.Lock()
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	q.notifyEmpty()
	q.mu.Unlock()
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
	mu         sync.Mutex
	limit      atomic.Int32 // requests that may be outstanding: ORD; changes under mu
	ring       []pending
	head       int
	n          int
	unreported int // requests whose response the ULP has not seen: what a fence waits for
}

func (q *responseQueue) init(limit, depth int) {
	q.limit.Store(int32(limit))
	q.ring = make([]pending, depth)
}

// resize changes the limit. Requests that are beyond it already stay.
func (q *responseQueue) resize(limit int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ring, q.head = growRing(q.ring, q.head, q.n, limit)
	q.limit.Store(int32(limit))
}

// allReported reports whether the ULP has seen every response.
func (q *responseQueue) allReported() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.unreported == 0
}

// full reports whether as many requests are outstanding as limit, ORD, allows.
func (q *responseQueue) full() (limit int, full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	limit = int(q.limit.Load())
	return limit, q.n >= limit
}

// find copies to p the first request for which f returns true.
func (q *responseQueue) find(p *pending, f func(*pending) bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.n {
		if *p = q.ring[(q.head+i)%len(q.ring)]; f(p) {
			return true
		}
	}
	return false
}

func (q *responseQueue) push(p *pending) {
	q.mu.Lock()
	q.ring[(q.head+q.n)%len(q.ring)] = *p
	q.n++
	q.unreported++
	q.mu.Unlock()
}

// front copies the oldest to p.
func (q *responseQueue) front(p *pending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == 0 {
		return false
	}
	*p = q.ring[q.head]
	return true
}

// pop makes room for another request; reported follows.
func (q *responseQueue) pop() {
	q.mu.Lock()
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	q.mu.Unlock()
}

// reported notes that the ULP has seen the response to a request popped: it has put the
// value of an atomic in place, or invalidated the sink of a Read.
func (q *responseQueue) reported() {
	q.mu.Lock()
	q.unreported--
	q.mu.Unlock()
}
