// The server: which connections are admitted, how many, and how it ends.

package rpctcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// Defaults of a [ServerConfig].
const (
	DefaultConnections = 1024
	DefaultCalls       = 128
	DefaultMemory      = 256 << 20        // octets
	DefaultIdle        = 6 * time.Minute  // of a server
	DefaultStall       = 60 * time.Second // for a message
)

// A ServerConfig configures a [Server]. Zero values are the defaults.
type ServerConfig struct {
	// Handler executes the calls. It is required.
	Handler oncrpc.Handler

	// Allow, if not nil, decides whether a peer may send a datagram and, without Admit,
	// whether it may connect. A refused connection is closed before anything is read from
	// it; a refused datagram is dropped.
	Allow func(remote net.Addr) bool

	// Admit, if not nil, decides in place of Allow which connections are accepted, and
	// returns where their calls come from; without it origin.Of does. It is called for
	// one connection at a time, and so must not wait for a peer.
	Admit origin.Admit

	// Connections limits the connections; 0 is [DefaultConnections]. So many descriptors
	// are open, and one more while a connection replaces another.
	//
	// The places are divided by [origin.Share]. If all are taken, a new connection evicts
	// one of the share with the most idle connections, or if none is idle, of the share
	// with the most. In that share one that has made no call goes first, then the one
	// idle for longest. If the new connection's own share has the most, and none of its
	// connections is idle, the new one is closed. A connection is idle unless a call of
	// it is executed, or it has sent or received something within a second.
	Connections int

	// Calls limits the calls of one connection that are executed at a time; 0 is
	// [DefaultCalls]. While it has as many nothing is read from the connection, not even
	// replies to calls in the reverse direction. So fewer handlers than that should
	// wait for Request.Back at a time.
	Calls int

	// Memory limits the octets of all calls and replies; 0 is [DefaultMemory]. One half is
	// for calls, also while they arrive, the other for what handlers get from
	// Request.Alloc. Each is a hard limit: a call is not read, and Request.Alloc does not
	// return, until there is memory. (A message longer than a half is accepted when it is
	// alone. A handler that asks a second time waits for a second at most.) In addition
	// each connection has some 20 KiB.
	//
	// A connection gets at most a quarter of a half, except for a single longer message.
	// The share that has least gets memory first. A share that is alone gets at most
	// three quarters of a half, so that another need not wait for it. If others wait for
	// memory, a connection is closed whose peer for 250 ms does not send the rest of a
	// call, or receives nothing of a reply.
	Memory int

	// Record limits one call. The default is that of package oncrpc.
	Record oncrpc.RecordLimits

	// Idle is how long a connection without calls is kept; 0 is [DefaultIdle], negative
	// is forever.
	Idle time.Duration

	// Stall is how long the rest of a call may take once its first octet has arrived, and
	// how long the peer may take to receive a reply; 0 is [DefaultStall]. After that the
	// connection is closed.
	Stall time.Duration

	// TLS, if not nil, offers RPC with TLS (RFC 9289) on the same port: to each client
	// that asks for it, before its first call or after earlier ones. Who does not ask is
	// served in the clear; a handler that does not want that looks at
	// Request.Origin.Security, as mount.Access does. The server uses a copy of the
	// configuration, with TLS 1.3 only, the protocol sunrpc, and no resumption.
	//
	// ClientAuth says what is asked of clients. A certificate counts only if crypto/tls has
	// verified it by ClientCAs; Request.Origin.TLS has no other.
	//
	// A handshake may take as long as Stall, and at most 20 seconds. It counts as 320 KiB
	// of Memory, among calls; and each connection has some 40 KiB more. A connection ends
	// gracefully after the server has sent 2^24 TLS records, 256 GiB of full ones (RFC 8446
	// §5.5).
	TLS *tls.Config

	// Wrap, if not nil, wraps each connection. It is below TLS.
	Wrap func(net.Conn) net.Conn

	// Logger logs refused connections at level Warn, connections that ended with an error
	// and
	// connections that begin TLS, at Info, and calls without an answer at Debug. Nil logs
	// nothing.
	Logger *slog.Logger
}

