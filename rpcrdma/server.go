// This file is the server: it accepts connections, limits them, and ends them.

package rpcrdma

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/verbs"
)

// ErrServerClosed is what Serve returns after Shutdown or Close.
var ErrServerClosed = errors.New("rpcrdma: the server is closed")

// A Server serves RPC programs over RDMA. Its methods may be called by any
// goroutine.
type Server struct {
	cfg      ServerConfig
	pd       *verbs.PD
	pool     *pool
	failures failures
	places   *fairness.Places
	refusals fairness.Log     // of refused and evicted connections
	in, out  *fairness.Memory // of calls and replies

	// ctx ends with Close; then connections are not accepted any more.
	ctx    context.Context
	cancel context.CancelFunc

	mu        sync.Mutex
	listeners map[*cm.Listener]bool
	conns     map[*serverConn]bool // those in start-up, too
	closing   bool                 // no more connections, nor listeners
	gone      sync.WaitGroup       // of conns
	freed     sync.Once
	freeErr   error
}

// A serverConn is a connection of a server. The server's lock guards e and r.
type serverConn struct {
	e *endpoint
	r *responder // nil during start-up

	ctx   context.Context // of start-up
	stop  context.CancelCauseFunc
	began time.Time
	place *fairness.Place
	live  atomic.Pointer[responder] // r, for use without the lock
}

// NewServer makes a server on an RNIC. It has a protection domain of its own. No peer can
// access its memory there by an STag, except for replies of [ServerConfig.ReadReplies].
// Close frees what it has.
func NewServer(rnic *verbs.RNIC, cfg ServerConfig) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	pd, err := rnic.AllocPD()
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg.withDefaults(), pd: pd,
		listeners: make(map[*cm.Listener]bool), conns: make(map[*serverConn]bool),
	}
	s.pool = newPool(pd, s.cfg.IdleMemory)
	memory := int64(orDefault(cfg.Memory, DefaultMemory))
	s.in, s.out = fairness.NewMemory(memory/2), fairness.NewMemory(memory/2)
	s.places, s.refusals.Logger = fairness.NewPlaces(s.cfg.Connections), s.cfg.Logger
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Serve accepts connections from ln and serves their calls. It returns the context's error
// when the context ends, [ErrServerClosed] after Shutdown or Close, or [cm.ErrClosed]
// when ln is closed. It closes ln. Connections remain until Shutdown, Close, or their own
// ends. Several listeners may be served at a time.
func (s *Server) Serve(ctx context.Context, ln *cm.Listener) error {
	defer ln.Close()
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return ErrServerClosed
	}
	s.listeners[ln] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.listeners, ln)
		s.mu.Unlock()
	}()
	var taking sync.WaitGroup
	defer taking.Wait()
	slots := make(chan struct{}, entering)
	for {
		slots <- struct{}{}
		req, err := ln.Accept(ctx)
		if err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.closing {
				return ErrServerClosed
			}
			return err
		}
		taking.Go(func() {
			s.serveAsync(req)
			<-slots
		})
	}
}

// entering limits the connections that wait for the ones that they evict to be closed.
const entering = 16

// ServeConn serves the calls of one connection that is asked for, until it ends,
// and says why it did.
func (s *Server) ServeConn(req *cm.Request) error {
	c, err := s.admit(req)
	if err != nil {
		return err
	}
	return s.serve(c, req)
}

// serveAsync serves a connection in a goroutine of its own.
func (s *Server) serveAsync(req *cm.Request) {
	c, err := s.admit(req)
	if err != nil {
		if !errors.Is(err, ErrServerClosed) {
			s.refusals.Log(slog.LevelWarn, "rpcrdma: refused a connection", req.Origin().Share(), req.RemoteAddr(), err)
		}
		return
	}
	go func() {
		err := s.serve(c, req)
		if errors.Is(err, fairness.ErrEvicted) || errors.Is(err, fairness.ErrNoMemory) {
			s.refusals.Log(slog.LevelWarn, "rpcrdma: closed a connection", req.Origin().Share(), req.RemoteAddr(), err)
			return
		}
		s.log("a connection has ended", req.RemoteAddr(), err)
	}()
}

// admit makes a place among the connections for one more, or rejects it.
func (s *Server) admit(req *cm.Request) (*serverConn, error) {
	c, err := s.enter(req)
	if err != nil {
		_ = req.Reject(nil)
	}
	return c, err
}

func (s *Server) enter(req *cm.Request) (c *serverConn, err error) {
	if s.cfg.Allow != nil && !s.cfg.Allow(req.RemoteAddr()) {
		return nil, errors.New("rpcrdma: this address is not allowed to connect")
	}
	c = &serverConn{began: time.Now()}
	c.ctx, c.stop = context.WithCancelCause(s.ctx)
	if c.place, err = s.places.Acquire(c.ctx, req.Origin().Share(), c); err != nil {
		c.stop(err)
		if s.ctx.Err() != nil {
			err = ErrServerClosed
		}
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		c.place.Free()
		c.stop(ErrServerClosed)
		return nil, ErrServerClosed
	}
	s.conns[c] = true
	s.gone.Add(1)
	return c, nil
}

