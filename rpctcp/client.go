// The client: calls that outlive the connections they are sent over.

package rpctcp

import (
	"cmp"
	"context"
	"crypto/tls"
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
	// DefaultReply has room for a payload of 4 MiB, the largest that Linux's NFS server
	// can be configured for.
	DefaultReply = 5 << 20
)

// A ClientConfig configures a [Client]. Address is required. Zero values are the
// defaults. Options that rpcrdma.ClientConfig has, too, have the same name and
// the same meaning there.
type ClientConfig struct {
	// Network and Address are the server's, as package net has them: "tcp" if
	// Network is empty, or "unix".
	Network, Address string

	// Reserved connects from a port below 1024 if this process may use one. Linux's
	// NFS server requires that, RFC 1813 does not.
	Reserved bool

	// KeepPort connects from the same port each time if it is free: LocalPort if that
	// is not 0, then the port of the connection before. Servers recognize a repeated call
	// by its XID and its source address and port. To free the port at once, connections
	// are ended by a reset.
	KeepPort  bool
	LocalPort int

	// Dial, if not nil, connects in place of the fields above.
	Dial func(ctx context.Context) (net.Conn, error)

	// DialTimeout limits one attempt to connect; 0 is [DefaultDialTimeout].
	DialTimeout time.Duration

	// Attempts is the number of attempts to connect that may fail in a row before the
	// waiting calls fail; with 0 they wait until their contexts end. A connection that
	// is lost before its first reply counts as a failed attempt.
	Attempts int

	// Backoff is the pause after a failed attempt; 0 is [DefaultBackoff]. It doubles
	// with each further one, up to MaxBackoff; 0 is [DefaultMaxBackoff].
	Backoff, MaxBackoff time.Duration

	// Resend is the interval at which a call without a reply is sent again over the
	// same connection; 0 is never, as RFC 7530 §3.1.1 requires for NFS version 4. After
	// the loss of a connection calls are always sent again.
	Resend time.Duration

	// Calls limits the calls in progress; 0 is [DefaultCalls]. Further calls wait.
	Calls int

	// Record limits one reply. Its zero value allows [DefaultReply] octets.
	Record oncrpc.RecordLimits

	// Idle is how long a connection without calls is kept; negative is forever. The
	// next call makes a new one. 0 is [DefaultClientIdle], or forever with Reverse, as
	// the server may make calls (RFC 8167 §5.4).
	Idle time.Duration

	// Stall is how long the rest of a reply may take once its first octet has arrived,
	// and how long the peer may take to receive a call; 0 is [DefaultStall]. After that
	// the client reconnects.
	Stall time.Duration

	// Reverse executes the server's calls that arrive over the connection, at most 16
	// at a time. If it is nil they are answered PROG_UNAVAIL.
	Reverse oncrpc.Handler

	// TLS, if not nil, has every connection use RPC with TLS (RFC 9289). The client asks
	// for it by a probe, which is the only message in the clear. It uses a copy of the
	// configuration, with TLS 1.3 only, the protocol sunrpc, and no resumption; an empty
	// ServerName stands for the host in Address.
	//
	// If the server does not offer TLS, or either side refuses the other's certificate,
	// calls fail at once with a *oncrpc.RejectError of AUTH_FAILED, as RFC 9289 §4.1 has
	// it, which wraps the reason. A handshake that is lost with its connection is made
	// again over the next one. After the client has sent 2^24 TLS records, 256 GiB of full ones
	// (RFC 8446 §5.5), it reconnects.
	TLS *tls.Config

	// TLSOptional continues in the clear if the server does not offer TLS. An attacker
	// on the way can make it look so (RFC 9289 §6.1.1).
	TLSOptional bool

	// AnyALPN accepts a server that has not chosen the protocol sunrpc by ALPN. RFC 9289
	// §5 requires that of servers; the tlshd of Linux's does not do it as of 1.4.
	AnyALPN bool

	// Prog and Vers are the program and the version whose NULL procedure is the probe;
	// the default is the port mapper. Servers need not have that program.
	Prog, Vers uint32

	// Wrap, if not nil, wraps each connection. It is below TLS.
	Wrap func(net.Conn) net.Conn

	// Retrying, if not nil, is called with the reason when an attempt to connect has
	// failed, or a connection was lost with calls in progress. Waiting calls are sent
	// again over the next connection, unless Attempts are used up. The client waits for
	// Retrying to return.
	Retrying func(error)

	// Logger logs connections that are lost, made again or secured, at level Info. Nil logs
	// nothing.
	Logger *slog.Logger
}

// reverseCalls is how many calls of its server a client executes at a time.
const reverseCalls = 16

// A Client calls the programs of one server over TCP. It is an [oncrpc.Caller].
//
// It connects for the first call. When the connection is lost it reconnects and sends
// every call in progress again, with the same XID. A server with a duplicate request
// cache then repeats its reply; one without may execute the call twice.
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

// ErrClientClosed is the error of calls that Close ends, and of calls made after it.
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
	if cfg.TLS != nil {
		var err error
		if cfg.TLS, err = clientProfile(cfg.TLS, cfg.Address); err != nil {
			return nil, err
		}
	}
	c := &Client{
		cfg: cfg,
		setting: setting{
			handler: cfg.Reverse, slots: reverseCalls, record: cfg.Record, idle: cfg.Idle, stall: cfg.Stall,
			mostRecords: maxRecords,
			in:          fairness.NewMemory(DefaultMemory / 2), out: fairness.NewMemory(DefaultMemory / 2), own: fairness.NewMemory(fairness.Unlimited), log: cfg.Logger,
		},
		slots:   make(chan struct{}, cfg.Calls),
		port:    cfg.LocalPort,
		nextXID: rand.Uint32(), // an earlier client's calls are not these (RFC 5531 §9)
		xids:    make(map[uint32]struct{}),
	}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c, nil
}

// Connect makes the connection now, in one attempt, if there is none. So a program can
// find out at once whether the server can be reached.
func (c *Client) Connect(ctx context.Context) error {
	_, err := c.connected(ctx, 1)
	return err
}

// Call makes a call and waits for the reply, over as many connections as it takes. Besides
// the errors of [oncrpc.Caller] it returns [ErrClientClosed], a *[oncrpc.DecodeError] for a
// reply that cannot be read, an error if memory of the call cannot be read or written, and,
// with ClientConfig.Attempts, the reason why there is no connection.
//
// If the context ends while memory of the call is being sent or received, Call may take
// up to a second to return, and may close the connection.
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
		if refusal := refused(err); refusal != nil {
			return nil, refusal
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

// Close ends all calls with ErrClientClosed, closes the connection, and waits until the
// handlers of the server's calls have returned.
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
