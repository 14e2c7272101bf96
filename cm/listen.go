package cm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/internal/listening"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/verbs"
)

// A ListenConfig says how a Listener treats those who connect. The zero value
// is useful.
type ListenConfig struct {
	// MPA holds what is not the default of the start-up, as in Params; IRD and
	// ORD in it are what a rejection tells the peer.
	MPA mpa.Config

	// Backlog bounds, each by itself, the connections in start-up and the
	// requests that wait for Accept. Both are divided by [origin.Share]: a
	// connection beyond the first takes the place of the oldest in start-up of the
	// share with the most, so that those who connect and say nothing do not shut
	// out those who speak; a request beyond the second that of the oldest of a
	// share that has more of them than its own, and is closed if there is none. 0
	// means 128.
	//
	// Both count against Limits.PendingConnections of the RNIC, too. When that
	// is met a connection takes the place of another of this listener in start-up,
	// and is closed if there is none.
	Backlog int

	// Socket holds the options of the socket that listens, which its connections
	// have from it.
	Socket Socket

	// Wrap, if not nil, is put around each connection before start-up.
	Wrap func(net.Conn) net.Conn

	// Admit, if not nil, decides which connections are taken. Without it all are,
	// with origin.Of as their origin. A refused connection is reset before one of its
	// octets is read. Admit is asked for one connection after the other, and so must not wait for
	// a peer.
	Admit origin.Admit

	// Logger tells of connections that did not get as far as Accept; nil is
	// silent.
	Logger *slog.Logger
}

// A Listener takes connections. Its methods may be called by any goroutine.
type Listener struct {
	rnic   *verbs.RNIC
	ln     net.Listener
	cfg    ListenConfig
	log    *slog.Logger
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	starts *fairness.Places // of those in start-up
	waits  *fairness.Places // of those in the queue
	turned fairness.Log     // those turned away

	mu       sync.Mutex
	starting map[*starting]struct{} // each counts against the RNIC's limit
	queue    []*queued              // oldest first; each counts, too
	arrived  chan struct{}          // capacity 1: there may be something in the queue
}

// Listen listens on a local address: network is "tcp", "tcp4" or "tcp6" and addr
// host:port, where port 0 takes any, or "unix" and a path; any other network is a
// net.UnknownNetworkError. What it takes is for queue pairs of
// rnic. The context bounds the call alone. A listener counts against
// Limits.Listeners of the RNIC, or Listen fails with verbs.ErrResources, and is
// closed with the RNIC.
func Listen(ctx context.Context, rnic *verbs.RNIC, network, addr string, cfg ListenConfig) (*Listener, error) {
	if err := checkNetwork(network); err != nil {
		return nil, fmt.Errorf("cm: listen: %w", err)
	}
	lc := net.ListenConfig{Control: cfg.Socket.Control}
	lc.SetMultipathTCP(false) // its segments are not what MPA aligns FPDUs with
	ln, err := lc.Listen(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("cm: listen: %w", err)
	}
	l, err := newListener(rnic, ln, cfg)
	if err != nil {
		_ = ln.Close() // nobody has connected
	}
	return l, err
}

// NewListener takes connections for rnic from ln, which it owns from then on.
// It fails, and ln stays the caller's, with verbs.ErrRNIC, or with
// verbs.ErrResources when the RNIC has as many listeners as it may. cfg.Socket is
// applied to ln, and counts for connections that begin from then on; it has to be
// empty unless ln is a syscall.Conn, as a *net.TCPListener is.
func NewListener(rnic *verbs.RNIC, ln net.Listener, cfg ListenConfig) (*Listener, error) {
	if cfg.Socket != (Socket{}) {
		c, ok := ln.(syscall.Conn)
		if !ok {
			return nil, errNoSocket
		}
		if err := cfg.Socket.Apply(c); err != nil {
			return nil, err
		}
	}
	return newListener(rnic, ln, cfg)
}