// A Server serves calls over TCP and UDP. Its methods may be called by any goroutine.
type Server struct {
	cfg      ServerConfig
	setting  setting
	places   *fairness.Places
	refusals fairness.Log // of refused and evicted connections

	mu      sync.Mutex
	ended   bool                 // by Shutdown or Close
	links   map[*link]struct{}   // those being served
	ends    map[*func()]struct{} // of each Serve and ServePacket
	running sync.WaitGroup       // of links, Serves and ServePackets
}

// NewServer returns a server. Nothing happens before Serve.
func NewServer(cfg ServerConfig) (*Server, error) {
	if cfg.Handler == nil {
		return nil, errors.New("rpctcp: a server needs a Handler")
	}
	cfg.Connections = or(cfg.Connections, DefaultConnections)
	cfg.Calls = or(cfg.Calls, DefaultCalls)
	cfg.Memory = or(cfg.Memory, DefaultMemory)
	cfg.Stall = or(cfg.Stall, DefaultStall)
	if cfg.Idle == 0 {
		cfg.Idle = DefaultIdle
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.TLS != nil {
		var err error
		if cfg.TLS, err = serverProfile(cfg.TLS); err != nil {
			return nil, err
		}
	}
	in, out := fairness.NewMemory(int64(cfg.Memory)/2), fairness.NewMemory(int64(cfg.Memory)/2)
	return &Server{
		cfg: cfg,
		setting: setting{
			handler: cfg.Handler, slots: cfg.Calls, record: cfg.Record, idle: cfg.Idle, stall: cfg.Stall,
			acceptTLS: cfg.TLS, mostRecords: maxRecords, in: in, out: out, own: in, log: cfg.Logger,
		},
		places:   fairness.NewPlaces(cfg.Connections),
		refusals: fairness.Log{Logger: cfg.Logger},
		links:    make(map[*link]struct{}),
		ends:     make(map[*func()]struct{}),
	}, nil
}

// or returns v, or what stands for a v that is not positive.
func or[T int | time.Duration](v, instead T) T {
	if v <= 0 {
		return instead
	}
	return v
}

// ErrServerClosed is what Serve returns after Shutdown or Close.
var ErrServerClosed = errors.New("rpctcp: the server is closed")

// Serve accepts connections of ln and serves them until the context or the server ends,
// and closes ln. It returns when the last of the connections has ended: at once when the
// context ends, gracefully with [Server.Shutdown]. The error is never nil.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	defer ln.Close()
	leave, err := s.register(func() { ln.Close() })
	if err != nil {
		return err
	}
	defer leave()
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	var links sync.WaitGroup
	defer links.Wait()
	wait := firstWait
	for {
		nc, err := ln.Accept()
		if err == nil {
			wait = firstWait
			// Here, so that nothing is accepted that there is no place for.
			if l, err := s.newLink(ctx, nc); err == nil {
				links.Go(func() { s.logEnd(ctx, l, s.serve(l)) })
			}
			continue
		}
		if err := s.over(ctx); err != nil {
			return err
		}
		if t, ok := err.(interface{ Temporary() bool }); !ok || !t.Temporary() {
			return fmt.Errorf("rpctcp: cannot accept: %w", err)
		}
		// Mostly too many descriptors: others have to end first.
		s.cfg.Logger.Warn("cannot accept", "err", err)
		select {
		case <-time.After(wait):
			wait = min(2*wait, lastWait)
		case <-ctx.Done():
		}
	}
}

// firstWait and lastWait are the first and the longest backoff of Serve when it cannot
// accept.
const (
	firstWait = 5 * time.Millisecond
	lastWait  = time.Second
)

// over returns why the server, or a Serve with this context, is to end, or nil.
func (s *Server) over(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return ErrServerClosed
	}
	return ctx.Err()
}

// register adds what Shutdown and Close end and wait for.
func (s *Server) register(end func()) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, ErrServerClosed
	}
	s.ends[&end] = struct{}{}
	s.running.Add(1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.ends, &end)
		s.running.Done()
	}, nil
}

