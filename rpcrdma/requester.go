// This file is the requester's half of an endpoint. The flow of a call:
//
//  1. The caller's goroutine queues the call and waits for a credit (enqueue).
//  2. With a credit it plans the call, registers its memory and posts the Send
//     (send).
//  3. The endpoint's goroutine matches the reply by its XID and wakes the caller
//     (received).
//  4. The caller deregisters the memory, and then reads the reply (make).
//
// A caller whose context ends abandons its call. The credit stays in use until the reply
// arrives, because the responder counts the call.
//
// Locking: mu guards the fields below it, and those of an rpc that say so. It is
// not held while memory is registered or a caller waits.

package rpcrdma

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// ErrTimeout ends a call to which no reply has come in time. Whether it was
// executed is not known.
var ErrTimeout = errors.New("rpcrdma: no reply in time")

// lostError ends an attempt at a call with the connection. Whether it was
// executed is not known.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// A requesterConfig says how a requester makes calls.
type requesterConfig struct {
	rules   wire.Rules
	credits uint32 // requested, at least 1: no more calls are outstanding
	logger  *slog.Logger

	// short makes only calls without chunks, as in the reverse direction (RFC 8167 §5.3).
	short bool

	inlineResults bool // see ClientConfig

	// ended, if not nil, is called when the connection has ended, before its calls fail.
	// Dropped, if not nil, counts messages that belong to no call.
	ended   func(*requester)
	dropped *atomic.Uint64
}

// A requester makes calls over one endpoint. Its owner makes it before the
// endpoint runs. Methods may be called by any goroutine.
type requester struct {
	cfg requesterConfig
	e   *endpoint

	mu           sync.Mutex
	window       window
	xids         map[uint32]*rpc // calls that were sent; nil for an abandoned one
	abandoned    int             // abandoned calls in xids
	blockedSince time.Time       // since when those have held all credits; zero if they do not
	queue        []*rpc          // calls that wait for a credit
	replies      uint64          // replies so far
	free         []*sending
	dead         error         // why the connection has ended
	lost         chan struct{} // is closed when dead is set
	align        uint32        // announced by CONF_RDMA

	// Of the Client, under its lock.
	callers int  // calls that are being made with it
	retired bool // it takes no more, and is closed when the last one has ended
}

// newRequester makes the requester of an endpoint.
func newRequester(e *endpoint, cfg requesterConfig) *requester {
	r := &requester{cfg: cfg, e: e, xids: make(map[uint32]*rpc), lost: make(chan struct{})}
	r.window.requested = max(1, cfg.credits)
	return r
}

// make makes one attempt at the call x: it waits for a credit, sends the call, and waits
// for its end. expired ends it with ErrTimeout. After a *lostError the call may be made
// again over another connection; other errors end it. When make returns, no memory of the
// call is registered.
func (r *requester) make(ctx context.Context, x *rpc, expired <-chan time.Time) (*oncrpc.ClientReply, error) {
	x.turn, x.over, x.lost, x.err, x.fetch = false, false, false, nil, nil
	select { // a signal left over from an earlier attempt
	case <-x.signal:
	default:
	}
	heard, err := r.enqueue(x)
	if err != nil {
		return nil, err
	}
	if err = r.wait(ctx, x, expired, &x.turn); err == nil {
		err = r.send(x)
	}
	if err == nil {
		err = r.wait(ctx, x, expired, &x.over)
	}
	if errors.Is(err, ErrTimeout) {
		r.suspect(heard)
	}
	if bad := x.deregister(); bad != nil && !errors.Is(bad, verbs.ErrRNIC) {
		// RFC 8166 §4.5.4: not before the connection is closed.
		r.e.fail(bad)
		r.e.qp.Abort()
		err = errors.Join(err, bad)
	}
	if err != nil {
		return nil, err
	}
	return x.finish(&r.cfg.rules, r.cfg.inlineResults)
}

// enqueue queues x for a credit. It returns the number of replies so far.
func (r *requester) enqueue(x *rpc) (heard uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead != nil {
		return 0, &lostError{r.dead}
	}
	r.queue = append(r.queue, x)
	r.admit()
	return r.replies, nil
}

