package verbs

import "github.com/weft-rdma/weft/ddp"

// Establish and Ready are what a connection manager has of a queue pair.
func (q *QP) Establish(llp ddp.LLP, terms Terms) error { return q.establish(llp, terms) }
func (q *QP) Ready() <-chan struct{}                   { return q.ready() }

// Polled is the number of connections that those who poll the CQ receive for.
func (cq *CQ) Polled() int {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return len(cq.polled)
}

// Waiting reports whether somebody sleeps in Wait; leads, whether in the place of a
// connection's reader; and mayLead, whether that is possible.
func (cq *CQ) Waiting() (waits, leads, mayLead bool) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return cq.waiters > 0, cq.leading != nil, len(cq.led) == 1
}
