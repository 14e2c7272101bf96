// The client: it makes calls over a connection, and over the next one if that is lost.

package rpcrdma

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// ErrClientClosed ends calls of a client that is closed.
var ErrClientClosed = errors.New("rpcrdma: the client is closed")

// A Client calls RPC programs of one server over RDMA. It connects for the first call.
// When the connection is lost it reconnects and sends outstanding calls again with the
// same XIDs, by which a server's duplicate request cache recognizes them.
//
// Memory of a call, arguments and sinks, is exposed to the server in place, for that
// call alone. After Call has returned the server can neither read nor write it.
//
// Methods may be called by any goroutine.
type Client struct {
	cfg  ClientConfig
	rnic *verbs.RNIC
	own  bool // rnic is the client's
	pd   *verbs.PD
	pool *pool
	rpcs rpcs

	// ctx ends with Close.
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	xid    uint32          // the last that was given out
	xids   map[uint32]bool // those of calls in progress
	link   link
	idle   *time.Timer // ends the connection of a client without calls
	calls  sync.WaitGroup
	conns  sync.WaitGroup
	freed  sync.Once
	err    error // of Close

	stats clientCounters
}

// clientCounters has the counters of ClientStats.
type clientCounters struct {
	calls, replies, errors, timeouts, repeated, connections, dropped atomic.Uint64
}

// ClientStats count what a client has done. The numbers only grow.
type ClientStats struct {
	Calls       uint64 // calls that have ended,
	Replies     uint64 // those of them with a reply,
	Errors      uint64 // with an RDMA_ERROR,
	Timeouts    uint64 // and with ErrTimeout
	Repeated    uint64 // attempts at calls beyond their first
	Connections uint64 // connections that were made
	Dropped     uint64 // messages that matched no call
}

// NewClient makes a client. It does not connect yet. Close frees what it has.
func NewClient(cfg ClientConfig) (*Client, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg.withDefaults(), rnic: cfg.RNIC, xid: rand.Uint32(), xids: make(map[uint32]bool)}
	var err error
	if c.rnic == nil {
		if c.rnic, err = verbs.Open(verbs.Config{Logger: cfg.Logger}); err != nil {
			return nil, err
		}
		c.own = true
	}
	if c.pd, err = c.rnic.AllocPD(); err != nil {
		if c.own {
			_ = c.rnic.Close()
		}
		return nil, err
	}
	c.pool = newPool(c.pd, 0)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// Connect makes the connection now, in one attempt, if there is none. So a program can
// find out at once whether the server can be reached.
func (c *Client) Connect(ctx context.Context) error {
	r, err := c.requester(ctx, nil, 1)
	if err == nil {
		c.leave(r)
	}
	return err
}

// Call makes a call and waits for its reply. Besides the errors of [oncrpc.Caller] it
// returns:
//   - a [*wire.Error] with FaultLocal for a call that cannot be sent over RDMA,
//     because it is longer than the limits of either side;
//   - a [*wire.Error] with FaultStream for arguments or a reply that do not match
//     the procedure in its binding, and for a reply that reduces what may not be
//     reduced (RFC 8166 §6.1);
//   - a [*wire.RemoteError] for an RDMA_ERROR (RFC 8166 §4.5);
//   - an error if the call's memory cannot be read or written, because its pages are
//     not mapped, do not permit it, or lie behind the end of their file;
//   - [ErrTimeout], [ErrClientClosed], and the error of the attempt to connect, such
//     as a [*cm.RejectedError].
func (c *Client) Call(ctx context.Context, call *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	xid, err := c.beginCall(call)
	if err != nil {
		return nil, err
	}
	defer c.endCall(xid)
	x, err := c.rpcs.make(call, xid, c.cfg.Bindings[payload.ProgramVersion{Prog: call.Prog, Vers: call.Vers}], c.cfg.MaxReply)
	if err != nil {
		return nil, err
	}
	reply, err := c.complete(ctx, x)
	c.count(err)
	if err != nil {
		x.release()
		return nil, err
	}
	return reply, nil
}

// complete makes attempts at x until one ends it.
func (c *Client) complete(ctx context.Context, x *rpc) (*oncrpc.ClientReply, error) {
	var expired <-chan time.Time
	if c.cfg.Timeout > 0 {
		t := time.NewTimer(c.cfg.Timeout)
		defer t.Stop()
		expired = t.C
	}
	for attempt := 0; ; attempt++ {
		r, err := c.requester(ctx, expired, c.cfg.Attempts)
		if err != nil {
			return nil, err
		}
		if attempt > 0 {
			c.stats.repeated.Add(1)
		}
		reply, err := r.make(ctx, x, expired)
		c.leave(r)
		var lost *lostError
		if !errors.As(err, &lost) {
			return reply, err
		}
		if err := c.ctx.Err(); err != nil {
			return nil, ErrClientClosed
		}
		if err := x.memoryFault(); err != nil {
			return nil, err
		}
		if c.usedUp(c.cfg.Attempts) {
			return nil, lost.err
		}
	}
}

// beginCall gives a call its XID and counts it.
func (c *Client) beginCall(call *oncrpc.ClientCall) (xid uint32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, ErrClientClosed
	}
	if xid = call.XID; call.Forward {
		if c.xids[xid] {
			return 0, oncrpc.ErrXIDInUse
		}
	} else {
		for c.xid++; c.xids[c.xid]; c.xid++ {
		}
		xid = c.xid
	}
	c.xids[xid] = true
	c.calls.Add(1)
	if c.idle != nil {
		c.idle.Stop()
	}
	return xid, nil
}

// endCall counts a call that is over.
func (c *Client) endCall(xid uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.xids, xid)
	c.calls.Done()
	c.armIdle()
}

// armIdle has the connection closed in time if there are no calls. The lock is
// held.
func (c *Client) armIdle() {
	if len(c.xids) > 0 || c.cfg.Idle < 0 || c.closed {
		return
	}
	if c.idle == nil {
		c.idle = time.AfterFunc(c.cfg.Idle, c.hangUp)
		return
	}
	c.idle.Reset(c.cfg.Idle)
}

func (c *Client) count(err error) {
	var remote *wire.RemoteError
	c.stats.calls.Add(1)
	switch {
	case err == nil:
		c.stats.replies.Add(1)
	case errors.As(err, &remote):
		c.stats.errors.Add(1)
	case errors.Is(err, ErrTimeout):
		c.stats.timeouts.Add(1)
	}
}

// Stats returns what the client has done.
func (c *Client) Stats() ClientStats {
	s := &c.stats
	return ClientStats{
		Calls: s.calls.Load(), Replies: s.replies.Load(), Errors: s.errors.Load(), Timeouts: s.timeouts.Load(),
		Repeated: s.repeated.Load(), Connections: s.connections.Load(), Dropped: s.dropped.Load(),
	}
}

// Close ends all calls with [ErrClientClosed], closes the connection, and frees
// what the client has. Replies that were not released stay good.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	busy := len(c.xids) > 0
	r := c.link.r
	if c.idle != nil {
		c.idle.Stop()
	}
	c.mu.Unlock()
	if r != nil {
		if !busy {
			r.e.closeGracefully()
		}
		r.e.fail(ErrClientClosed)
	}
	c.cancel()
	c.calls.Wait()
	c.conns.Wait()
	c.freed.Do(func() {
		c.err = errors.Join(c.pool.close(), c.pd.Dealloc())
		if c.own {
			c.err = errors.Join(c.err, c.rnic.Close())
		}
	})
	return c.err
}
