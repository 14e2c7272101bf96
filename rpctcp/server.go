// This file is the server: who is let in, how many, and how it ends.

package rpctcp

import (
	"context"
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

// What a server does where its ServerConfig says nothing.
const (
	DefaultConnections = 1024
	DefaultCalls       = 128
	DefaultMemory      = 256 << 20        // octets
	DefaultIdle        = 6 * time.Minute  // of a server
	DefaultStall       = 60 * time.Second // for a message
)

// A ServerConfig says what a [Server] is to do. Zero values are the defaults.
type ServerConfig struct {
	// Handler executes the calls. It is needed.
	Handler oncrpc.Handler

	// Allow, if not nil, says whether a peer may send a datagram, and without Admit
	// whether it may connect. Who may not is let go without a word, before anything
	// is read.
	Allow func(remote net.Addr) bool

	// Admit, if not nil, decides in place of Allow which connections are taken, and says
	// where their calls come from. Without it origin.Of does.
	// It is asked for one connection after the other, and so must not wait for a peer.
	Admit origin.Admit

	// Connections bounds the connections at a time, DefaultConnections: so many
	// descriptors are open, and one more while a connection takes the place of
	// another. They are divided by [origin.Share]: one more takes the place of one of
	// the share with the most that do nothing, or if all work, with the most; first
	// of one that has not called yet, then of the one idle for longest. It is closed
	// itself if its own share has the most and all of that work, which is: execute a
	// call, or have sent or taken something within a second.
	Connections int

	// Calls bounds the calls of one connection that are executed at a time,
	// DefaultCalls. Its peer is not listened to while it has as many. That goes for
	// replies of the peer, too: handlers that wait for Request.Back should not be
	// as many.
	Calls int

	// Memory bounds the octets of all calls and replies, DefaultMemory: one half is
	// for calls, those still arriving included, and one for what handlers ask for by
	// Request.Alloc. Each is a hard limit: a call is not read, and Request.Alloc does
	// not return, before there is memory. (A message longer than a half is taken
	// alone. A handler that asks a second time waits a second at most.) Beside it each
	// connection has some 20 KiB.
	//
	// No connection has more than a quarter of a half, unless by one message. Shares
	// get memory in the order of how little they have, and a share by itself up to
	// three quarters of a half, so that another one need not wait for it. Who lets
	// memory lie for 250 ms while others wait for it, as it does not send the rest of
	// a call or does not take a reply, is cut off.
	Memory int

	// Record bounds one call. The default is that of package oncrpc.
	Record oncrpc.RecordLimits

	// Idle is how long a connection without calls is kept, DefaultIdle; negative:
	// for ever.
	Idle time.Duration

	// Stall is how long a call may take to arrive once it has begun to, and a reply
	// to be taken, DefaultStall. A peer that needs longer is cut off.
	Stall time.Duration

	// Wrap, if not nil, is put around each connection.
	Wrap func(net.Conn) net.Conn

	// Logger logs connections that ended with an error, at level Info, and more
	// at level Debug; nil is silent.
	Logger *slog.Logger
}

// A Server serves calls over TCP, and over UDP. Its methods may be called by
// many goroutines.
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
	in, out := fairness.NewMemory(int64(cfg.Memory)/2), fairness.NewMemory(int64(cfg.Memory)/2)
	return &Server{
		cfg: cfg,
		setting: setting{
			handler: cfg.Handler, slots: cfg.Calls, record: cfg.Record, idle: cfg.Idle, stall: cfg.Stall,
			in: in, out: out, own: in, log: cfg.Logger,
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

// Serve accepts connections of ln and serves them until the context or the
// server ends, and closes ln. It returns when the last of the connections has
// ended, which they do at once with the context, and in good order by
// [Server.Shutdown]. The error is never nil.
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

// firstWait and lastWait are how long Serve waits when it cannot accept, at
// first and at most.
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

// ServeConn serves one connection until it ends, and closes it. It returns nil
// when it ended in good order: by the peer between two calls, or by Shutdown.
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

// Shutdown ends the server in good order: no connection is accepted and no call
// taken any more, those that are being executed are answered, and the
// connections closed. When the context ends first the rest is cut off, and its
// error returned. All that the server had is free when Shutdown returns, but
// what handlers that ignore their context keep.
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
