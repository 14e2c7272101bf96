package verbs

// This file lets the consumer of a completion queue receive in its own goroutine, so that
// nobody has to wake it: Poll looks into the connections, Wait waits in the place of a
// connection's reader (leader and followers, see package mpa).

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

// receive receives what has arrived for one of the connections, each in its turn, and
// reports whether there was anything. Without Spin it does not look.
func (cq *CQ) receive() bool {
	cq.mu.Lock()
	if cq.cfg.Spin <= 0 || len(cq.pollers) == 0 {
		cq.mu.Unlock()
		return false
	}
	cq.turn = (cq.turn + 1) % len(cq.pollers)
	p := cq.pollers[cq.turn]
	cq.mu.Unlock()
	return p.Poll()
}

// spin polls for a while and reports whether there is something.
func (cq *CQ) spin() bool {
	until := time.Now().Add(cq.cfg.Spin)
	for i := 1; ; i++ {
		if cq.any() || cq.receive() && cq.any() {
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

// briefWait is the least that a context has to have left for Poller.Wait to notice its end
// in time.
const briefWait = 4 * time.Millisecond

// brief reports that ctx ends too soon for Poller.Wait.
func brief(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < briefWait
}

// lead waits for octets of the only connection there is, in the place of its reader, and
// receives what has come. It reports whether it could; needs mu, which it lets go of
// meanwhile. Of several connections it would have to wait for one, and have the
// others interrupt that, which costs more than to be woken by all.
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

// A Waiter is a connection whose reader lets a consumer wait in its place, who waits for
// several at a time.
type Waiter interface {
	// Take takes the wait over: the descriptor is readable when octets have come. It
	// reports false if the reader waits itself.
	Take() (fd uintptr, ok bool)
	// Give gives the wait back, and says whether octets have come. The consumer does not
	// keep it for longer than 64 ms.
	Give(found bool)
	// Poll receives them.
	Poll() bool
}

// Waiters calls f with the connections of the queue pairs attached that may be waited for
// so. It is for consumers of a Sink, who wait by themselves. Whoever finds that none can
// be waited for sleeps until the Sink is called. f must not call a verb.
func (cq *CQ) Waiters(f func(Waiter)) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	for _, p := range cq.pollers {
		if w, ok := p.(Waiter); ok {
			f(w)
		}
	}
}

// Leave tells that a consumer of a Sink, who has polled, is about to do something else:
// what arrives is received without it from now on. Otherwise that begins some ms after
// the last Poll.
func (cq *CQ) Leave() {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	cq.leaveToReaders()
}

// leaveToReaders leaves what arrives to the readers, as somebody is about to sleep; needs mu.
func (cq *CQ) leaveToReaders() {
	if cq.cfg.Spin <= 0 && len(cq.pollers) != 1 {
		return // nobody has looked into any
	}
	for _, p := range cq.pollers {
		p.Leave()
	}
}
