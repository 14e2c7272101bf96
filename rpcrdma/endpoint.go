// This file is one end of a connection, the same for client and server. One
// goroutine (run) handles completions:
//
//  1. A receive that completes is parsed and dispatched to the half for its
//     direction: calls to the responder, replies to the requester.
//  2. A work that completes calls its done.
//  3. At the end of the connection works are flushed, and each half is notified.
//
// A second goroutine (watch) ends a connection that makes no progress.
//
// Locking: mu guards only the reason of the end. Halves have locks of their own,
// which are taken before those of the send queue.

package rpcrdma

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// DefaultStall is how long a connection may make no progress, if [ServerConfig.Stall] is
// 0, and for clients.
const DefaultStall = 60 * time.Second

// errClosed is the reason for the end of a connection that was closed gracefully.
var errClosed = errors.New("rpcrdma: the connection was closed")

// An endpointConfig configures an endpoint.
type endpointConfig struct {
	role     wire.Role        // Requester for the side that connects
	private  wire.PrivateData // of this side: the sizes of its messages
	rules    wire.Rules       // limits of what is parsed
	receives int              // posted at a time
	sends    int              // RDMA Writes and Sends posted at a time
	ird, ord int              // RDMA Reads at a time: the peer's, and this side's

	// idle is how long the peer may send nothing; 0 is no limit.
	idle time.Duration

	// stall limits the time without a completion while something is posted; 0 is
	// DefaultStall.
	stall time.Duration
}

// A half is an endpoint's requester or responder: each handles one direction of calls.
type half interface {
	// received handles a message of its direction, also one with header errors, and
	// reposts it sooner or later. It must not wait.
	received(m *message)

	// busy reports whether calls are in progress.
	busy() bool

	// stuck reports whether abandoned calls have held all credits for so long that nothing
	// could be sent in its direction.
	stuck(long time.Duration) bool

	// ended is called when the connection has ended, with the reason, after the last call
	// of received and when everything posted has completed. Nothing can be sent any more.
	ended(err error)
}

// An endpoint is one end of one connection.
type endpoint struct {
	cfg   endpointConfig
	pd    *verbs.PD
	pool  *pool
	cq    *verbs.CQ
	qp    *verbs.QP
	conn  *cm.Conn         // set by connected
	peer  wire.PrivateData // of the peer
	rules wire.Rules

	receives  []message
	receiveMR *verbs.MR
	queue     sendQueue

	// peerReads reports whether the peer may make RDMA Reads, and has not stated that it
	// makes none.
	peerReads bool

	// mostReads is the agreed number of RDMA Reads at a time.
	mostReads int

	// threshold is the length of the longest message that the peer accepts, in octets.
	threshold atomic.Int64

	// heard is the time of the peer's last message, since began; 0 is none.
	heard atomic.Int64
	began time.Time

	// requester handles replies and responder handles calls. They are set before run; for
	// nil the messages are dropped.
	requester, responder half

	// ctx ends when the connection does, or is to.
	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex
	cause error // why it ends
}

// newEndpoint makes an endpoint that can be connected, by its qp, and posts its
// receives. It keeps to local memory of pool, which is of pd. Its owner calls
// connected and run, or discard.
func newEndpoint(pd *verbs.PD, pool *pool, cfg endpointConfig) (*endpoint, error) {
	e := &endpoint{cfg: cfg, pd: pd, pool: pool, rules: cfg.rules, began: time.Now()}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	if err := e.open(); err != nil {
		e.discard()
		return nil, fmt.Errorf("rpcrdma: preparing for a connection: %w", err)
	}
	return e, nil
}