// logEnd logs how a link has ended, unless that is ordinary.
func (s *Server) logEnd(ctx context.Context, l *link, err error) {
	switch {
	case err == nil || s.over(ctx) != nil:
	case errors.Is(err, fairness.ErrEvicted), errors.Is(err, fairness.ErrNoMemory):
		s.refusals.Log(slog.LevelWarn, "closed a connection", l.from.Share(), l.raw.RemoteAddr(), err)
	default:
		s.cfg.Logger.Info("connection ended", "from", l.nc.RemoteAddr(), "err", err)
	}
}

// ServeConn serves one connection until it ends, and closes it. It returns nil if the peer
// closed it between two calls, or Shutdown did.
func (s *Server) ServeConn(ctx context.Context, nc net.Conn) error {
	l, err := s.newLink(ctx, nc)
	if err != nil {
		return err
	}
	return s.serve(l)
}

// newLink makes a link of a connection if it may be served and there is a place
// for it. Otherwise it closes the connection.
func (s *Server) newLink(ctx context.Context, nc net.Conn) (*link, error) {
	from, err := s.originOf(nc)
	if err != nil {
		drop(nc)
		s.refusals.Log(slog.LevelWarn, "refused a connection", origin.Of(nc.RemoteAddr()).Share(), nc.RemoteAddr(), err)
		return nil, err
	}
	raw := nc
	if s.cfg.Wrap != nil {
		nc = s.cfg.Wrap(nc)
	}
	l := newLink(ctx, nc, raw, from, &s.setting)
	if err := s.admit(l); err != nil {
		l.Evict(err)
		l.closeAccounts()
		if err != ErrServerClosed && ctx.Err() == nil {
			s.refusals.Log(slog.LevelWarn, "refused a connection", from.Share(), raw.RemoteAddr(), err)
		}
		return nil, err
	}
	return l, nil
}

// serve serves a link that begin has made.
func (s *Server) serve(l *link) error {
	defer s.removeLink(l)
	if err := l.run(); err != nil && !errors.Is(err, errDraining) && !errors.Is(err, errIdle) {
		return err
	}
	return nil
}

// originOf returns where a connection comes from if it may be served.
func (s *Server) originOf(nc net.Conn) (*origin.Origin, error) {
	switch {
	case s.cfg.Admit != nil:
		return s.cfg.Admit(nc)
	case s.cfg.Allow != nil && !s.cfg.Allow(nc.RemoteAddr()):
		return nil, errNotAllowed
	}
	return origin.Of(nc.RemoteAddr()), nil
}

// errNotAllowed is why a connection is closed at once.
var errNotAllowed = errors.New("its address is not allowed")

// admit gives a link its place and counts it in.
func (s *Server) admit(l *link) (err error) {
	if err := s.over(l.ctx); err != nil {
		return err
	}
	if l.place, err = s.places.Acquire(l.ctx, l.from.Share(), l); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		l.place.Free()
		return ErrServerClosed
	}
	s.links[l] = struct{}{}
	s.running.Add(1)
	return nil
}

func (s *Server) removeLink(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.links, l)
	s.running.Done()
}

// Shutdown ends the server gracefully. It accepts no more connections or calls, waits for
// the replies to calls in progress to be sent, and closes the connections. If the context
// ends first, Shutdown closes the others at once and returns the context's error. When it
// returns, all memory of the server is free, except what handlers keep that ignore their
// context.
func (s *Server) Shutdown(ctx context.Context) error {
	s.endAll((*link).drain)
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.endAll(func(l *link) { l.close(ErrServerClosed) })
		<-done
		return ctx.Err()
	}
}

// Close ends the server at once, and waits until the handlers have returned.
func (s *Server) Close() error {
	s.endAll(func(l *link) { l.close(ErrServerClosed) })
	s.running.Wait()
	return nil
}

// endAll ends every Serve, and calls how for each link.
func (s *Server) endAll(how func(*link)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for end := range s.ends {
		(*end)()
	}
	for l := range s.links {
		how(l)
	}
}
