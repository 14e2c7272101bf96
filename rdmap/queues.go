package rdmap

import (
	"sync"
	"sync/atomic"
)

// A request is a Read or atomic that the peer asked for and that has not been
// answered: an entry of the inbound RDMA Read Request Queue.
type request struct {
	atomic bool
	read   ReadRequest
	op     AtomicRequest
	sent   uint32   // octets of the Read Response already cut into segments
	header [18]byte // DDP header of the request, for a Terminate message
	length int      // of its segment, in octets
}

// A requestQueue holds the peer's requests in the order of arrival, which is
// the order of the answers (RFC 5040 §5.2.2, RFC 7306 §5.4). The receiving
// goroutine fills it, the owner of the outgoing half empties it.
type requestQueue struct {
	mu   sync.Mutex
	ring []request
	head int
	n    int

	count atomic.Int32 // n, for those who only want to know whether there is anything
}

func (q *requestQueue) init(depth int) { q.ring = make([]request, depth) }

func (q *requestQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n
}

// full reports that the peer has all its requests outstanding.
func (q *requestQueue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n == len(q.ring)
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
	q.mu.Unlock()
}

// A pending is a Read or atomic of ours that waits for its answer.
type pending struct {
	ticket   uint64
	atomic   bool
	rtr      bool   // the Read that opens a peer-to-peer stream: nobody's operation
	id       uint32 // of an atomic: Request Identifier
	sinkSTag uint32
	sinkTO   uint64
	length   uint32
}

// A responseQueue holds our requests in the order sent. The owner of the
// outgoing half fills it, the receiving goroutine empties it.
type responseQueue struct {
	mu   sync.Mutex
	ring []pending
	head int
	n    int
}

func (q *responseQueue) init(depth int) { q.ring = make([]pending, depth) }

func (q *responseQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n
}

func (q *responseQueue) push(p *pending) {
	q.mu.Lock()
	q.ring[(q.head+q.n)%len(q.ring)] = *p
	q.n++
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

func (q *responseQueue) pop() {
	q.mu.Lock()
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	q.mu.Unlock()
}
