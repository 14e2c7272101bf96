// A listener, and the requests that it returns.
//
// A connection goes through these steps, and each can be its last:
//
//  1. serve accepts it, and ListenConfig.Admit decides about its origin.
//  2. It takes a place among those in start-up, perhaps another's (enter).
//  3. A goroutine of its own makes the TLS handshake, if there is one, and reads the
//     peer's Request frame (receive).
//  4. It lets those of its share that were accepted before it go first, for a moment
//     (awaitTurn), and exchanges its place for one in the queue (offer).
//  5. Listener.Accept takes it from the queue (next), and the consumer answers it by
//     Request.Accept or Request.Reject.
//
// From step 2 to step 5 it counts against the RNIC's Limits.PendingConnections.
//
// Locking: Listener.mu guards the set of those in start-up and the queue. The lock of
// the places comes after it: a place may be freed under Listener.mu, and Places
// call Evict, which takes Listener.mu, without their own lock.

package cm

import (
	"context"
	"crypto/tls"
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
	"github.com/weft-rdma/weft/internal/panics"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/verbs"
)

// A ListenConfig says how a Listener treats connections. The zero value is useful.
type ListenConfig struct {
	// MPA configures start-up, as in Params. Its IRD and ORD are what a rejection
	// says.
	MPA mpa.Config

	// Backlog limits the connections in start-up, and separately the requests that
	// wait for Accept. 0 is 128. Both are divided by [origin.Share]. When start-up is
	// full, a new connection takes the place of the oldest one of the share with the
	// most, so that peers that connect and send nothing do not shut out others. When
	// the queue is full, a new request takes the place of the oldest one of a share
	// that has more than its own; if there is none, it is closed.
	//
	// Both also count against Limits.PendingConnections of the RNIC. When that limit
	// is reached, a new connection takes the place of one in start-up at this
	// listener; if there is none, it is closed.
	Backlog int

	// Socket holds the options of the listening socket, which its connections
	// inherit.
	Socket Socket

	// TLS, if not nil, encrypts all connections, as Params.TLS does for those of
	// Dial. The handshake is a part of start-up: it counts against Backlog and
	// MPA.RequestTimeout, and a peer may send 64 KiB before it is over. Its ClientAuth
	// says whether peers have to present a certificate. A peer that uses MPA without TLS
	// gets an alert, and the error that is logged is an ErrPlain.
	TLS *tls.Config

	// KeyRecords is that of Params.
	KeyRecords uint64

	// Wrap, if not nil, is put around each connection before start-up, inside of TLS.
	Wrap func(net.Conn) net.Conn

	// Admit, if not nil, decides which connections are admitted, and returns their
	// origin. Without it all are, with origin.Of as their origin. A connection that is
	// not admitted is reset before an octet of it is read. Connections wait for
	// each other's Admit, so it must not wait for a peer.
	Admit origin.Admit

	// Logger logs connections that ended before Accept; nil logs nothing.
	Logger *slog.Logger
}

// A Listener accepts connections. Its methods may be called by any goroutine.
type Listener struct {
	rnic   *verbs.RNIC
	ln     net.Listener
	cfg    ListenConfig
	log    *slog.Logger
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	starts   *fairness.Places // of connections in start-up
	waits    *fairness.Places // of requests in the queue
	refusals fairness.Log

	mu       sync.Mutex
	starting map[*starting]struct{}     // each counts against the RNIC's limit
	latest   map[origin.Share]*starting // of those, the one accepted last
	queue    []*queued                  // oldest first; each counts, too
	arrived  chan struct{}              // capacity 1: the queue may have a request
}

// Listen listens on a local address: network is "tcp", "tcp4" or "tcp6" and addr
// host:port, where port 0 takes any, or "unix" and a path; any other network is a
// net.UnknownNetworkError. Its connections are for queue pairs of rnic. The context
// limits only the call. The listener counts against the RNIC's Limits.Listeners, beyond
// which Listen fails with verbs.ErrResources, and is closed with the RNIC.
func Listen(ctx context.Context, rnic *verbs.RNIC, network, addr string, cfg ListenConfig) (*Listener, error) {
	if err := checkNetwork(network); err != nil {
		return nil, fmt.Errorf("cm: listen: %w", err)
	}
	lc := net.ListenConfig{Control: cfg.Socket.Control}
	lc.SetMultipathTCP(false) // it hides the segment size, to which MPA aligns FPDUs
	ln, err := lc.Listen(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("cm: listen: %w", err)
	}
	l, err := newListener(rnic, ln, cfg)
	if err != nil {
		_ = ln.Close() // it has no connections
	}
	return l, err
}

