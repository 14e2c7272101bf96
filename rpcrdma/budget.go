// This file limits the memory of calls and replies: each connection has an account
// in the memory of its server.

package rpcrdma

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
)

// DefaultMemory limits the octets of calls and replies of all connections of a server, if
// [ServerConfig.Memory] is 0.
const DefaultMemory = 1 << 30

// openAccounts opens the accounts of a responder.
func (r *responder) openAccounts() {
	most := int64(orDefault(r.cfg.memory, DefaultCallMemory))
	open := func(m *fairness.Memory) *fairness.Account {
		if m == nil {
			m = fairness.NewMemory(fairness.Unlimited)
		}
		return m.Open(r.from.Share(), most, r)
	}
	r.callMemory, r.replyMemory = open(r.cfg.in), open(r.cfg.out)
}

// closeAccounts closes the accounts when the connection and its handlers have ended.
func (r *responder) closeAccounts() {
	r.callMemory.Close()
	r.replyMemory.Close()
}

// admit gives memory to calls that wait for it, in their order. The lock is held.
func (r *responder) admit() {
	for len(r.awaitingMemory) > 0 && !r.memoryAsked && !r.closed {
		c := r.awaitingMemory[0]
		if !r.callMemory.TryAcquire(c.needs, false) {
			r.memoryAsked = true
			r.callMemory.Request(c.needs, func() { r.memoryGranted(c.needs) })
			return
		}
		r.fetchFirst()
	}
}

// memoryGranted continues with memory that was requested.
func (r *responder) memoryGranted(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memoryAsked = false
	if r.closed || len(r.awaitingMemory) == 0 {
		r.callMemory.Release(n)
		return
	}
	r.fetchFirst()
	r.admit()
}

// fetchFirst fetches the first waiting call, which now has its memory.
func (r *responder) fetchFirst() {
	c := r.awaitingMemory[0]
	r.awaitingMemory[0] = nil
	r.awaitingMemory = r.awaitingMemory[1:]
	c.octets = c.needs
	c.fetch()
}

// secondWait bounds how long a call waits for more memory than it has got already
// for its reply: what it waits for may be waited for by others that have some, too.
const secondWait = time.Second

// lend returns registered memory for a reply when there is some. It waits even if
// the connection has ended: Request.Alloc returns no error.
func (c *handlerCall) lend(n int) (*buffer, error) {
	r, size := c.r, takes(n)
	if !r.replyMemory.TryAcquire(size, false) {
		r.blocked.Add(1)
		c.await(size)
		r.blocked.Add(-1)
	}
	b, err := r.e.pool.get(n)
	if err != nil {
		r.replyMemory.Release(size)
		return nil, err
	}
	c.results = append(c.results, b)
	return b, nil
}

// await takes octets for a reply.
func (c *handlerCall) await(size int) {
	ctx := context.Background()
	if len(c.results) > 0 {
		limited, cancel := context.WithTimeout(ctx, secondWait)
		defer cancel()
		ctx = limited
	}
	if c.r.replyMemory.Acquire(ctx, size, false) != nil {
		c.r.replyMemory.ForceAcquire(size)
	}
}

// Stake is that of a [fairness.Debtor]. The peer has to act next if it is to receive
// something, or to answer a Read.
func (r *responder) Stake() (s fairness.Stake) {
	stats := r.e.conn.Stats()
	idle := r.passed.Idle(stats.OctetsIn + stats.OctetsOut)
	moved, awaited := r.e.queue.moved()
	return fairness.Stake{Theirs: awaited, Idle: min(idle, moved)}
}

// Evict ends the connection at once.
func (r *responder) Evict(why error) (gone bool) {
	r.e.fail(fmt.Errorf("rpcrdma: %w", why))
	r.e.qp.Abort()
	return false
}
