// This file holds replies that the requester fetches: by a Read list in the
// reply, until its RDMA_DONE (RFC 5666 §3.8, §5.1, §11). RFC 8166 has none.

package rpcrdma

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// ReadReplies says whether a responder may reply by Read list, and how it protects itself
// from requesters that send no RDMA_DONE (RFC 5666 §11). The zero value does not allow
// it.
type ReadReplies struct {
	// Enabled replies by Read list when a reply fits neither inline nor into the chunks
	// of the call, if the binding permits it for the procedure.
	Enabled bool

	// Timeout is how long a reply waits for its RDMA_DONE; 0 is 10 s. Then its memory is
	// invalidated, and with Close the connection is closed. A requester that reads after
	// that loses its connection in any case.
	Timeout time.Duration
	Close   bool

	// Replies and Octets limit the replies of one connection that wait at a time; 0 is
	// 16, and 32 MiB. Further replies are delayed. One is always allowed.
	Replies, Octets int
}

func (d *ReadReplies) timeout() time.Duration { return cmp.Or(max(d.Timeout, 0), 10*time.Second) }
func (d *ReadReplies) replies() int           { return orDefault(d.Replies, 16) }
func (d *ReadReplies) octets() int            { return orDefault(d.Octets, 32<<20) }

// errNotFetched is why a connection was closed whose peer does not fetch replies.
var errNotFetched = errors.New("rpcrdma: no RDMA_DONE has come for a reply with a Read list in time")

// An offer is the memory of a reply that the peer may read.
type offer struct {
	xid      uint32
	mr       *verbs.MR
	b        *buffer
	octets   int
	deadline time.Time
}

// mayOffer reports whether the reply may go by Read list: the upper layer
// permits it, and reads of the peer's are served.
func (c *handlerCall) mayOffer() bool {
	r := c.r
	binding := r.cfg.bindings[payload.ProgramVersion{Prog: c.request.Prog, Vers: c.request.Vers}]
	return r.cfg.read.Enabled && r.e.peerReads && binding != nil && binding.ReadRead(c.request.Proc)
}

// makeOffer plans a reply of n octets, at octet at of b, as an RDMA_NOMSG with a Read
// chunk at position zero, and registers it for the peer of this connection alone.
func (c *handlerCall) makeOffer(b *buffer, at, n int) error {
	r := c.r
	if err := c.reply.Plan(c.header, n, c.eligible, math.MaxInt); err != nil {
		return err
	}
	h := &c.reply.Header
	if b == c.send {
		// The header goes where the reply is.
		own, err := r.e.pool.get(n)
		if err != nil {
			return wire.Errorf(wire.FaultLocal, "no memory for a reply of %d octets: %v", n, err)
		}
		copy(own.b, b.b[at:][:n])
		c.results = append(c.results, own)
		b, at = own, 0
	}
	mr, err := r.e.pd.RegisterMR(verbs.MRConfig{
		Buf: b.b[at:][:n], Access: verbs.LocalRead | verbs.RemoteRead, ZeroBased: true, QP: r.e.qp,
	})
	if err != nil {
		return wire.Errorf(wire.FaultLocal, "registering a reply of %d octets: %v", n, err)
	}
	c.offer = &offer{xid: c.xid, mr: mr, b: b, octets: n}
	h.Proc = wire.ProcNoMsg
	for _, run := range c.reply.Inline {
		h.Reads = append(h.Reads, wire.ReadSegment{Segment: wire.Segment{Handle: uint32(mr.STag()), Length: uint32(run.Length), Offset: uint64(run.Offset)}})
	}
	c.reply.Inline = nil
	if size, most := h.Len(), int(r.e.threshold.Load()); size > most {
		_ = mr.Deallocate()
		c.offer = nil
		return wire.Errorf(wire.FaultOverrun, "reply to XID %#x with a header of %d octets, the threshold is %d", c.xid, size, most)
	}
	return nil
}

// roomFor reports whether one more reply may be offered: always the first. One
// that would leave no credit to grant has to wait, so that there is a reply to
// grant the next one by (RFC 5666 §11).
func (r *responder) roomFor(x *offer) bool {
	return len(r.offers) == 0 ||
		r.grants.pending+1 < r.grants.limit && len(r.offers) < r.cfg.read.replies() && x.octets <= r.cfg.read.octets()-r.offered
}

// show counts a reply that the peer is to fetch. Its memory is c's no more.
func (r *responder) show(c *heldCall) {
	x := c.offer
	c.offer = nil
	c.results = slices.DeleteFunc(c.results, func(b *buffer) bool { return b == x.b })
	x.deadline = time.Now().Add(r.cfg.read.timeout())
	r.offers = append(r.offers, x)
	r.offered += x.octets
	r.grants.pending++
	r.alarm()
}

// alarm sets the timer for the oldest reply that is offered.
func (r *responder) alarm() {
	if len(r.offers) == 0 || r.closed {
		return
	}
	wait := time.Until(r.offers[0].deadline)
	if r.overdue == nil {
		r.overdue = time.AfterFunc(wait, r.expire)
		return
	}
	r.overdue.Reset(wait)
}

// expire withdraws what was not fetched in time.
func (r *responder) expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.offers) > 0 && !time.Now().Before(r.offers[0].deadline) {
		r.log("withdrew a reply", "xid", r.offers[0].xid, "reason", errNotFetched)
		if r.cfg.read.Close {
			r.e.fail(errNotFetched)
		}
		r.withdraw(0)
	}
	r.unhold()
	r.alarm()
}

// fetched withdraws the reply of an XID, if there is one: its requester is done
// with it. An RDMA_DONE for none is dropped.
func (r *responder) fetched(xid uint32) {
	for i, x := range r.offers {
		if x.xid == xid {
			r.withdraw(i)
			r.unhold()
			r.alarm()
			return
		}
	}
}

// withdraw takes an offer back. No octet of it can be read afterwards.
func (r *responder) withdraw(i int) {
	x := r.offers[i]
	r.offers = slices.Delete(r.offers, i, i+1)
	r.offered -= x.octets
	r.grants.pending--
	_ = x.mr.Deallocate()
	r.e.pool.put(x.b)
}

// unhold sends replies that were held back, as far as there is room now.
func (r *responder) unhold() {
	for len(r.held) > 0 && r.roomFor(r.held[0].offer) {
		c := r.held[0]
		r.held = slices.Delete(r.held, 0, 1)
		r.show(c)
		c.sendNow()
	}
}