// NewListener is Listen with an existing listener, which it owns from then on. If it
// fails, with verbs.ErrRNIC or verbs.ErrResources, say, ln is still the caller's.
// cfg.Socket is applied to ln, and so to connections that begin afterwards; it has to be
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
	if cfg.TLS != nil {
		cfg.TLS = profile(cfg.TLS)
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Listener{
		rnic: rnic, ln: ln, cfg: cfg, log: log, ctx: ctx, cancel: cancel, arrived: make(chan struct{}, 1),
		starts: fairness.NewPlaces(cfg.Backlog), waits: fairness.NewPlaces(cfg.Backlog),
		refusals: fairness.Log{Logger: log}, starting: make(map[*starting]struct{}),
		latest: make(map[origin.Share]*starting),
	}
	l.wg.Add(1) // before the RNIC may close it
	if err := listening.Of(rnic).AttachListener(l); err != nil {
		cancel()
		return nil, fmt.Errorf("cm: %w", err)
	}
	go l.serve()
	return l, nil
}

// Addr returns the local address.
func (l *Listener) Addr() net.Addr { return l.ln.Addr() }

// Accept waits for a request for a connection. It fails with the context's error, or
// with ErrClosed. Among the requests that wait it returns the oldest of the share that
// has the fewest, so that no share waits for all requests of another.
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

// next removes the request from the queue that Accept is to return; nil if there is
// none.
func (l *Listener) next() *Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropExpired()
	if len(l.queue) == 0 {
		return nil
	}
	i := fewest(l.queue)
	q := l.queue[i]
	l.queue = slices.Delete(l.queue, i, i+1)
	q.release() // it is the consumer's now
	if len(l.queue) > 0 {
		l.wakeAccept() // there may be several
	}
	return q.r
}

// expire removes requests from the queue that were not answered in time.
func (l *Listener) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropExpired()
}

// dropExpired is expire; needs mu.
func (l *Listener) dropExpired() {
	l.queue = slices.DeleteFunc(l.queue, func(q *queued) bool {
		if !q.r.mpa.Expired() {
			return false
		}
		q.release()
		return true
	})
}

// wakeAccept wakes an Accept that waits.
func (l *Listener) wakeAccept() {
	select {
	case l.arrived <- struct{}{}:
	default:
	}
}

