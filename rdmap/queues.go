package rdmap

import (
	"sync"
	"sync/atomic"
)

// A request is a Read or atomic that the peer asked for and that has not been
// answered: an entry of the inbound RDMA Read Request Queue.
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

	count atomic.Int32 // n, for those who only want to know whether there is anything
}

func (q *requestQueue) init(depth int) { q.limit, q.ring = depth, make([]request, depth) }

// resize changes the limit. Requests that are beyond it already stay.
func (q *requestQueue) resize(limit int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ring, q.head = rerung(q.ring, q.head, q.n, limit)
	q.limit = limit
}

// rerung is a ring whose n elements from head on are moved to one that has room
// for limit, if it has not already.
func rerung[T any](ring []T, head, n, limit int) ([]T, int) {
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

// full reports that the peer has all its requests outstanding, and how many
// those are.
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
	q.settle()
	return ch
}

// settle tells those who wait for the queue to be empty; needs mu.
func (q *requestQueue) settle() {
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
	q.settle()
	q.mu.Unlock()
}

// A pending is a Read or atomic of ours that waits for its answer.
type pending struct {
	ticket   uint64
	opcode   Opcode // of the request
	rtr      bool   // the Read that opens a peer-to-peer stream: nobody's operation
	msn      uint32 // of the request
	id       uint32 // of an atomic: Request Identifier
	sinkSTag uint32
	sinkTO   uint64
	length   uint32
}

// A responseQueue holds our requests in the order sent. The owner of the
// outgoing half fills it, the receiving goroutine empties it.
type responseQueue struct {
	mu    sync.Mutex
	limit atomic.Int32 // requests that may be outstanding: ORD; changes under mu
	ring  []pending
	head  int
	n     int
	open  int // those that the ULP has not been told of: what a fence waits for
}

func (q *responseQueue) init(limit, depth int) {
	q.limit.Store(int32(limit))
	q.ring = make([]pending, depth)
}

// resize changes the limit. Requests that are beyond it already stay.
func (q *responseQueue) resize(limit int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ring, q.head = rerung(q.ring, q.head, q.n, limit)
	q.limit.Store(int32(limit))
}

// settled reports that the ULP has been told of every answer.
func (q *responseQueue) settled() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.open == 0
}

// full reports that all the requests that may be outstanding are, and how many
// those are.
func (q *responseQueue) full() (limit int, full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	limit = int(q.limit.Load())
	return limit, q.n >= limit
}

// find copies to p the request that f is true of, if there is one.
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
	q.open++
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

// pop makes room for another request; settle follows.
func (q *responseQueue) pop() {
	q.mu.Lock()
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	q.mu.Unlock()
}

// settle tells that the ULP has been told of the answer to a request popped:
// what it had to do, to put an atomic's value in place or to invalidate a sink,
// is done.
func (q *responseQueue) settle() {
	q.mu.Lock()
	q.open--
	q.mu.Unlock()
}
