// This file gives drivers their turns: a peer measures with one at a time, and the
// others wait in a queue that is fair to all origins.
//
//  1. waitTurn gives a driver the turn if it is free. Otherwise it queues the
//     driver, if need be in place of the youngest of the origin with the most.
//  2. endTurn closes the session and wakes the next driver, preferably of another
//     origin.
//  3. While drivers wait, watchIdle interrupts a session that requests nothing.
//
// Locking: peer.mu protects the queue and the turn. Sessions are closed
// without it.

package perf

import (
	"context"
	"errors"
	"time"

	"github.com/weft-rdma/weft/origin"
)

// A waiter is a driver that waits for its turn.
type waiter struct {
	s     *session
	share origin.Share
	turn  chan struct{} // closed when it comes
	over  chan struct{} // closed when another took its place in the queue
}

// errCrowded is the answer to a driver for which the queue has no room.
var errCrowded = errors.New("too many measurements are waiting: try again later")

// waitTurn returns when s has the turn. Its connection is no opening any more then.
func (p *peer) waitTurn(ctx context.Context, s *session, o *opening) error {
	p.mu.Lock()
	if !p.busy {
		p.startTurn(s, o.share)
		p.mu.Unlock()
		o.leave()
		return nil
	}
	w := &waiter{s: s, share: o.share, turn: make(chan struct{}), over: make(chan struct{})}
	queued := p.queue(w)
	p.mu.Unlock()
	if !queued {
		return s.answer(ctx, reply{}, errCrowded)
	}
	o.leave()
	if err := s.answer(ctx, reply{Wait: true}, nil); err != nil {
		p.unqueue(w)
		return err
	}
	select {
	case <-w.turn:
		return nil
	case <-w.over:
		return s.answer(ctx, reply{}, errCrowded)
	case <-ctx.Done():
		p.unqueue(w)
		return context.Cause(ctx)
	}
}

// startTurn gives the turn to s. The caller holds mu.
func (p *peer) startTurn(s *session, share origin.Share) {
	p.busy, p.current, p.last = true, s, share
	s.rests.Store(time.Now().UnixNano())
}

// queue adds a driver to the queue. If that is full, the youngest of the share with the
// most drivers loses its place; queue returns false if that is the driver's own share.
// The caller holds mu.
func (p *peer) queue(w *waiter) bool {
	if len(p.waiting) >= maxWaiting {
		i := mostWaiting(p.waiting, w.share)
		if i < 0 {
			return false
		}
		close(p.waiting[i].over)
		p.waiting = append(p.waiting[:i:i], p.waiting[i+1:]...)
	}
	p.waiting = append(p.waiting, w)
	p.watchIdle()
	return true
}

// mostWaiting returns the index of the youngest driver of the share with the most, if
// that share has more than own would have with one more; otherwise -1.
func mostWaiting(all []*waiter, own origin.Share) int {
	count := map[origin.Share]int{own: 1}
	for _, w := range all {
		count[w.share]++
	}
	most := -1
	for i, w := range all {
		if n := count[w.share]; n > count[own] && (most < 0 || n >= count[all[most].share]) {
			most = i
		}
	}
	return most
}

// unqueue removes a driver that no longer waits. If it has the turn by now, the next
// driver gets it.
func (p *peer) unqueue(w *waiter) {
	p.mu.Lock()
	for i, other := range p.waiting {
		if other == w {
			p.waiting = append(p.waiting[:i:i], p.waiting[i+1:]...)
			p.mu.Unlock()
			return
		}
	}
	p.mu.Unlock()
	select {
	case <-w.turn:
		p.endTurn(w.s)
	default:
	}
}

// endTurn closes s and gives the turn to the next driver, preferably of another share.
// It closes s first, because there is memory for one session at a time.
func (p *peer) endTurn(s *session) {
	p.mu.Lock()
	p.current = nil // nobody can join any more
	p.mu.Unlock()
	s.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy = len(p.waiting) > 0; !p.busy {
		return
	}
	next := 0
	for i, w := range p.waiting {
		if w.share != p.last {
			next = i
			break
		}
	}
	w := p.waiting[next]
	p.waiting = append(p.waiting[:next:next], p.waiting[next+1:]...)
	p.startTurn(w.s, w.share)
	close(w.turn)
}

// watchIdle interrupts the session that has the turn if it requests nothing while
// others wait. The caller holds mu.
func (p *peer) watchIdle() {
	limit := p.cfg.limits.turn
	if p.watching || len(p.waiting) == 0 || limit == 0 {
		return
	}
	p.watching = true
	time.AfterFunc(limit/2, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.watching = false
		if s := p.current; s != nil && len(p.waiting) > 0 {
			if since := s.rests.Load(); since != 0 && time.Now().UnixNano()-since >= int64(limit) {
				s.interrupt()
			}
		}
		p.watchIdle()
	})
}
