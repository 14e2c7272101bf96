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

// find reports whether there is a completion, for which it may have to look into a connection;
// needs mu, and unlocks it meanwhile.
func (cq *CQ) find() bool {
	if cq.tail != cq.head {
		return true
	}
	p, yield := cq.look()
	if p == nil && !yield {
		return false
	}
	cq.mu.Unlock()
	if yield {
		runtime.Gosched()
	}
	found := p != nil && p.Poll()
	cq.mu.Lock()
	if found {
		cq.empty.received()
	}
	return cq.tail != cq.head
}

// look returns the connection to look into, one after the other, or nil, for a consumer that has
// found no completion, and whether others are to run first; needs mu.
func (cq *CQ) look() (p ddp.Poller, yield bool) {
	due, yield := cq.empty.add(cq.cfg.Spin > 0)
	if due && len(cq.pollers) > 0 {
		cq.turn = (cq.turn + 1) % len(cq.pollers)
		p = cq.pollers[cq.turn]
	}
	return p, yield
}

// spin polls for CQConfig.Spin at most, and reports whether there is a completion.
func (cq *CQ) spin() bool {
	until := time.Now().Add(cq.cfg.Spin)
	for i := 1; ; i++ {
		cq.mu.Lock()
		found := cq.find()
		cq.mu.Unlock()
		if found {
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
	if cq.cfg.Spin <= 0 && len(cq.pollers) != 1 && !cq.empty.visited {
		return // the consumer has looked into none
	}
	cq.empty.visited = false
	for _, p := range cq.pollers {
		p.Leave()
	}
}
