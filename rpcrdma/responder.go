// This file is the responder's half of an endpoint. The flow of a call:
//
//  1. The endpoint's goroutine receives a message (received) and gives it a free
//     peerCall. If none is free the message waits, and so does its receive.
//  2. A call with Read chunks waits for memory (budget.go) and is fetched by RDMA
//     Reads.
//  3. A worker goroutine executes the handler (start, work) and sends the reply.
//  4. When the reply has left, the peerCall is freed for a message that waits (release).
//
// Locking: mu guards the fields below it. Handlers run without it. The lock may be
// held while work requests are posted, which does not block. peercall.go says who
// owns a call at each step.

package rpcrdma

import (
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// DefaultCallMemory limits the octets of calls of one connection that are fetched at a
// time, and those of its replies, if [ServerConfig.CallMemory] is 0. A larger call is
// served alone.
const DefaultCallMemory = 64 << 20

// idleWorkers is how many goroutines of a connection wait for further calls. A new one
// would begin with a small stack, which most handlers outgrow.
const idleWorkers = 16

// A responderConfig is what a responder serves, and how.
type responderConfig struct {
	handler  oncrpc.Handler
	bindings payload.Bindings
	rules    wire.Rules
	credits  uint32           // what replies grant
	memory   int              // octets of calls in progress, and of their replies; 0 is the default
	in, out  *fairness.Memory // that calls and replies are taken from; nil has no limit
	from     *origin.Origin   // of the calls; nil is that of the address

	conf *Configurator // answers CONF_RDMA; nil leaves program 100417 to the handler
	read ReadReplies   // replies with Read lists

	failures *failures // of connections before this; nil remembers none
	logger   *slog.Logger
}

// A responder serves the calls that arrive at an endpoint.
//
// A call holds a receive of its endpoint from its arrival until its reply is about
// to be sent, so that there are no more calls in progress than receives. It holds
// a peerCall until its reply has left. There are twice as many of those as receives:
// a peer may send its next call before it has taken the reply to the last. A peer
// that keeps sending and takes no replies runs out of receives.
type responder struct {
	cfg responderConfig
	e   *endpoint

	// session is what handlers see of the connection.
	session *session
	back    oncrpc.Caller  // makes calls to the peer; nil if there is none
	from    *origin.Origin // of its calls
	peer    netip.Addr     // whose calls it serves

	handlers sync.WaitGroup // calls that handlers execute, or may
	jobs     chan *handlerCall
	idle     atomic.Int32 // goroutines that wait for jobs
	serving  atomic.Int32 // calls being executed
	blocked  atomic.Int32 // those of them that wait for memory

	// The memory of its calls and their replies.
	callMemory, replyMemory *fairness.Account
	passed                  fairness.Passage // for Stake

	mu             sync.Mutex
	grants         grants
	xids           map[uint32]bool // of calls that have no reply yet
	served         uint64          // calls that have one
	free           []*heldCall
	made           int         // peerCalls, free or not
	waiting        []*message  // calls that wait for a peerCall
	awaitingMemory []*heldCall // calls that wait for memory
	memoryAsked    bool        // the first of them has asked for it
	replies        recent      // whose Writes the peer may still refuse
	offers         []*offer    // replies with Read lists, oldest first
	offered        int         // octets of those
	held           []*heldCall // replies that wait until there are fewer of them
	overdue        *time.Timer
	draining       bool // no more calls are accepted
	closed         bool // the connection has ended
	quiet          chan struct{}
}

// newResponder makes the responder of an endpoint.
func newResponder(e *endpoint, cfg responderConfig) *responder {
	r := &responder{cfg: cfg, e: e, jobs: make(chan *handlerCall), xids: make(map[uint32]bool), quiet: make(chan struct{})}
	r.grants.limit = max(1, cfg.credits)
	r.session = newSession()
	if r.from = cfg.from; r.from == nil {
		r.from = origin.Of(e.conn.RemoteAddr())
	}
	r.peer = addrOf(e.conn.RemoteAddr())
	r.openAccounts()
	return r
}

// received handles a message in the direction of calls.
func (r *responder) received(m *message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fault := m.Fault
	if fault == nil {
		fault = m.Header.CheckCall(&r.cfg.rules)
	}
	switch {
	case r.draining || r.e.ctx.Err() != nil:
		// Not executed: the client can send it again elsewhere.
	case fault != nil && answerTo(fault) == wire.AnswerDrop:
		r.log("dropped a message", "reason", fault)
	case m.Header.Proc == wire.ProcDone && fault == nil:
		r.fetched(m.Header.XID)
	default:
		m.Fault = fault
		if c := r.freeCall(); c != nil {
			r.beginCall(c, m)
		} else {
			r.waiting = append(r.waiting, m)
		}
		return
	}
	m.repost()
}

// answerTo returns what a responder does about an error of a message.
func answerTo(err error) wire.Answer {
	if e, ok := err.(*wire.Error); ok {
		return e.Fault.Answer(wire.Responder)
	}
	return wire.AnswerClose
}

// freeCall returns a free peerCall, or nil.
func (r *responder) freeCall() *heldCall {
	if n := len(r.free); n > 0 {
		c := r.free[n-1]
		r.free = r.free[:n-1]
		return c
	}
	if r.made == 2*len(r.e.receives) {
		return nil
	}
	c, err := newPeerCall(r)
	if err != nil { // RFC 8166 §4.5.4: no answer can be built
		r.e.fail(err)
		return nil
	}
	r.made++
	return c
}

// beginCall begins to serve the message m.
func (r *responder) beginCall(c *heldCall, m *message) {
	h := &m.Header
	c.message, c.header, c.xid = m, h, h.XID
	switch {
	case m.Fault != nil:
		c.refuse(m.Fault)
	case r.cfg.failures.remove(r.peer, h.XID):
		c.refuse(wire.Errorf(wire.FaultChunk, "call of XID %#x is sent again, whose chunks made the last connection fail", h.XID))
	case r.xids[h.XID]:
		// A call that is sent again while it is executed, which RFC 8166 has no
		// requester do on one connection: one reply answers both.
		r.log("dropped a call", "xid", h.XID, "reason", "its XID is that of one in progress")
		r.release(c)
	default:
		r.fetched(h.XID) // a requester that calls again has given up on that reply
		r.xids[h.XID] = true
		c.admitted = true
		c.plan()
	}
}

// start executes c in a worker goroutine.
func (r *responder) start(c *heldCall) {
	r.handlers.Add(1)
	job := (*handlerCall)(c)
	r.e.queue.expect()
	select {
	case r.jobs <- job:
	default:
		go r.work(job)
	}
}

// work executes calls, and waits for more unless idleWorkers others do.
func (r *responder) work(c *handlerCall) {
	for {
		r.serving.Add(1)
		r.e.queue.begins()
		c.serve()
		r.serving.Add(-1)
		r.handlers.Done()
		if r.idle.Add(1) > idleWorkers {
			r.idle.Add(-1)
			return
		}
		select {
		case c = <-r.jobs:
			r.idle.Add(-1)
		case <-r.e.ctx.Done():
			return
		}
	}
}

// answered notes that the reply to c is about to be sent. Another call may have its
// XID from now on.
func (r *responder) answered(c *heldCall) {
	if c.admitted {
		c.admitted = false
		delete(r.xids, c.xid)
		r.served++
	}
}

// release frees a peerCall whose reply has left, or will never be sent, and begins
// what waits.
func (r *responder) release(c *heldCall) {
	c.reset()
	if r.closed {
		r.e.pool.put(c.send)
		return
	}
	r.free = append(r.free, c)
	if len(r.waiting) > 0 {
		m := r.waiting[0]
		r.waiting[0] = nil
		r.waiting = r.waiting[1:]
		r.beginCall(r.freeCall(), m)
	}
	r.admit()
	r.signalIfQuiet()
}

// drain makes the responder accept no more calls. Quiet is closed when no call is
// in progress and no reply outstanding.
func (r *responder) drain() (quiet <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = true
	r.signalIfQuiet()
	return r.quiet
}

// signalIfQuiet closes quiet once the responder drains and has nothing to do.
func (r *responder) signalIfQuiet() {
	if r.draining && len(r.free) == r.made {
		select {
		case <-r.quiet:
		default:
			close(r.quiet)
		}
	}
}

// busy reports whether calls are in progress, or replies under way.
func (r *responder) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.free) < r.made
}

// stuck reports false: a call may take as long as its handler does.
func (r *responder) stuck(time.Duration) bool { return false }

// ended drops calls that no handler has. Handlers that run go on, and their
// replies are lost.
func (r *responder) ended(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, c := range r.free {
		r.e.pool.put(c.send)
	}
	for _, c := range r.awaitingMemory {
		r.release(c)
	}
	for _, c := range r.held {
		r.release(c)
	}
	r.free, r.waiting, r.awaitingMemory, r.held = nil, nil, nil, nil
	for len(r.offers) > 0 {
		r.withdraw(0)
	}
	if r.overdue != nil {
		r.overdue.Stop()
	}
	r.blame(err)
	r.draining = true
	select {
	case <-r.quiet:
	default:
		close(r.quiet)
	}
}

func (r *responder) log(what string, args ...any) {
	if l := r.cfg.logger; l != nil {
		l.Debug("rpcrdma: "+what, append([]any{"peer", r.e.conn.RemoteAddr()}, args...)...)
	}
}
