// This file is the gateway as the transports in front of it see it: a handler with a
// session for each of their connections.
//
// A call takes these steps:
//
//  1. ServeRPC replaces the credential of a caller on this machine (identity.go), and
//     hands calls of MOUNT to Config.Mount.
//  2. find returns the session of the call's connection. The first call of a connection
//     makes the session and opens it: it waits for a slot and makes the caller for the
//     server. Other calls of the connection wait until it is open.
//  3. forward offers memory for results (placement.go), sends the call and waits for the
//     reply (session.go).
//  4. When the connection in front has ended, end closes the caller, and notes the
//     session's port and last calls (history.go), for the client's next connection.
//
// Locking: Gateway.mu guards sessions and closed. It is held for look-ups only, never
// while a session is opened, called or closed; seen.mu may be locked under it. The caller
// of a session is set before opened is closed, and does not change after that.

package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpctcp"
)

// DefaultMaxPayload is the default of Config.MaxPayload, in octets: the limit that NFS
// peers usually agree on.
const DefaultMaxPayload = 1 << 20

// DefaultConnections is the default of Config.Connections: the connections that servers
// over TCP and RDMA accept together by default.
const DefaultConnections = rpctcp.DefaultConnections + rpcrdma.DefaultConnections

// A Config configures a [Gateway]. Zero values stand for the defaults.
type Config struct {
	// Backend is the server behind the gateway. Its Open is required.
	Backend Backend

	// Mount executes the calls of the MOUNT program; usually it is a [Mount]. If it is
	// nil they are forwarded like all others.
	Mount oncrpc.Handler

	// Wait limits how long a call waits for the server's reply. After it the call gets
	// no reply, and its client retransmits it or gives up. 0 stands for no limit but
	// the end of the connection in front, which suits hard mounts.
	Wait time.Duration

	// MaxPayload bounds the data of READ, in octets, for which memory is offered to a
	// backend that places them. The default is DefaultMaxPayload; a server with a
	// larger rtmax needs more.
	MaxPayload int

	// Connections bounds the connections behind, including those that are being
	// closed. The default is DefaultConnections. Beyond it, the first call of a
	// connection in front waits until another connection has ended, so the limit should
	// be no lower than that of the servers in front.
	Connections int

	// Logger logs calls that could not be forwarded, at level Info; nil discards.
	Logger *slog.Logger
}

// A Backend says how to call the server behind a gateway: see [TCP] and [RDMA].
type Backend struct {
	// Open makes a caller for the calls of one connection in front. It does not
	// block: the caller connects for its first call.
	Open func(Front) (oncrpc.Caller, error)

	// Bindings are those of the programs whose results the callers place in
	// ClientCall.Sinks; nil if they place none.
	Bindings payload.Bindings
}

// A Front describes a connection in front, by its first call.
type Front struct {
	Network string   // "tcp" or "rdma"
	Remote  net.Addr // the client's address

	// Port is the local port to call the server from, because calls that the client
	// retransmits were sent from it; 0 stands for any.
	Port int

	// Reverse executes calls that the server makes over the connection.
	Reverse oncrpc.Handler
}

// A Gateway is a handler that forwards calls to a server. Any number of transports may
// use it at the same time; their requests must have a Session.
type Gateway struct {
	cfg   Config
	past  history
	slots chan struct{} // one token for each connection behind

	mu       sync.Mutex
	closed   bool
	sessions map[any]*session // by Request.Session
}

// New returns a gateway. It does not connect yet.
func New(cfg Config) (*Gateway, error) {
	if cfg.Backend.Open == nil {
		return nil, errors.New("gateway: a gateway needs a Backend to pass calls to")
	}
	if cfg.MaxPayload <= 0 {
		cfg.MaxPayload = DefaultMaxPayload
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Connections <= 0 {
		cfg.Connections = DefaultConnections
	}
	return &Gateway{cfg: cfg, slots: make(chan struct{}, cfg.Connections), sessions: make(map[any]*session)}, nil
}

// ServeRPC forwards a call and returns its reply.
func (g *Gateway) ServeRPC(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
	if r.Cred.Flavor == oncrpc.FlavorTLS {
		// RFC 9289 §4.1: passed on, the client would begin TLS with the gateway, and the
		// server would expect it from the gateway. Each side has its own (rpctcp).
		return nil, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthBadCred}
	}
	r, err := withIdentity(r)
	if err != nil {
		return nil, err
	}
	if r.Prog == nfs.MountProgram && g.cfg.Mount != nil {
		reply, err := g.cfg.Mount.ServeRPC(ctx, r)
		// A datagram has no session, so its call cannot be forwarded over one.
		if none := (*noMountError)(nil); r.SessionEnd == nil || !errors.As(err, &none) {
			return reply, err
		}
	}
	s, err := g.session(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.forward(ctx, r)
}

// errNoSession refuses datagrams.
var errNoSession = errors.New("gateway: the call did not come over a connection, or over one whose end is not reported")

// session returns the open session of the connection of r.
func (g *Gateway) session(ctx context.Context, r *oncrpc.Request) (*session, error) {
	if r.Session == nil || r.SessionEnd == nil {
		return nil, errNoSession
	}
	s, before, made, err := g.find(r)
	if err != nil {
		return nil, err
	}
	if made {
		if before != nil {
			before.close()
		}
		s.open(ctx, r)
		key := r.Session // r belongs to the transport when f runs
		r.SessionEnd(func() { g.end(key, s) })
	}
	<-s.opened
	return s, s.err
}

// find returns the session of the connection of r. If it has made the session, the caller
// opens it, after it has closed before, if that is not nil.
//
// before is a session over which the same client has sent the same call. The client has
// lost that connection, even if this side has not noticed yet, and the port of its
// connection behind has to be free.
func (g *Gateway) find(r *oncrpc.Request) (s, before *session, made bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, nil, false, oncrpc.ErrNoReply
	}
	if s := g.sessions[r.Session]; s != nil {
		return s, nil, false, nil
	}
	m, client := markOf(r), clientOf(r)
	for key, old := range g.sessions {
		if old.client == client && old.seen.has(m) {
			before = old
			delete(g.sessions, key)
			break
		}
	}
	s = &session{g: g, remote: r.Remote, client: client, back: r.Back, opened: make(chan struct{})}
	g.sessions[r.Session] = s
	return s, before, true, nil
}

// end closes a session whose connection in front has ended.
func (g *Gateway) end(key any, s *session) {
	g.mu.Lock()
	if g.sessions[key] == s {
		delete(g.sessions, key)
	}
	g.mu.Unlock()
	s.close()
}

// Close ends all connections behind and waits for their end. Calls that wait for a reply,
// and later calls, get none. Shut down the transports in front first.
func (g *Gateway) Close() error {
	g.mu.Lock()
	g.closed = true
	sessions := g.sessions
	g.sessions = nil
	g.mu.Unlock()
	for _, s := range sessions {
		s.close()
	}
	return nil
}
