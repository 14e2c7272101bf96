// This file is the gateway as the transports in front see it: a handler that has
// a session for each of their connections.

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
	"github.com/weft-rdma/weft/rpctcp"
)

// DefaultMaxPayload is the most octets of data in a reply, for which there is
// memory, where Config.MaxPayload says nothing: what NFS peers agree on.
const DefaultMaxPayload = 1 << 20

// DefaultConnections is how many connections behind there are at a time where
// Config.Connections says nothing: as many as servers in front have by default, over
// TCP and RDMA together.
const DefaultConnections = rpctcp.DefaultConnections + rpcrdma.DefaultConnections

// A Config says what a [Gateway] is to do. Zero values are the defaults.
type Config struct {
	// Backend is the server behind the gateway. Its Open is needed.
	Backend Backend

	// Mount executes the calls of the program MOUNT, mostly a [Mount]. Nil
	// passes them to the backend as all others.
	Mount oncrpc.Handler

	// Wait is how long a call waits for its reply from behind; after it the call
	// gets none, and its client repeats it or gives up. 0: as long as the
	// connection in front stays, which is what a hard mount wants.
	Wait time.Duration

	// MaxPayload bounds the data of READ, in octets, for which memory is offered
	// to a backend that places them, DefaultMaxPayload. A server that returns more
	// at a time needs more.
	MaxPayload int

	// Connections bounds the connections behind, those that are being closed
	// included, DefaultConnections. The first call of one more connection in front
	// waits until one has ended: so there should be as many as in front.
	Connections int

	// Logger tells of calls that could not be passed on, at level Info; nil is
	// silent.
	Logger *slog.Logger
}

// A Backend is how a gateway comes to the server behind it: see [TCP] and
// [RDMA].
type Backend struct {
	// Open makes a caller for the calls of one connection in front. It does not
	// wait for anything: a connection is made with the first call.
	Open func(Front) (oncrpc.Caller, error)

	// Bindings are of those programs whose results the callers can place in
	// ClientCall.Sinks; nil where they do not.
	Bindings rpcrdma.Bindings
}

// A Front is a connection in front, as its first call shows it.
type Front struct {
	Network string   // "tcp" or "rdma"
	Remote  net.Addr // who has made it

	// Port is the one from which its calls are to come, where it repeats calls
	// that were sent from there; 0: any.
	Port int

	// Reverse executes calls that the server makes over its connection.
	Reverse oncrpc.Handler
}

// A Gateway is a handler that passes calls on to a server. It is used by any
// number of transports at a time, whose requests must have a Session.
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

// ServeRPC passes a call on and returns its reply.
func (g *Gateway) ServeRPC(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
	if r.Cred.Flavor == oncrpc.FlavorTLS {
		// RFC 9289 §4.1: who asks for TLS would begin it with the gateway, and the
		// server expect it of the gateway, neither of whom can be served.
		return nil, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthBadCred}
	}
	r, err := identified(r)
	if err != nil {
		return nil, err
	}
	if r.Prog == nfs.MountProgram && g.cfg.Mount != nil {
		reply, err := g.cfg.Mount.ServeRPC(ctx, r)
		// A datagram, which has no session, goes no other way.
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
var errNoSession = errors.New("gateway: the call came by no connection, or by one whose end cannot be known")

// session returns the session of the connection that r came by.
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
		key := r.Session // r is the transport's again by then
		r.SessionEnd(func() { g.end(key, s) })
	}
	<-s.opened
	return s, s.err
}

// find returns the session and whether it has just been made: then it is to be
// opened, when before, if not nil, is closed.
//
// That is a session over whose connection the same client has sent the same call.
// It has lost that connection, even if nobody has noticed here, and its port is
// to be free.
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

// end closes what a connection in front had behind, when it has ended.
func (g *Gateway) end(key any, s *session) {
	g.mu.Lock()
	if g.sessions[key] == s {
		delete(g.sessions, key)
	}
	g.mu.Unlock()
	s.close()
}

// Close ends all connections behind, and waits until they have ended. Calls that
// wait for a reply, and those to come, get none. The transports in front are to
// be shut down before.
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