func newListener(rnic *verbs.RNIC, ln net.Listener, cfg ListenConfig) (*Listener, error) {
	if cfg.Backlog <= 0 {
		cfg.Backlog = 128
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Listener{
		rnic: rnic, ln: ln, cfg: cfg, log: log, ctx: ctx, cancel: cancel, arrived: make(chan struct{}, 1),
		starts: fairness.NewPlaces(cfg.Backlog), waits: fairness.NewPlaces(cfg.Backlog),
		turned: fairness.Log{Logger: log}, starting: make(map[*starting]struct{}),
	}
	l.wg.Add(1) // before the RNIC may close it
	if err := listening.Of(rnic).AttachListener(l); err != nil {
		cancel()
		return nil, fmt.Errorf("cm: %w", err)
	}
	go l.serve()
	return l, nil
}

// Addr is the address that the listener has.
func (l *Listener) Addr() net.Addr { return l.ln.Addr() }

// Accept waits for the next request for a connection. It fails with the
// context's error, or with ErrClosed.
func (l *Listener) Accept(ctx context.Context) (*Request, error) {
	for {
		if l.ctx.Err() != nil {
			return nil, ErrClosed
		}
		if r := l.next(); r != nil {
			return r, nil
		}
		select {
		case <-l.arrived:
		case <-l.ctx.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// next takes a request that is still alive, if there is one: the oldest of the share
// with the fewest, so that nobody waits for all those of another.
func (l *Listener) next() *Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bury()
	if len(l.queue) == 0 {
		return nil
	}
	i := fewest(l.queue)
	q := l.queue[i]
	l.queue = slices.Delete(l.queue, i, i+1)
	q.settle() // it is the consumer's
	if len(l.queue) > 0 {
		l.rouse() // another Accept may be waiting
	}
	return q.r
}

// bury drops requests whose time to be decided is over; needs mu.
func (l *Listener) bury() {
	l.queue = slices.DeleteFunc(l.queue, func(q *queued) bool {
		if !q.r.mpa.Expired() {
			return false
		}
		q.settle()
		return true
	})
}

// rouse wakes an Accept.
func (l *Listener) rouse() {
	select {
	case l.arrived <- struct{}{}:
	default:
	}
}

// Close stops listening and closes all connections that Accept has not
// returned. When it returns nothing of the listener is left.
func (l *Listener) Close() error {
	l.cancel()
	err := l.ln.Close()
	l.wg.Wait()
	listening.Of(l.rnic).DetachListener(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.queue {
		_ = q.r.mpa.Close() // answered or expired already
		q.settle()
	}
	l.queue = nil
	return err
}

// serve takes connections until the listener is closed.
func (l *Listener) serve() {
	defer l.wg.Done()
	for {
		nc, err := l.ln.Accept()
		switch {
		case err == nil:
			l.take(nc)
		case l.ctx.Err() != nil, errors.Is(err, net.ErrClosed):
			return
		default: // out of descriptors, or the peer was gone: others may have more luck
			l.log.Warn("accept", "err", err)
			select {
			case <-time.After(acceptPause):
			case <-l.ctx.Done():
				return
			}
		}
	}
}

// take has a connection begin its start-up if it is admitted and there is room.
// Nothing is left of others.
func (l *Listener) take(nc net.Conn) {
	from, err := l.admit(nc)
	if err != nil {
		drop(nc)
		l.turned.Tell(slog.LevelWarn, "refused a connection", origin.Of(nc.RemoteAddr()).Share(), nc.RemoteAddr(), err)
		return
	}
	s, err := l.enter(nc, from) // here, in the order of their coming
	if err != nil {
		drop(nc)
		if l.ctx.Err() == nil {
			l.turned.Tell(slog.LevelWarn, "refused a connection", from.Share(), nc.RemoteAddr(), err)
		}
		return
	}
	l.wg.Go(func() { l.receive(s) })
}

func (l *Listener) admit(nc net.Conn) (*origin.Origin, error) {
	if l.cfg.Admit == nil {
		return origin.Of(nc.RemoteAddr()), nil
	}
	return l.cfg.Admit(nc)
}

// acceptPause keeps a listener that cannot accept from doing nothing else.
const acceptPause = 50 * time.Millisecond

// A Request is a peer that asks for a connection: Accept or Reject it, once,
// within the decision time of the MPA configuration (30 s by default).
type Request struct {
	mpa  *mpa.Request
	nc   net.Conn
	rnic *verbs.RNIC // whose queue pairs may have it; nil is any
	from *origin.Origin
}

// Receive waits for the request on a connection that was accepted elsewhere,
// which it owns from then on.
func Receive(ctx context.Context, nc net.Conn, cfg mpa.Config) (*Request, error) {
	r, err := mpa.Await(ctx, nc, cfg)
	if err != nil {
		_ = nc.Close() // closed already unless the configuration was at fault
		return nil, fmt.Errorf("cm: start-up with %v: %w", nc.RemoteAddr(), err)
	}
	return &Request{mpa: r, nc: nc, from: origin.Of(nc.RemoteAddr())}, nil
}

// PrivateData is what the peer says.
func (r *Request) PrivateData() []byte { return r.mpa.PrivateData }

// Origin is where the connection comes from, as ListenConfig.Admit said.
func (r *Request) Origin() *origin.Origin { return r.from }

// Peer is everything that the peer's request said.
func (r *Request) Peer() mpa.Peer { return r.mpa.Peer }

// IRD and ORD are the numbers of RDMA Reads and atomics that the peer takes and
// wants to make at a time; mpa.NotNegotiated if it did not say.
func (r *Request) IRD() int { return int(r.mpa.IRD) }

// ORD returns the latter.
func (r *Request) ORD() int { return int(r.mpa.ORD) }

// LocalAddr and RemoteAddr are those of the connection below.
func (r *Request) LocalAddr() net.Addr { return r.nc.LocalAddr() }

// RemoteAddr is the peer's address.
func (r *Request) RemoteAddr() net.Addr { return r.nc.RemoteAddr() }

// Accept accepts the connection and hands it to an Idle queue pair, which is in
// RTS when it returns. Nothing that is posted leaves before the peer's first
// message has arrived; for a peer-to-peer start-up Accept waits for that. An
// error that is this side's own mistake (ErrNotIdle, verbs.ErrQP, verbs.ErrIRD,
// verbs.ErrORD, mpa.ErrPrivateData, an mpa.Config that cannot be) leaves the
// request as it was; any other ends the connection. p.Socket and p.Wrap are not
// used: they are the listener's.
func (r *Request) Accept(ctx context.Context, qp *verbs.QP, p Params) (*Conn, error) {
	if r.rnic != nil && qp.RNIC() != r.rnic {
		return nil, fmt.Errorf("cm: accept: %w: it is not of the listener's RNIC", verbs.ErrQP)
	}
	if err := checkIdle(qp); err != nil {
		return nil, err
	}
	cfg, err := p.config(qp)
	if err != nil {
		return nil, err
	}
	mc, err := r.mpa.Accept(ctx, cfg, p.PrivateData)
	if err != nil {
		return nil, fmt.Errorf("cm: accept: %w", err)
	}
	c, err := establish(qp, mc, cfg, 0, r.mpa.PrivateData)
	if err != nil || !mc.Params().PeerToPeer {
		return c, err
	}
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Reject refuses the connection and tells the peer privateData.
func (r *Request) Reject(privateData []byte) error {
	if err := r.mpa.Reject(privateData); err != nil {
		return fmt.Errorf("cm: reject: %w", err)
	}
	// RFC 5044 §7.1.2: the connection is the consumer's now, and it is done.
	return r.nc.Close()
}
