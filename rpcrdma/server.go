// This file is the server: it takes connections, bounds them, and ends them.

package rpcrdma

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// ErrServerClosed is what Serve returns after Shutdown or Close.
var ErrServerClosed = errors.New("rpcrdma: the server is closed")

// How long a connection has to be idle to be closed in favour of a new one: one that
// has called, and one that has not, or is in start-up still.
const (
	evictAfter  = 10 * time.Second
	evictSilent = time.Second
)

// A Server serves RPC programs over RDMA. Its methods may be called by any
// goroutine.
type Server struct {
	cfg      ServerConfig
	pd       *verbs.PD
	pool     *pool
	failures failures
	budget   budget

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
	stop  context.CancelFunc
	began time.Time
}

// NewServer makes a server on an RNIC. It has a protection domain of its own,
// and memory there that no peer can reach by an STag, other than replies of
// [ServerConfig.ReadReplies]. Close frees what it has.
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
	s.budget.most = int64(limit(cfg.Memory, DefaultServerMemory))
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Serve takes connections from ln and serves their calls. It returns when the
// context ends, with its error; after Shutdown or Close, with [ErrServerClosed];
// or when ln is closed, with [cm.ErrClosed]. In any case ln is closed then;
// connections stay until Shutdown, Close, or their ends. Several listeners may
// be served at a time.
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
	for {
		req, err := ln.Accept(ctx)
		if err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.closing {
				return ErrServerClosed
			}
			return err
		}
		s.take(req)
	}
}

// ServeConn serves the calls of one connection that is asked for, until it ends,
// and says why it did.
func (s *Server) ServeConn(req *cm.Request) error {
	c, err := s.admit(req)
	if err != nil {
		return err
	}
	return s.serve(c, req)
}

// take serves a connection in a goroutine of its own.
func (s *Server) take(req *cm.Request) {
	c, err := s.admit(req)
	if err != nil {
		s.log("refused a connection", req.RemoteAddr(), err)
		return
	}
	go func() { s.log("a connection has ended", req.RemoteAddr(), s.serve(c, req)) }()
}

// admit makes a place among the connections for one more, or rejects it.
func (s *Server) admit(req *cm.Request) (*serverConn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	switch {
	case s.closing:
		err = ErrServerClosed
	case s.cfg.Allow != nil && !s.cfg.Allow(req.RemoteAddr()):
		err = errors.New("rpcrdma: this address is not allowed to connect")
	case len(s.conns) >= s.cfg.Connections && !s.evict():
		err = errors.New("rpcrdma: there are as many connections as ServerConfig.Connections allows, and none is idle")
	}
	if err != nil {
		_ = req.Reject(nil)
		return nil, err
	}
	c := &serverConn{began: time.Now()}
	c.ctx, c.stop = context.WithCancel(s.ctx)
	s.conns[c] = true
	s.gone.Add(1)
	return c, nil
}

// evict closes the connection that has been idle for longest, so that those who
// connect and do nothing do not shut out others; those that have never sent anything
// come first. It reports false if none has been idle for long enough. The lock is
// held.
func (s *Server) evict() bool {
	var oldest *serverConn
	var longest time.Duration
	for c := range s.conns {
		if spare := c.spare(); spare > longest {
			oldest, longest = c, spare
		}
	}
	if oldest == nil {
		return false
	}
	oldest.stop()
	if oldest.r != nil {
		oldest.e.fail(errors.New("rpcrdma: closed in favour of another connection, as it was idle"))
	}
	delete(s.conns, oldest)
	return true
}

// spare tells which connection can best be done without: that with the most. One
// with 0 cannot. The server's lock is held.
func (c *serverConn) spare() time.Duration {
	const silent = 1 << 62
	switch {
	case c.r == nil || c.e.heard.Load() == 0:
		if idle := time.Since(c.began); idle >= evictSilent {
			return silent + idle
		}
	case !c.e.busy():
		if idle := c.e.idle(); idle >= evictAfter {
			return idle
		}
	}
	return 0
}

// serve accepts a connection that was admitted and serves it to its end.
func (s *Server) serve(c *serverConn, req *cm.Request) error {
	defer s.gone.Done()
	defer c.stop()
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	cfg := &s.cfg
	e, err := newEndpoint(s.pd, s.pool, cfg.endpoint())
	if err != nil {
		_ = req.Reject(nil)
		return err
	}
	conn, err := req.Accept(c.ctx, e.qp, e.params(cm.Params{MPA: cfg.MPA}))
	if err != nil {
		e.discard()
		return err
	}
	e.connected(conn, req.IRD())
	r := newResponder(e, cfg.responder(&s.failures, &s.budget))
	r.from = req.Origin()
	r.reads = conn.IRD() > 0 && req.ORD() != 0
	e.responder = r
	if cfg.Reverse > 0 {
		requester := newRequester(e, requesterConfig{credits: uint32(cfg.Reverse), short: true, logger: cfg.Logger})
		e.requester = requester
		r.back = &backCaller{r: requester, timeout: cfg.ReverseTimeout}
	}
	s.mu.Lock()
	c.e, c.r = e, r
	if s.closing || c.ctx.Err() != nil {
		e.fail(ErrServerClosed)
	}
	s.mu.Unlock()
	err = e.run()
	r.handlers.Wait()
	r.session.end()
	return err
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
