// This file is consumers: goroutines that each work on several connections, the queue pairs
// of which have one completion queue.

package perf

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/weft-rdma/weft/verbs"
)

// A consumer works on its endpoints in one goroutine. What an endpoint does in a run is
// written as if it were alone; where it would wait, the consumer goes on with another one.
type consumer struct {
	cq        *verbs.CQ
	endpoints []*endpoint
	of        map[uint32]*endpoint // by the number of the queue pair
	wcs       [64]verbs.WC
	ready     []*endpoint // which completions have come for
}

// consumers share the endpoints of a session with one setting of the CRC: endpoint i is that
// of consumer i modulo their number. Without any, each endpoint has a completion queue and a
// goroutine of its own.
type consumers []*consumer

// newConsumers makes n consumers for so many connections.
func newConsumers(r *verbs.RNIC, n, connections, depth int, tune Tuning) (cs consumers, err error) {
	sends, recvs := entriesFor(depth)
	for i := range n {
		share := (connections - i + n - 1) / n
		c := &consumer{of: make(map[uint32]*endpoint)}
		if c.cq, err = r.CreateCQ(verbs.CQConfig{Entries: (sends + recvs) * share, Spin: tune.Spin}); err != nil {
			return nil, errors.Join(err, cs.close())
		}
		cs = append(cs, c)
	}
	return cs, nil
}

// next is the consumer of endpoint i; nil if it has none.
func (cs consumers) next(i int) *consumer {
	if len(cs) == 0 {
		return nil
	}
	return cs[i%len(cs)]
}

// close releases the completion queues, when their endpoints are closed.
func (cs consumers) close() error {
	var errs []error
	for _, c := range cs {
		errs = append(errs, c.cq.Destroy())
	}
	return errors.Join(errs...)
}

// together runs part for each of n connections at the same time: each in a goroutine of its
// own, or in that of its consumer.
func (cs consumers) together(ctx context.Context, n int, part func(ctx context.Context, i int) error) error {
	if len(cs) == 0 {
		return together(ctx, "connection", n, part)
	}
	return together(ctx, "consumer", len(cs), func(ctx context.Context, k int) error {
		return cs[k].work(ctx, func(i int) error {
			if err := part(ctx, i*len(cs)+k); err != nil {
				return fmt.Errorf("connection %d of %d: %w", i*len(cs)+k+1, n, err)
			}
			return nil
		})
	})
}

// errStopped is the error of an endpoint's part when that of another one has failed.
var errStopped = errors.New("the part of another connection has failed")

// work runs part for each endpoint of the consumer, by turns.
func (c *consumer) work(ctx context.Context, part func(i int) error) (err error) {
	for i, e := range c.endpoints {
		resume, stop := iter.Pull(func(yield func(struct{}) bool) {
			e.pause = func() bool { return yield(struct{}{}) }
			if failure := part(i); err == nil {
				err = failure
			}
			e.pause = nil
		})
		defer stop()
		e.resume = func() (over bool) {
			_, more := resume()
			return !more
		}
	}
	left := 0
	for _, e := range c.endpoints {
		if !e.resume() {
			left++
		}
	}
	for err == nil && left > 0 {
		if err := c.collect(ctx); err != nil {
			return err
		}
		for _, e := range c.ready {
			if len(e.arrived) > 0 && e.resume() {
				left--
			}
		}
		c.ready = c.ready[:0]
	}
	return err
}

// completions returns what has come for an endpoint, and waits if there is nothing.
func (c *consumer) completions(ctx context.Context, e *endpoint) ([]verbs.WC, error) {
	e.waits = true
	defer func() { e.waits = false }()
	for len(e.arrived) == 0 {
		switch {
		case e.pause == nil: // it is its turn alone
			if err := c.collect(ctx); err != nil {
				return nil, err
			}
		case !e.pause():
			return nil, errStopped
		}
	}
	e.arrived, e.taken = e.taken[:0], e.arrived
	return e.taken, nil
}

// collect waits for completions and gives each to its endpoint.
func (c *consumer) collect(ctx context.Context) error {
	n := c.cq.Poll(c.wcs[:])
	for n == 0 {
		over := c.over()
		if n = c.cq.Poll(c.wcs[:]); n > 0 {
			break
		}
		if over != nil {
			return over.why(verbs.Flushed)
		}
		if err := c.cq.Wait(ctx); err != nil {
			return err
		}
	}
	for i := range c.wcs[:n] {
		e := c.of[c.wcs[i].QPNum]
		if len(e.arrived) == 0 {
			c.ready = append(c.ready, e)
		}
		e.arrived = append(e.arrived, c.wcs[i])
	}
	return nil
}

// over returns an endpoint that waits for completions that do not come any more.
func (c *consumer) over() *endpoint {
	for _, e := range c.endpoints {
		if e.waits && e.ended() {
			return e
		}
	}
	return nil
}
