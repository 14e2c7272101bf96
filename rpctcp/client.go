// This file is the client: calls that outlive the connections they go over.

package rpctcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/oncrpc"
)

// Defaults of a ClientConfig. Those of connections are the same in package rpcrdma.
const (
	DefaultClientIdle  = 5 * time.Minute
	DefaultDialTimeout = 30 * time.Second
	DefaultBackoff     = 100 * time.Millisecond
	DefaultMaxBackoff  = 30 * time.Second
	// DefaultReply has room for a payload of four mebibytes, the most that Linux's
	// NFS server can be told to agree on.
	DefaultReply = 5 << 20
)

// A ClientConfig configures a [Client]. Address is required. Zero values are the
// defaults. Options that rpcrdma.ClientConfig has, too, have the same name and
// the same meaning there.
type ClientConfig struct {
	// Network and Address are the server's, as package net has them: "tcp" if
	// Network is empty, or "unix".
	Network, Address string

	// Reserved has connections made from a port below 1024 where this process
	// may use one, which Linux's NFS server asks for (RFC 1813 does not).
	Reserved bool

	// KeepPort has each connection made from the port of the one before, first from
	// LocalPort if that is not 0, where that can be had: servers tell a repeated
	// call by its XID and where it comes from. For this connections end by a reset,
	// which leaves their port free.
	KeepPort  bool
	LocalPort int

	// Dial, if not nil, connects in place of the fields above.
	Dial func(ctx context.Context) (net.Conn, error)

	// DialTimeout bounds one attempt to connect, DefaultDialTimeout.
	DialTimeout time.Duration

	// Attempts is how many attempts to connect in a row may fail before the calls
	// that wait fail with them; 0: any number, so that calls wait as long as their
	// contexts let them. A connection that ends before any reply came counts as an
	// attempt that failed.
	Attempts int

	// Backoff is the pause after an attempt that failed, DefaultBackoff; it
	// doubles from attempt to attempt up to MaxBackoff, DefaultMaxBackoff.
	Backoff, MaxBackoff time.Duration

	// Resend is after how long without a reply a call is sent again over the same
	// connection, and again; 0: never, as RFC 7530 §3.1.1 wants it of NFS version
	// 4. After the loss of a connection calls are always sent again.
	Resend time.Duration

	// Calls bounds the calls under way, DefaultCalls. More wait.
	Calls int

	// Record bounds one reply. Its octets are DefaultReply where it says nothing.
	Record oncrpc.RecordLimits

	// Idle is how long a connection without calls is kept; negative: for ever. The
	// next call makes a new one. 0 is [DefaultClientIdle], and with Reverse for
	// ever: the server may have calls to make (RFC 8167 §5.4).
	Idle time.Duration

	// Stall is how long the rest of a reply may take once its first octet has arrived,
	// and how long the peer may take to receive a call; 0 is [DefaultStall]. After that
	// the client reconnects.
	Stall time.Duration

	// Reverse executes calls of the server's that come over the connection, at
	// most 16 at a time. Nil answers that there is no such program.
	Reverse oncrpc.Handler

	// Wrap, if not nil, is put around each connection.
	Wrap func(net.Conn) net.Conn

	// Retrying, if not nil, is called when an attempt to connect has failed, or a
	// connection was lost with calls in progress, and says why. Calls that wait are
	// made again over the next connection, unless Attempts are used up. The client
	// waits for Retrying to return.
	Retrying func(error)

	// Logger logs lost connections and reconnections, at level Info; nil is
	// silent.
	Logger *slog.Logger
}

// reverseCalls is how many calls of its server a client executes at a time.
const reverseCalls = 16

// A Client calls the programs of one server over TCP. It is an [oncrpc.Caller].
//
// It connects when there is something to call. When the connection is lost it
// connects again and sends every call under way once more, with the same XID, so
// that a server which remembers its answers gives the same one; a server that
// does not may execute a call twice.
type Client struct {
	cfg     ClientConfig
	setting setting

	ctx   context.Context // ends with Close
	end   context.CancelFunc
	slots chan struct{} // one token for each call under way
	links sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	link     *link               // the present one, or nil
	attempt  *attempt            // to make the next one, or nil
	failures int                 // attempts in a row
	port     int                 // of the last connection, with KeepPort
	nextXID  uint32              // if it is not in use
	xids     map[uint32]struct{} // in use
}

// ErrClientClosed is what calls get that Close ends, or comes before.
var ErrClientClosed = errors.New("rpctcp: the client is closed")

