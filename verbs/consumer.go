package verbs

// This file is the consumer of a completion queue in the place of those who receive:
// who polls receives what has arrived, and who waits waits for octets, so that nobody
// has to wake it.

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/weft-rdma/weft/ddp"
)

// watch has those who poll and wait receive from p as well; unwatch ends that.
func (cq *CQ) watch(p ddp.Poller) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if p.CanPoll() && !slices.Contains(cq.polled, p) {
		cq.polled = append(cq.polled, p)
	}
	if p.CanLead() && !slices.Contains(cq.led, p) {
		cq.led = append(cq.led, p)
	}
	if len(cq.led) == 2 { // Wait waits for neither any more
		cq.led[0].Leave()
		if cq.leading != nil {
			cq.leading.Rouse()
		}
	}
}

func (cq *CQ) unwatch(p ddp.Poller) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	is := func(q ddp.Poller) bool { return q == p }
	cq.polled = slices.DeleteFunc(cq.polled, is)
	cq.led = slices.DeleteFunc(cq.led, is)
}

// receive receives what has arrived for one of the connections that poll, each in
// its turn, and reports whether there was anything.
func (cq *CQ) receive() bool {
	cq.mu.Lock()
	if len(cq.polled) == 0 {
		cq.mu.Unlock()
		return false
	}
	cq.turn = (cq.turn + 1) % len(cq.polled)
	p := cq.polled[cq.turn]
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

// awaitLate is less than what a context has to have left for Await to notice its end
// in time.
const awaitLate = 4 * time.Millisecond

// brief reports that ctx ends too soon for Await.
func brief(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < awaitLate
}

// lead waits for octets of the only connection there is, in the place of its reader, and
// receives what has come. It reports whether it could; needs mu, which it lets go of
// meanwhile. Of several connections it would have to wait for one, and have the
// others interrupt that, which costs more than to be woken by all.
func (cq *CQ) lead(ctx context.Context) bool {
	if len(cq.led) != 1 {
		return false
	}
	p := cq.led[0]
	if cq.leading != nil {
		if cq.leading == p {
			p.Lead() // in vain, but the reader knows of who sleeps now
		}
		return false
	}
	if !p.Lead() {
		return false
	}
	cq.leading = p
	cq.mu.Unlock()
	p.Await(ctx)
	cq.mu.Lock()
	cq.leading = nil
	cq.mu.Unlock()
	p.Unlead()
	p.Poll()
	cq.mu.Lock()
	return true
}

// leave leaves what arrives to the readers, as somebody is about to sleep; needs mu.
func (cq *CQ) leave() {
	for _, p := range cq.polled {
		p.Leave()
	}
	if len(cq.led) == 1 {
		cq.led[0].Leave()
	}
}
