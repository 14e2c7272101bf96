// The peer's calls on a link: how they reach the handler, and how the replies are sent.

package rpctcp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/oncrpc"
)

// A served call is a call of the peer's with all the memory that it has.
type served struct {
	oncrpc.Request
	in      *buffer   // holds Request.Message
	out     []*buffer // given to the handler
	replies *fairness.Account
	lying   *atomic.Int32 // counts it while it waits for memory
	adopted int           // octets counted for a reply that is in none of out
	reject  error         // in place of the handler's answer
}

// servedCalls holds those that are not in use.
var servedCalls = sync.Pool{New: func() any { return new(served) }}

// readCall reads the present message, a call, and has it executed.
// It waits for a place among those being executed, and for memory. Meanwhile the
// link is not read, by which a peer that calls too much is slowed down.
func (l *link) readCall(prefix *[prefixLen]byte) error {
	select {
	case l.slots <- struct{}{}:
	default:
		if err := l.slot(); err != nil {
			return err
		}
	}
	in, err := l.read(prefix, l.calls)
	if err != nil {
		<-l.slots
		return err
	}

	c := servedCalls.Get().(*served)
	c.in, c.replies, c.lying = in, l.replies, &l.blocked
	if err := c.parse(); err != nil {
		c.free()
		<-l.slots
		return err
	}
	if c.Cred.Flavor == oncrpc.FlavorTLS && l.probe(c) {
		xid := c.XID
		c.free()
		<-l.slots
		return l.beginTLS(xid)
	}
	c.Network, c.Local, c.Remote = "tcp", l.nc.LocalAddr(), l.nc.RemoteAddr()
	c.Origin = l.from
	c.Session, c.SessionEnd, c.Back, c.Alloc = l, l.whenOver, (*back)(l), c.alloc

	l.mu.Lock()
	l.busy++
	l.mu.Unlock()
	l.inside.Go(func() { l.execute(c) })
	return nil
}

// slot waits for a place among the calls being executed.
func (l *link) slot() error {
	select {
	case l.slots <- struct{}{}:
		return l.setReadDeadline(time.Now().Add(l.stall)) // the wait was not the peer's fault
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	}
}

// parse reads the header of the call in c.in. An error says that it is no call;
// what is to be answered by a rejection is in c.reject.
func (c *served) parse() error {
	c.Message = c.in.b
	args, err := c.Parse(c.Message)
	if reject := (*oncrpc.RejectError)(nil); errors.As(err, &reject) {
		c.reject = err
		return nil
	}
	c.Args = c.Message[args:]
	return err
}

// execute has the call answered. What becomes of the answer is the link's end,
// if it cannot be sent.
func (l *link) execute(c *served) {
	reply, err := c.answer(l.ctx, l.handler)
	if err == nil {
		c.adopt(reply)
		l.blocked.Add(1)
		err = l.write(l.ctx, reply)
		l.blocked.Add(-1)
	}
	answered, size := err == nil, len(c.Message)
	if err != nil && !errors.Is(err, oncrpc.ErrNoReply) {
		l.log.Debug("a call is not answered", "from", c.Remote, "call", c.XID, "err", err)
	}
	c.free()
	l.lastUsed.Store(time.Now().UnixNano())
	l.mu.Lock()
	l.busy--
	l.spoken = l.spoken || answered
	l.tally.octetsIn += uint64(size)
	if answered {
		l.tally.served++
		l.tally.octetsOut += uint64(len(reply))
	}
	l.mu.Unlock()
	<-l.slots
}

// answer returns the reply to the call, or ErrNoReply.
func (c *served) answer(ctx context.Context, h oncrpc.Handler) ([]byte, error) {
	err := c.reject
	if err == nil {
		var reply []byte
		if reply, err = h.ServeRPC(ctx, &c.Request); err == nil || errors.Is(err, oncrpc.ErrNoReply) {
			return reply, err
		}
	}
	reply := oncrpc.ReplyTo(c.XID, err)
	return reply.Append(nil)
}

// secondWait bounds how long a call waits for more memory than it has got already:
// what it waits for may be waited for by others that have some, too.
const secondWait = time.Second

// alloc is Request.Alloc. It waits for the memory, even when the link has ended, as it has
// no way to fail.
func (c *served) alloc(n int) []byte {
	class, size := classOf(n)
	if !c.replies.TryAcquire(size, false) {
		c.lying.Add(1)
		c.wait(size)
		c.lying.Add(-1)
	}
	b := newBuffer(c.replies, n, class, size)
	c.out = append(c.out, b)
	return b.b
}

// wait takes memory for a reply when it is there.
func (c *served) wait(size int) {
	ctx := context.Background()
	if len(c.out) > 0 {
		limited, cancel := context.WithTimeout(ctx, secondWait)
		defer cancel()
		ctx = limited
	}
	if c.replies.Acquire(ctx, size, false) != nil {
		c.replies.ForceAcquire(size)
	}
}

// adopt counts a reply in the handler's own memory, unless it is a short one.
func (c *served) adopt(reply []byte) {
	if len(reply) <= sizes[0] {
		return
	}
	for _, b := range c.out {
		if &b.b[:1][0] == &reply[0] {
			return
		}
	}
	c.adopted = len(reply)
	if !c.replies.TryAcquire(c.adopted, false) {
		c.wait(c.adopted)
	}
}

// free gives the call's memory back.
func (c *served) free() {
	c.in.release()
	if c.adopted > 0 {
		c.replies.Release(c.adopted)
	}
	for i, b := range c.out {
		b.release()
		c.out[i] = nil
	}
	*c = served{out: c.out[:0]}
	servedCalls.Put(c)
}

// whenOver is Request.SessionEnd.
func (l *link) whenOver(f func()) {
	l.mu.Lock()
	if !l.quiet {
		l.onEnd = append(l.onEnd, f)
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	f()
}