// NewClient returns a client. It does not connect yet.
func NewClient(cfg ClientConfig) (*Client, error) {
	if cfg.Dial == nil && cfg.Address == "" {
		return nil, errors.New("rpctcp: a client needs an Address, or Dial")
	}
	if cfg.Network == "" {
		cfg.Network = "tcp"
	}
	cfg.DialTimeout = or(cfg.DialTimeout, DefaultDialTimeout)
	cfg.Backoff = or(cfg.Backoff, DefaultBackoff)
	cfg.MaxBackoff = max(cfg.Backoff, or(cfg.MaxBackoff, DefaultMaxBackoff))
	cfg.Calls = or(cfg.Calls, DefaultCalls)
	cfg.Stall = or(cfg.Stall, DefaultStall)
	cfg.Record.Record = or(cfg.Record.Record, DefaultReply)
	if cfg.Idle == 0 && cfg.Reverse != nil {
		cfg.Idle = -1
	}
	cfg.Idle = cmp.Or(cfg.Idle, DefaultClientIdle)
	if cfg.Reverse == nil {
		cfg.Reverse = oncrpc.Mux(nil)
	}
	if cfg.Retrying == nil {
		cfg.Retrying = func(error) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Client{
		cfg: cfg,
		setting: setting{
			handler: cfg.Reverse, slots: reverseCalls, record: cfg.Record, idle: cfg.Idle, stall: cfg.Stall,
			in: fairness.NewMemory(DefaultMemory / 2), out: fairness.NewMemory(DefaultMemory / 2), own: fairness.NewMemory(fairness.Unlimited), log: cfg.Logger,
		},
		slots:   make(chan struct{}, cfg.Calls),
		port:    cfg.LocalPort,
		nextXID: rand.Uint32(), // an earlier client's calls are not these (RFC 5531 §9)
		xids:    make(map[uint32]struct{}),
	}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c, nil
}

// Connect makes the connection now, by one attempt, if there is none. It is for
// those who want to know at once whether there is a server.
func (c *Client) Connect(ctx context.Context) error {
	_, err := c.connected(ctx, 1)
	return err
}

// Call makes a call and waits for the reply, through any number of connections.
// Beside the errors of [oncrpc.Caller] there are [ErrClientClosed], a reply that
// cannot be read, memory of the call that cannot be read or written, and why there is no connection, if ClientConfig.Attempts allows
// for that.
//
// When the context ends while the network has memory of the call, it may take a
// second until Call returns, and the connection.
func (c *Client) Call(ctx context.Context, call *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.ctx.Done():
		return nil, ErrClientClosed
	}
	defer func() { <-c.slots }()
	xid, err := c.allocXID(call)
	if err != nil {
		return nil, err
	}
	defer c.freeXID(xid)
	pieces, err := message(call, xid)
	if err != nil {
		return nil, fmt.Errorf("rpctcp: the call cannot be sent: %w", err)
	}
	for {
		l, err := c.connected(ctx, c.cfg.Attempts)
		if err != nil {
			return nil, err
		}
		w := &waiting{alloc: call.Alloc, done: make(chan answer, 1)}
		a, err := l.exchange(ctx, xid, w, c.cfg.Resend, pieces)
		if err == nil {
			c.succeeded()
			return a.reply(call.Forward)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if bad := memoryError(err, pieces); bad != nil {
			c.succeeded() // it was not the server
			return nil, bad
		}
		if c.cfg.Attempts > 0 && c.failed() >= c.cfg.Attempts {
			return nil, fmt.Errorf("rpctcp: %w", err)
		}
	}
}

// memoryError is what is wrong with the memory of a call that ended with err, or nil. A
// link that was lost because of it would be lost again.
func memoryError(err error, pieces [][]byte) error {
	lost, fault := (*lostError)(nil), (*pages.Fault)(nil)
	if !errors.As(err, &lost) && errors.As(err, &fault) {
		return fmt.Errorf("rpctcp: the reply has no place: %w", err)
	}
	for _, p := range pieces {
		if _, err := pages.Readable(p); err != nil {
			return fmt.Errorf("rpctcp: the call cannot be sent: %w", err)
		}
	}
	return nil
}

// allocXID returns an XID for the call that no call under way has.
func (c *Client) allocXID(call *oncrpc.ClientCall) (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		xid := call.XID
		if !call.Forward {
			xid = c.nextXID
			c.nextXID++
		}
		if _, used := c.xids[xid]; !used {
			c.xids[xid] = struct{}{}
			return xid, nil
		}
		if call.Forward {
			return 0, oncrpc.ErrXIDInUse
		}
	}
}

func (c *Client) freeXID(xid uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.xids, xid)
}

// succeeded notes that the server answers.
func (c *Client) succeeded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = 0
}

// Close ends all calls with ErrClientClosed and the connection, and waits until
// the handlers of the server's calls have returned.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.end()
	if c.link != nil {
		c.link.close(ErrClientClosed)
	}
	c.mu.Unlock()
	c.links.Wait()
	return nil
}
