package verbs

import (
	"time"

	"github.com/weft-rdma/weft/ddp"
)

// Establish and Ready are what a connection manager has of a queue pair.
func (q *QP) Establish(llp ddp.LLP, terms Terms) error { return q.establish(llp, terms) }
func (q *QP) Ready() <-chan struct{}                   { return q.ready() }

// Connections is the number of connections for which callers of Poll and Wait receive.
func (cq *CQ) Connections() int {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return len(cq.pollers)
}

// SetSpin has the CQs of a queue pair spin, before the first of theirs is connected.
func (q *QP) SetSpin(d time.Duration) {
	for _, cq := range []*CQ{q.cfg.SendCQ, q.cfg.RecvCQ} {
		cq.mu.Lock()
		if cq.cfg.Spin != d {
			cq.cfg.Spin = d
		}
		cq.mu.Unlock()
	}
}

// Waiting reports whether somebody sleeps in Wait; leads, whether in the place of a
// connection's reader; and mayLead, whether that is possible.
func (cq *CQ) Waiting() (waits, leads, mayLead bool) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return cq.waiters > 0, cq.leading != nil, len(cq.pollers) == 1
}