// admit gives credits to queued calls, in their order. The lock is held.
func (r *requester) admit() {
	for len(r.queue) > 0 && r.window.open() {
		x := r.queue[0]
		r.queue[0] = nil
		r.queue = r.queue[1:]
		r.window.call()
		x.turn = true
		x.wake()
	}
}

// wake wakes the goroutine that waits for x. The lock is held.
func (x *rpc) wake() {
	select {
	case x.signal <- struct{}{}:
	default: // a signal is pending: one wakeup serves both
	}
}

// wait waits until *what is set, the call has ended, the context ends, or expired fires.
func (r *requester) wait(ctx context.Context, x *rpc, expired <-chan time.Time, what *bool) error {
	for {
		var err error
		select {
		case <-x.signal:
		case <-ctx.Done():
			err = ctx.Err()
		case <-expired:
			err = fmt.Errorf("%w, to the call of XID %#x", ErrTimeout, x.call.XID)
		}
		r.mu.Lock()
		over, ready, expected := x.over, *what, x.expected
		x.expected = false
		if !over && err != nil {
			r.abandon(x)
		}
		r.mu.Unlock()
		if expected {
			r.e.queue.begins()
		}
		switch {
		case over && x.lost:
			return &lostError{x.err}
		case over:
			return x.err
		case err != nil:
			return err
		case ready:
			return nil
		}
	}
}

// abandon gives up a call that has not ended. If it was sent, it stays in flight until
// its reply arrives, as the responder counts it. The lock is held.
func (r *requester) abandon(x *rpc) {
	switch {
	case x.fetch != nil:
		x.fetch.x, x.fetch = nil, nil
	case r.xids[x.call.XID] == x:
		r.xids[x.call.XID] = nil
		r.abandoned++
		r.noteBlocked()
	case x.turn:
		r.window.drop()
		r.noteBlocked()
		r.admit()
	default:
		r.queue = slices.DeleteFunc(r.queue, func(waiting *rpc) bool { return waiting == x })
	}
}

// cancel returns the credit of a call that could not be sent.
func (r *requester) cancel() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.window.drop()
	r.noteBlocked()
	r.admit()
}

// suspect ends the connection after a call has timed out, if no reply has arrived since
// it was queued, or if abandoned calls hold all credits.
func (r *requester) suspect(heard uint64) {
	r.mu.Lock()
	silent := r.replies == heard || r.blocked()
	r.mu.Unlock()
	if silent {
		r.e.fail(ErrTimeout)
	}
}

// blocked reports whether abandoned calls hold all credits. The lock is held.
func (r *requester) blocked() bool { return !r.window.open() && r.window.inflight == r.abandoned }

// noteBlocked notes since when blocked has been true. The lock is held.
func (r *requester) noteBlocked() {
	switch {
	case !r.blocked():
		r.blockedSince = time.Time{}
	case r.blockedSince.IsZero():
		r.blockedSince = time.Now()
	}
}

// stuck reports whether abandoned calls have held all credits for so long. Queued calls
// cannot notice that, as they are never sent.
func (r *requester) stuck(long time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.blockedSince.IsZero() && time.Since(r.blockedSince) >= long
}

