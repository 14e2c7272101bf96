// This file lets the consumer of a completion queue receive in its own goroutine, so that
// it need not be woken: Poll looks into the connections, Wait waits in the place of a
// connection's reader (leader and followers, see package mpa).

package verbs

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/weft-rdma/weft/ddp"
)

// watch makes callers of Poll and Wait receive from p, too; unwatch ends that.
func (cq *CQ) watch(p ddp.Poller) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if slices.Contains(cq.pollers, p) {
		return
	}
	if cq.pollers = append(cq.pollers, p); len(cq.pollers) != 2 {
		return
	}
	cq.pollers[0].Leave() // Wait waits for neither any more
	if cq.leading != nil {
		cq.leading.Interrupt()
	}
}

func (cq *CQ) unwatch(p ddp.Poller) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.pollers = slices.DeleteFunc(cq.pollers, func(q ddp.Poller) bool { return q == p })
}

// A look into a connection is what a consumer does that has found no completion.
type look struct {
	cq    *CQ
	into  ddp.Poller // nil: into none
	yield bool       // others are to run first
}

// look returns the next look, of one connection after the other, for a consumer with Spin, or one
// that polls without end; needs mu.
func (cq *CQ) look() (l look) {
	due := cq.cfg.Spin > 0
	if !due {
		due, l.yield = cq.vain.missed()
	}
	if due && len(cq.pollers) > 0 {
		cq.turn = (cq.turn + 1) % len(cq.pollers)
		l.cq, l.into = cq, cq.pollers[cq.turn]
	}
	return l
}

// receive receives what has arrived for the connection, and reports whether there was anything.
func (l look) receive() bool {
	if l.yield {
		runtime.Gosched()
	}
	if l.into == nil || !l.into.Poll() {
		return false
	}
	if l.cq.cfg.Spin <= 0 {
		l.cq.mu.Lock()
		l.cq.vain.received()
		l.cq.mu.Unlock()
	}
	return true
}

// spin polls for CQConfig.Spin at most, and reports whether there is a completion.
func (cq *CQ) spin() bool {
	until := time.Now().Add(cq.cfg.Spin)
	for i := 1; ; i++ {
		some, next := cq.any()
		if !some && next.receive() {
			some, _ = cq.any()
		}
		if some {
			return true
		}
		if i%spinYield == 0 {
			if !time.Now().Before(until) {
				return false
			}
			runtime.Gosched()
		}
	}
}

// spinYield is how often spin looks before it lets others run.
const spinYield = 4

// briefWait is the time that a context must have left for Poller.Wait to notice its end
// in time.
const briefWait = 4 * time.Millisecond

// brief reports that ctx ends too soon for Poller.Wait.
func brief(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < briefWait
}

// lead waits for octets of the only connection there is, in the place of its reader, and
// receives them. It reports whether it did; needs mu, and unlocks it meanwhile. With
// several connections it would wait for one, and each other would have to interrupt it:
// that costs more than a wakeup.
func (cq *CQ) lead(ctx context.Context) bool {
	if len(cq.pollers) != 1 || cq.leading != nil {
		return false
	}
	p := cq.pollers[0]
	cq.leading = p
	cq.mu.Unlock()
	led := p.Wait(ctx)
	cq.mu.Lock()
	cq.leading = nil
	if led {
		cq.mu.Unlock()
		p.Poll()
		cq.mu.Lock()
	}
	return led
}

// A Waiter is a connection whose reader lets a consumer wait in its place, together with
// other connections.
type Waiter = ddp.WaitableLLP

// Waiters calls f with each connection of the queue pairs attached that is a Waiter. It is
// for consumers with a Sink, which wait by themselves: one that can take over no wait
// sleeps until the Sink is called. f must not call a verb.
func (cq *CQ) Waiters(f func(Waiter)) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	for _, p := range cq.pollers {
		if w, ok := p.(Waiter); ok {
			f(w)
		}
	}
}

// Leave says that a consumer with a Sink, which has polled, is about to do something else:
// from now on the connections receive without it. Without Leave they begin to some
// milliseconds after the last Poll.
func (cq *CQ) Leave() {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.leaveToReaders()
}

// leaveToReaders has the connections' readers receive, because the consumer is about to
// sleep; needs mu.
func (cq *CQ) leaveToReaders() {
	if cq.cfg.Spin <= 0 && len(cq.pollers) != 1 && !cq.vain.looked {
		return // the consumer has looked into none
	}
	cq.vain.looked = false
	for _, p := range cq.pollers {
		p.Leave()
	}
}