// Standing is that of a [fairness.Holder].
func (c *serverConn) Standing() fairness.Standing {
	r := c.live.Load()
	if r == nil {
		return fairness.Standing{Since: c.began}
	}
	heard := r.e.heard.Load()
	moved, awaited := r.e.queue.moved()
	idle := r.e.idle()
	if awaited {
		idle = min(idle, moved)
	}
	return fairness.Standing{
		Spoken:  heard != 0,
		Working: r.serving.Load() > r.blocked.Load(),
		Since:   time.Now().Add(-idle),
	}
}

// Evict ends the connection at once.
func (c *serverConn) Evict(why error) (gone bool) {
	c.stop(fmt.Errorf("rpcrdma: %w", why))
	if r := c.live.Load(); r != nil {
		r.Evict(why)
	}
	return false
}

// serve accepts an admitted connection and serves it until it ends.
func (s *Server) serve(c *serverConn, req *cm.Request) error {
	defer s.gone.Done()
	defer c.stop(nil)
	left := sync.OnceFunc(func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		c.place.Free()
	})
	defer left()
	cfg := &s.cfg
	e, err := newEndpoint(s.pd, s.pool, cfg.endpoint())
	if err != nil {
		_ = req.Reject(nil)
		return err
	}
	conn, err := req.Accept(c.ctx, e.qp, e.params(cm.Params{MPA: cfg.MPA}))
	if err != nil {
		e.discard()
		return cmp.Or(context.Cause(c.ctx), err)
	}
	e.connected(conn, req.IRD())
	r := s.newResponder(e, req.Origin())
	defer r.closeAccounts()
	s.mu.Lock()
	c.e, c.r = e, r
	c.live.Store(r)
	switch {
	case s.closing:
		e.fail(ErrServerClosed)
	case c.ctx.Err() != nil:
		e.fail(context.Cause(c.ctx))
	}
	s.mu.Unlock()
	err = e.run()
	left() // its socket is closed; handlers may have something to do still
	r.handlers.Wait()
	r.session.close()
	return err
}

// newResponder makes the responder of an endpoint and, for calls in reverse, its
// requester.
func (s *Server) newResponder(e *endpoint, from *origin.Origin) *responder {
	cfg := &s.cfg
	rcfg := cfg.responder(&s.failures, s.in, s.out)
	rcfg.from = from
	r := newResponder(e, rcfg)
	e.responder = r
	if cfg.ReverseCalls > 0 {
		requester := newRequester(e, requesterConfig{credits: uint32(cfg.ReverseCalls), short: true, logger: cfg.Logger})
		e.requester = requester
		r.back = &backCaller{r: requester, timeout: cfg.ReverseTimeout}
	}
	return r
}

// Shutdown ends the server gracefully: it takes no more connections and no more
// calls, waits for the replies to those in progress to be sent, and closes the
// connections. When the context ends first it does what Close does, and returns
// the context's error.
func (s *Server) Shutdown(ctx context.Context) error {
	conns := s.stop()
	var quiet sync.WaitGroup
	for _, c := range conns {
		drained := c.r.drain()
		quiet.Go(func() {
			select {
			case <-drained:
				_ = c.e.qp.Close(ctx) // the endpoint sees how it ends
			case <-ctx.Done():
			}
		})
	}
	quiet.Wait()
	err := ctx.Err()
	return errors.Join(err, s.Close())
}

// Close ends all connections at once, waits for their handlers, whose contexts
// have ended then, and frees what the server has.
func (s *Server) Close() error {
	for _, c := range s.stop() {
		c.e.fail(ErrServerClosed)
	}
	s.cancel()
	s.gone.Wait()
	s.freed.Do(func() { s.freeErr = errors.Join(s.pool.close(), s.pd.Dealloc()) })
	return s.freeErr
}

// stop closes the listeners and returns the connections, of which there will be
// no more.
func (s *Server) stop() (conns []*serverConn) {
	s.mu.Lock()
	s.closing = true
	var listeners []*cm.Listener
	for ln := range s.listeners {
		listeners = append(listeners, ln)
	}
	for c := range s.conns {
		if c.r != nil {
			conns = append(conns, c)
		}
	}
	s.mu.Unlock()
	for _, ln := range listeners {
		_ = ln.Close()
	}
	return conns
}

func (s *Server) log(what string, peer net.Addr, err error) {
	if l := s.cfg.Logger; l != nil {
		l.Info("rpcrdma: "+what, "peer", peer, "reason", err)
	}
}