// terms returns what the connection allows to calls now.
func (r *requester) terms() payload.CallTerms {
	t := payload.CallTerms{
		Call:  int(r.e.threshold.Load()),
		Reply: int(r.e.peer.Threshold(r.e.cfg.private)),
		Rules: &r.cfg.rules,
		Short: r.cfg.short,
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t.NoReads = !r.e.peerReads
	if r.cfg.rules.MSGP {
		t.Align = r.align
	}
	return t
}

// send sends a call that has a credit. After an error the credit is free again.
func (r *requester) send(x *rpc) error {
	terms := r.terms()
	err := x.plan.Plan(&x.shape, &terms)
	if err == nil {
		err = x.register(r.e.qp)
	}
	var s *sending
	if err == nil {
		s, err = r.sending()
	}
	if err != nil {
		r.cancel()
		if r.e.ctx.Err() == nil {
			return err
		}
		// The queue pair may have failed: then the connection ends soon.
		<-r.lost
		return &lostError{r.dead}
	}
	x.plan.Header.Credits = r.window.requested
	message, err := x.appendMessage(s.buf.b[:0])
	if err != nil {
		s.discard()
		r.cancel()
		return err
	}
	r.mu.Lock()
	if r.dead != nil {
		r.mu.Unlock()
		s.discard()
		return &lostError{r.dead}
	}
	if _, used := r.xids[x.call.XID]; used { // by an abandoned call
		r.mu.Unlock()
		s.discard()
		r.cancel()
		return oncrpc.ErrXIDInUse
	}
	r.xids[x.call.XID] = x
	r.mu.Unlock()
	s.post(len(message))
	return nil
}

// received handles a message in the direction of replies.
func (r *requester) received(m *message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x, err := r.match(m)
	if err != nil {
		// RFC 8166 §4.5: a requester answers nothing, and the call waits on.
		if r.cfg.dropped != nil {
			r.cfg.dropped.Add(1)
		}
		r.log("dropped a message", err)
		m.repost()
		return
	}
	h := &m.Header
	delete(r.xids, h.XID)
	r.replies++
	r.blockedSince = time.Time{}
	owes := h.Proc != wire.ProcError && len(h.Reads) > 0
	switch {
	case x == nil:
		r.abandoned--
	case h.Proc == wire.ProcError:
		x.err = h.RemoteError()
	default:
		x.message = append(x.message[:0], m.buf[:h.Len()+len(m.Payload)]...)
	}
	xid, credits := h.XID, h.Credits
	// RFC 8166 §3.3.1: the receive is there before a call is sent for whose reply
	// it may be.
	m.repost()
	r.window.reply(credits, owes)
	r.noteBlocked()
	switch {
	case owes && x == nil:
		r.sendDone(xid) // the call was abandoned, and the responder keeps the reply until then
	case owes:
		r.read(x)
	case x != nil:
		r.e.queue.expect()
		x.over, x.expected = true, true
		x.wake()
	}
	r.admit()
}

// match returns the call that a message replies to, or nil if it was abandoned.
// With an error the message is dropped. The lock is held.
func (r *requester) match(m *message) (x *rpc, err error) {
	h := &m.Header
	known := false
	if !isFault(m.Fault, wire.FaultShort) {
		x, known = r.xids[h.XID]
	}
	if m.HasInvalidated && (x == nil || !x.invalidated(m.Invalidated)) {
		// RFC 8797 §4.1: it belongs to a call that has not ended.
		err = wire.Errorf(wire.FaultLocal, "a reply of XID %#x invalidates STag %#x, which is none of that call's", h.XID, m.Invalidated)
		r.e.fail(err)
		return nil, err
	}
	if err = m.Fault; err == nil {
		err = h.CheckReply(&r.cfg.rules)
	}
	switch {
	case err != nil:
		return nil, err
	case !known:
		return nil, wire.Errorf(wire.FaultUnexpected, "a reply of XID %#x, of which no call is outstanding", h.XID)
	case x != nil && h.Proc != wire.ProcError:
		err = h.CheckReturned(&x.plan.Header)
	}
	return x, err
}

// busy reports whether there are calls that were not abandoned.
func (r *requester) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.queue) > 0 || r.window.inflight > r.abandoned
}

// ended ends all calls, because the connection has ended.
func (r *requester) ended(err error) {
	r.mu.Lock()
	r.dead = err
	r.mu.Unlock()
	close(r.lost)
	if r.cfg.ended != nil {
		r.cfg.ended(r)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.xids {
		x.failLost(err)
	}
	for _, x := range r.queue {
		x.failLost(err)
	}
	for _, s := range r.free {
		s.discard()
	}
	r.queue, r.free = nil, nil
	clear(r.xids)
}

// failLost ends the attempt at x, unless it has ended or was abandoned. The lock is held.
func (x *rpc) failLost(err error) {
	if x != nil && !x.over {
		x.over, x.lost, x.err = true, true, err
		x.wake()
	}
}

func (r *requester) log(what string, err error) {
	if l := r.cfg.logger; l != nil {
		l.Debug("rpcrdma: "+what, "peer", r.e.conn.RemoteAddr(), "reason", err)
	}
}