func (e *endpoint) open() (err error) {
	cfg := &e.cfg
	depth := cfg.sends + cfg.ord
	if e.cq, err = e.pd.RNIC().CreateCQ(verbs.CQConfig{Entries: depth + cfg.receives}); err != nil {
		return err
	}
	e.qp, err = e.pd.CreateQP(verbs.QPConfig{
		SendCQ: e.cq, RecvCQ: e.cq,
		SendDepth: depth, RecvDepth: cfg.receives,
		SendSGEs: 2, RecvSGEs: 1,
		IRD: cfg.ird, ORD: cfg.ord,
		ReadSinkLocalWrite: true,
	})
	if err != nil {
		return err
	}
	e.queue.init(e.qp, cfg.sends, cfg.ord, cmp.Or(max(cfg.stall, 0), DefaultStall))
	return e.postReceives(cfg.receives, int(cfg.private.ReceiveSize))
}

// params returns the parameters for connecting the endpoint's queue pair, with its private
// data (RFC 8797).
func (e *endpoint) params(p cm.Params) cm.Params {
	p.PrivateData = e.cfg.private.Append(p.PrivateData)
	return p
}

// connected sets the terms of the connection: thresholds, and RDMA Reads at a time. reads
// is the number that the peer serves, mpa.NotNegotiated if it has stated none: then no more
// than one may be assumed.
func (e *endpoint) connected(conn *cm.Conn, reads int) {
	e.conn = conn
	e.peer, _ = wire.ParsePrivateData(conn.PrivateData())
	e.threshold.Store(int64(e.cfg.private.Threshold(e.peer)))
	e.mostReads = min(conn.ORD(), e.cfg.ord)
	if reads == int(mpa.NotNegotiated) {
		e.mostReads = min(e.mostReads, 1)
	}
	e.queue.limitReads(e.mostReads)
	e.peerReads = conn.IRD() > 0 && conn.MPA().PeerORD != 0
}

// run handles the connection until it ends, frees the resources of the endpoint, and
// returns the reason of the end.
func (e *endpoint) run() error {
	watch := make(chan struct{})
	go func() {
		defer close(watch)
		e.watch()
	}()
	e.progress()
	e.tearDown()
	<-watch
	return e.cause
}

// watch ends the connection when the queue pair has ended and nothing is posted
// that would complete, and when the peer makes no progress for too long.
func (e *endpoint) watch() {
	stall := e.queue.stall
	period := stall
	if e.cfg.idle > 0 {
		period = min(period, e.cfg.idle)
	}
	var last uint64
	var was bool
	var since time.Time // nothing has completed, though something was awaited
	for {
		ctx, cancel := context.WithTimeout(e.ctx, period)
		_, err := e.qp.WaitState(ctx, verbs.Idle, verbs.Error)
		cancel()
		if err == nil {
			e.fail(nil)
		}
		if e.ctx.Err() != nil {
			return
		}
		number, awaited := e.queue.progress()
		if !awaited || !was || number != last {
			last, was, since = number, awaited, time.Now()
		}
		switch {
		case awaited && time.Since(since) >= stall:
			e.fail(fmt.Errorf("rpcrdma: the peer has taken nothing of what it was sent, or asked for, for %v", time.Since(since).Round(time.Second)))
		case e.queue.overdue():
			e.fail(errors.New("rpcrdma: the peer takes what it was sent, or answers what it was asked for, too slowly"))
		case e.requester != nil && e.requester.stuck(stall):
			e.fail(fmt.Errorf("rpcrdma: the peer has not answered for %v, and lets no more calls be sent", stall))
		case e.cfg.idle > 0 && e.idle() >= e.cfg.idle && !e.busy():
			e.fail(fmt.Errorf("rpcrdma: the peer has said nothing for %v", e.idle().Round(time.Second)))
		}
	}
}

// busy reports whether anything is in progress in either direction.
func (e *endpoint) busy() bool {
	return e.responder != nil && e.responder.busy() || e.requester != nil && e.requester.busy()
}

// idle is how long ago the peer's last message came.
func (e *endpoint) idle() time.Duration {
	return time.Since(e.began) - time.Duration(e.heard.Load())
}

// progress handles completions until the connection is to end.
func (e *endpoint) progress() {
	var wcs [32]verbs.WC
	for {
		n := e.cq.Poll(wcs[:])
		if n == 0 && e.cq.Wait(e.ctx) != nil {
			return
		}
		if !e.complete(wcs[:n]) {
			return
		}
	}
}