// Close stops listening and closes all connections that Accept has not returned. When
// it returns, all goroutines of the listener have ended.
func (l *Listener) Close() error {
	l.cancel()
	err := l.ln.Close()
	l.wg.Wait()
	listening.Of(l.rnic).DetachListener(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.queue {
		_ = q.r.mpa.Close() // answered or expired already
		q.release()
	}
	l.queue = nil
	return err
}

// serve accepts connections until the listener is closed.
func (l *Listener) serve() {
	defer panics.Recover()
	defer l.wg.Done()
	for {
		nc, err := l.ln.Accept()
		switch {
		case err == nil:
			l.start(nc)
		case l.ctx.Err() != nil, errors.Is(err, net.ErrClosed):
			return
		default: // out of descriptors, or the peer is gone: the next may succeed
			l.log.Warn("accept", "err", err)
			select {
			case <-time.After(acceptPause):
			case <-l.ctx.Done():
				return
			}
		}
	}
}

// start begins the start-up of a connection if it is admitted and there is a place;
// otherwise it closes the connection.
func (l *Listener) start(nc net.Conn) {
	from, err := l.admit(nc)
	if err != nil {
		drop(nc)
		l.refusals.Log(slog.LevelWarn, "refused a connection", origin.Of(nc.RemoteAddr()).Share(), nc.RemoteAddr(), err)
		return
	}
	s, err := l.enter(nc, from) // here, so that they enter in the order of arrival
	if err != nil {
		drop(nc)
		if l.ctx.Err() == nil {
			l.refusals.Log(slog.LevelWarn, "refused a connection", from.Share(), nc.RemoteAddr(), err)
		}
		return
	}
	l.wg.Go(func() {
		defer panics.Recover()
		l.receive(s)
	})
}

func (l *Listener) admit(nc net.Conn) (*origin.Origin, error) {
	if l.cfg.Admit == nil {
		return origin.Of(nc.RemoteAddr()), nil
	}
	return l.cfg.Admit(nc)
}

// acceptPause keeps a listener that can't accept from spinning.
const acceptPause = 50 * time.Millisecond

// A Request is a peer's request for a connection. Accept or Reject it, once, within
// the decision time of the MPA configuration (30 s by default).
type Request struct {
	mpa  *mpa.Request
	nc   net.Conn
	rnic *verbs.RNIC // whose queue pairs may accept it; nil is any
	from *origin.Origin
}

// Receive waits for the request on a connection that was accepted elsewhere. It owns
// the connection from then on. For an encrypted one it gets the result of
// AcceptTLS.
func Receive(ctx context.Context, nc net.Conn, cfg mpa.Config) (*Request, error) {
	r, err := mpa.Await(ctx, nc, cfg)
	if err != nil {
		_ = nc.Close() // closed already, unless the configuration is invalid
		return nil, fmt.Errorf("cm: start-up with %v: %w", nc.RemoteAddr(), err)
	}
	return &Request{mpa: r, nc: nc, from: origin.Of(nc.RemoteAddr())}, nil
}

// AcceptTLS makes a TLS connection of one that was accepted elsewhere, by the profile of
// docs/tls.md as ListenConfig.TLS does, for Receive. It takes no longer than the context
// allows, and at most mpa.DefaultRequestTimeout. If it fails, with a *TLSError, nc is
// closed.
func AcceptTLS(ctx context.Context, nc net.Conn, cfg *tls.Config) (net.Conn, error) {
	secure, err := encrypt(ctx, nc, tls.Server, profile(cfg), newBudget(0, mpa.DefaultRequestTimeout), 0)
	if err != nil {
		return nil, fmt.Errorf("cm: start-up with %v: %w", nc.RemoteAddr(), err)
	}
	return secure, nil
}

// PrivateData returns the private data of the request.
func (r *Request) PrivateData() []byte { return r.mpa.PrivateData }

// Origin returns where the connection comes from, as ListenConfig.Admit determined.
func (r *Request) Origin() *origin.Origin { return r.from }

// Peer returns all of the peer's Request frame.
func (r *Request) Peer() mpa.Peer { return r.mpa.Peer }

// IRD returns the number of RDMA Reads and atomics that the peer accepts at a time;
// mpa.NotNegotiated if it did not say.
func (r *Request) IRD() int { return int(r.mpa.IRD) }

// TLS returns the state of the TLS connection below MPA, with the certificate that the
// peer has presented; nil if the connection is not encrypted. Origin has it, too.
func (r *Request) TLS() *tls.ConnectionState { return stateOf(r.nc) }

// ORD returns the number of RDMA Reads and atomics that the peer wants to have
// outstanding; mpa.NotNegotiated if it did not say.
func (r *Request) ORD() int { return int(r.mpa.ORD) }

// LocalAddr returns the local address of the connection.
func (r *Request) LocalAddr() net.Addr { return r.nc.LocalAddr() }

// RemoteAddr returns the peer's address.
func (r *Request) RemoteAddr() net.Addr { return r.nc.RemoteAddr() }

// Accept accepts the connection and hands it to an Idle queue pair, which is in RTS
// when Accept returns. What is posted is sent after the peer's first message has
// arrived; in a peer-to-peer start-up Accept waits for that message. After an error that
// is this side's own mistake (ErrNotIdle, verbs.ErrQP, verbs.ErrIRD, verbs.ErrORD,
// mpa.ErrPrivateData, an invalid mpa.Config) the request can still be answered; any
// other error ends the connection. p.Socket and p.Wrap are not used: they are the
// listener's.
func (r *Request) Accept(ctx context.Context, qp *verbs.QP, p Params) (*Conn, error) {
	if r.rnic != nil && qp.RNIC() != r.rnic {
		return nil, fmt.Errorf("cm: accept: %w: it belongs to another RNIC than the listener's", verbs.ErrQP)
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
	if err := c.waitReady(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Reject rejects the connection and sends privateData to the peer.
func (r *Request) Reject(privateData []byte) error {
	if err := r.mpa.Reject(privateData); err != nil {
		return fmt.Errorf("cm: reject: %w", err)
	}
	// RFC 5044 §7.1.2: the connection is the consumer's, which is done with it.
	return r.nc.Close()
}
