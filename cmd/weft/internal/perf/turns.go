package perf

// This file is the turns that drivers take, and who waits for one.

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
	over  chan struct{} // closed when there is no place for it any more
}

// errCrowded is told drivers that cannot wait.
var errCrowded = errors.New("too many measurements are waiting: try again later")

// take waits for the turn of s, whose connection then is no opening any more.
func (p *peer) take(ctx context.Context, s *session, o *opening) error {
	p.mu.Lock()
	if !p.taken {
		p.begin(s, o.share)
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

// begin gives the turn to s; needs mu.
func (p *peer) begin(s *session, share origin.Share) {
	p.taken, p.current, p.last = true, s, share
	s.rests.Store(time.Now().UnixNano())
}

// queue has a driver wait, if need be in place of the youngest of the share with
// the most that wait; false says that that would be its own. It needs mu.
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
	p.look()
	return true
}

// mostWaiting returns the youngest of the share with the most, if it has more than
// own would have with one more; otherwise -1.
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

// unqueue takes a driver out that waits no longer. If its turn has come, the next
// one has it.
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
		p.give(w.s)
	default:
	}
}

// give ends s, and then lets the next driver have its turn, one of another share
// best: memory is that of one session at a time.
func (p *peer) give(s *session) {
	p.mu.Lock()
	p.current = nil // nobody can join any more
	p.mu.Unlock()
	s.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken = len(p.waiting) > 0; !p.taken {
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
	p.begin(w.s, w.share)
	close(w.turn)
}

// look sees to it that who has the turn and asks for nothing loses it to those who
// wait; needs mu.
func (p *peer) look() {
	limit := p.cfg.limits.turn
	if p.looking || len(p.waiting) == 0 || limit == 0 {
		return
	}
	p.looking = true
	time.AfterFunc(limit/2, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.looking = false
		if s := p.current; s != nil && len(p.waiting) > 0 {
			if since := s.rests.Load(); since != 0 && time.Now().UnixNano()-since >= int64(limit) {
				s.interrupt()
			}
		}
		p.look()
	})
}