// complete handles completions, of which one that is no success ends the
// connection. Those behind it are handled, too: the peer may have replied to
// what it did not like.
func (e *endpoint) complete(wcs []verbs.WC) (alive bool) {
	alive = true
	for i := range wcs {
		wc := &wcs[i]
		switch {
		case wc.ID&receiveID == 0:
			alive = e.queue.completed(wc) && alive
		case wc.Status != verbs.Success:
			alive = false
		default:
			m := &e.receives[wc.ID&^receiveID]
			e.heard.Store(max(1, int64(time.Since(e.began))))
			m.arrived(wc)
			e.dispatch(m)
		}
	}
	return alive
}

// dispatch passes a message to its half.
func (e *endpoint) dispatch(m *message) {
	h := e.requester
	if e.direction(m) == wire.DirectionCall {
		h = e.responder
	}
	if h == nil {
		m.repost()
		return
	}
	h.received(m)
}

// direction distinguishes calls from replies by their contents, before their XID is used
// (RFC 8167 §5). If the contents do not show it, a server has received a call and a client
// a reply.
func (e *endpoint) direction(m *message) wire.Direction {
	d := wire.DirectionUnknown
	h := &m.Header
	if m.Fault == nil {
		d = h.Direction(m.Payload, &e.rules)
	}
	// Calls of a server's own offer no chunk that a reply could be in, so this is
	// a call that lacks its Read chunk at position zero.
	if e.cfg.role == wire.Responder && h.Proc == wire.ProcNoMsg {
		d = wire.DirectionUnknown
	}
	switch {
	case d != wire.DirectionUnknown:
		return d
	case e.cfg.role == wire.Responder:
		return wire.DirectionCall
	}
	return wire.DirectionReply
}

// isFault reports whether err is of a Fault.
func isFault(err error, f wire.Fault) bool {
	e, ok := err.(*wire.Error)
	return ok && e.Fault == f
}

// fail ends the connection; the first reason counts, and nil is that of the queue pair. It may be called by any goroutine.
func (e *endpoint) fail(err error) {
	e.mu.Lock()
	if e.cause == nil {
		e.cause = err
	}
	e.mu.Unlock()
	e.cancel()
}

// tearDown ends the connection and frees the resources of the endpoint.
func (e *endpoint) tearDown() {
	e.cancel()
	e.mu.Lock()
	own := e.cause != nil
	e.mu.Unlock()
	if own {
		e.qp.Abort()
	}
	// A Terminate message that tells the peer what it did may be under way; the
	// RNIC bounds that (verbs.Config.CloseTimeout).
	if s := e.qp.State(); s == verbs.RTS {
		e.qp.Abort()
	}
	_, _ = e.qp.WaitState(context.Background(), verbs.Idle, verbs.Error)
	e.mu.Lock()
	if e.cause == nil {
		e.cause = errClosed
		if err := e.qp.Err(); err != nil {
			e.cause = fmt.Errorf("rpcrdma: the connection has ended: %w", err)
		}
	}
	err := e.cause
	e.mu.Unlock()

	e.queue.stop(err)
	_ = e.qp.Destroy() // from here on nothing uses memory of works and receives
	var wcs [32]verbs.WC
	for n := e.cq.Poll(wcs[:]); n > 0; n = e.cq.Poll(wcs[:]) {
		e.complete(wcs[:n])
	}
	e.queue.flush()
	for _, h := range []half{e.responder, e.requester} {
		if h != nil {
			h.ended(err)
		}
	}
	e.discard()
}

// discard frees what an endpoint has that is not connected.
func (e *endpoint) discard() {
	e.cancel()
	if e.qp != nil {
		_ = e.qp.Destroy() // does nothing the second time
	}
	if e.cq != nil {
		_ = e.cq.Destroy()
	}
	if e.receiveMR != nil {
		_ = e.receiveMR.Deallocate()
	}
}
