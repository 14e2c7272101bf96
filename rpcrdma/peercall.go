// This file is the first half of serving a call, from its arrival to its handler: the
// call is fetched, as far as it is not inline, and assembled.

package rpcrdma

import (
	"errors"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// A peerCall is a call of the peer's while it is served: the message in which it
// arrived, its memory and its work requests. It serves one call after the other, and also
// messages that are answered with an error.
//
// Each of its phases has one owner, and a type of its own:
//
//  1. The call has arrived (*heldCall): the responder finds out where its octets are
//     (plan).
//  2. The call is fetched (*postedCall), until the RDMA Reads have completed.
//  3. The handler executes the call (*handlerCall), and the reply is laid out.
//  4. The responder accounts for the reply (*heldCall, ready).
//  5. The reply is sent (*postedCall), until the Send has completed.
//  6. The responder frees what was borrowed, and keeps the peerCall (*heldCall, release).
//
// A conversion from one type to another passes the ownership.
//
// Locking: methods of *heldCall need the responder's lock; those of the other types are
// called without it.
type peerCall struct {
	r        *responder
	message  *message     // in which it arrived; nil after that was reposted
	header   *wire.Header // of message
	xid      uint32       // of header
	admitted bool         // in responder.xids

	assembly payload.Assembly
	needs    int     // octets of memory to fetch the call into
	octets   int     // of responder.callMemory that it uses
	call     *buffer // into which the call was fetched, nil if it was inline
	stream   []byte  // the whole call, in call or in message

	request oncrpc.Request
	cursor  payload.Cursor
	pads    []payload.Run

	send     *buffer   // of the Send
	results  []*buffer // returned by Request.Alloc
	inPlace  int       // offset of the reply in send, behind room for its header; 0: it is elsewhere
	eligible []payload.Run
	reply    payload.ReplyPlan
	offer    *offer // the part of the reply that the peer fetches

	requests requests

	whenFetched, whenSent func(*work, error) // methods of its postedCall, made once
}

type (
	// A heldCall belongs to the responder, whose lock is held.
	heldCall peerCall

	// A handlerCall belongs to the goroutine that executes it.
	handlerCall peerCall

	// A postedCall belongs to the send queue, until its work requests have completed.
	postedCall peerCall
)

// requests are the work requests of a call.
type requests struct {
	work work
	sges []verbs.SGE
}

// newPeerCall makes a peerCall with memory for its Sends.
func newPeerCall(r *responder) (*heldCall, error) {
	send, err := r.e.pool.get(int(r.e.cfg.private.SendSize))
	if err != nil {
		return nil, err
	}
	c := &peerCall{r: r, send: send}
	c.cursor.EligibleOnly = true
	c.whenFetched, c.whenSent = (*postedCall)(c).fetched, (*postedCall)(c).sent
	c.request.Alloc = (*handlerCall)(c).alloc
	c.request.Network = "rdma"
	c.request.Local, c.request.Remote = r.e.conn.LocalAddr(), r.e.conn.RemoteAddr()
	c.request.Origin = r.from
	c.request.Session, c.request.SessionEnd = r.session, r.session.onEnd
	c.request.Back = r.back
	return (*heldCall)(c), nil
}

// reset readies a peerCall for the next call, and frees what it has borrowed.
func (c *heldCall) reset() {
	r := c.r
	r.answered(c)
	if c.message != nil {
		c.message.repost()
		c.message, c.header = nil, nil
	}
	if c.call != nil {
		r.e.pool.put(c.call)
		c.call = nil
	}
	if c.offer != nil {
		_ = c.offer.mr.Deallocate()
	}
	c.drop()
	if c.octets > 0 {
		r.callMemory.Release(c.octets)
	}
	c.octets, c.inPlace, c.stream, c.offer = 0, 0, nil, nil
	c.request.Message, c.request.Args, c.request.Call = nil, nil, oncrpc.Call{}
}

// drop frees the memory for the reply.
func (c *heldCall) drop() {
	for i, b := range c.results {
		n := len(b.b)
		c.r.e.pool.put(b)
		c.r.replyMemory.Release(n)
		c.results[i] = nil
	}
	c.results = c.results[:0]
}

// plan finds out where the octets of the call are, and continues as soon as there is
// memory for them.
func (c *heldCall) plan() {
	r, m := c.r, c.message
	if len(m.Header.Reads) == 0 && m.Header.Proc == wire.ProcMsg {
		c.stream = m.Payload
		r.start(c)
		return
	}
	c.pads = c.pads[:0]
	if m.Header.Proc == wire.ProcMsgP {
		if err := c.findPads(); err != nil {
			c.refuse(err)
			return
		}
	}
	if err := c.assembly.Plan(c.header, len(m.Payload), c.pads, &r.cfg.rules); err != nil {
		c.refuse(err)
		return
	}
	if c.reads() > 0 && r.e.queue.mostReads() == 0 {
		// It offers memory to be read, and has said when it connected, or by
		// CONF_RDMA, that it serves no RDMA Read.
		c.refuse(wire.Errorf(wire.FaultChunk, "call of XID %#x with a Read list, by a peer that serves no RDMA Read", c.header.XID))
		return
	}
	c.needs = takes(c.assembly.Length)
	r.awaitingMemory = append(r.awaitingMemory, c)
	r.admit()
}

// findPads finds the pads of an RDMA_MSGP, which stand before the data of long
// items of the arguments (RFC 5666 §3.9). "At or above" the threshold is tried
// first, and "exceeds" if that does not use up the message exactly.
func (c *heldCall) findPads() error {
	h, inline := c.header, c.message.Payload
	padding := h.Padding()
	switch {
	case len(h.Reads) > 0:
		return wire.Errorf(wire.FaultChunk, "RDMA_MSGP of XID %#x with a Read list, expected long items inline", h.XID)
	case padding.Align <= 1:
		return nil
	}
	var call oncrpc.Call
	args, err := call.Parse(inline)
	if err != nil {
		return nil // check finds and answers it, too
	}
	binding := c.r.cfg.bindings[payload.ProgramVersion{Prog: call.Prog, Vers: call.Vers}]
	if binding == nil {
		return wire.Errorf(wire.FaultStream, "RDMA_MSGP of XID %#x for program %d version %d, of whose arguments nobody knows where pads are", h.XID, call.Prog, call.Vers)
	}
	pads, err := payload.FindPads(&c.cursor, padding, inline, args, func(cursor *payload.Cursor) error {
		return payload.WalkCall(binding, call.Proc, cursor)
	})
	c.pads = append(c.pads, pads...)
	return err
}

// reads counts the RDMA Reads of the call.
func (c *heldCall) reads() (n int) {
	for i := range c.assembly.Pieces {
		if c.assembly.Pieces[i].Kind == payload.PieceRead {
			n++
		}
	}
	return n
}

// fetch assembles the call in the order of RFC 8166 §3.4.5: the inline part at once, the
// rest by RDMA Reads.
func (c *heldCall) fetch() {
	r := c.r
	var err error
	if c.call, err = r.e.pool.get(c.assembly.Length); err != nil {
		r.e.fail(err) // RFC 8166 §4.5.4
		r.release(c)
		return
	}
	c.stream = c.call.b[:c.assembly.Length:c.assembly.Length]
	c.requests.begin(c.reads())
	at := 0
	for i := range c.assembly.Pieces {
		p := &c.assembly.Pieces[i]
		switch p.Kind {
		case payload.PieceInline:
			copy(c.stream[at:], c.message.Payload[p.Offset:][:p.Length])
		case payload.PieceZeros:
			clear(c.stream[at:][:p.Length])
		case payload.PieceRead:
			c.requests.add(verbs.OpRead, c.call, at, p.Segment)
		}
		at += p.Length
	}
	if len(c.requests.work.wrs) == 0 {
		r.start(c)
		return
	}
	c.requests.work.done = c.whenFetched
	if r.e.queue.fetch(&c.requests.work) != nil { // from here on it is a postedCall
		r.release(c)
	}
}

// begin makes room for n work requests, which add adds.
func (q *requests) begin(n int) {
	if cap(q.sges) < n {
		q.sges, q.work.wrs = make([]verbs.SGE, 0, n), make([]verbs.SendWR, 0, n)
	}
	q.sges, q.work.wrs = q.sges[:0], q.work.wrs[:0]
}

// add adds an RDMA Read or Write between b, from the octet at on, and a segment
// of the peer's.
func (q *requests) add(op verbs.Op, b *buffer, at int, s wire.Segment) {
	q.sges = append(q.sges, b.mr.SGE(at, int(s.Length)))
	q.work.wrs = append(q.work.wrs, verbs.SendWR{
		Op:     op,
		SGL:    q.sges[len(q.sges)-1:],
		Remote: verbs.Remote{STag: memory.STag(s.Handle), TO: s.Offset},
	})
}

// fetched continues when all RDMA Reads have completed.
func (c *postedCall) fetched(w *work, err error) {
	r := c.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if w.status == verbs.RemoteTermination {
			r.cfg.failures.add(r.peer, c.xid) // RFC 8166 §4.5.3
		}
		r.release((*heldCall)(c))
		return
	}
	r.start((*heldCall)(c))
}

// serve checks and executes the call, and sends the reply.
func (c *handlerCall) serve() {
	if err := c.check(); err != nil {
		c.fault(err)
		return
	}
	r := c.r
	reply, err := c.handler().ServeRPC(r.e.ctx, &c.request)
	if err == nil {
		err = repliesTo(reply, c.request.XID)
	}
	switch {
	case errors.Is(err, oncrpc.ErrNoReply):
		c.forget()
	case err != nil:
		c.replyError(err)
	default:
		c.answer(reply)
	}
}

// handler returns the handler of the call.
func (c *handlerCall) handler() oncrpc.Handler {
	if conf := c.r.cfg.conf; conf != nil && c.request.Prog == wire.ConfProgram {
		return confServer{conf, c.r.e}
	}
	return c.r.cfg.handler
}

// check reads the call's header and checks the reduced items against the upper-layer
// binding.
func (c *handlerCall) check() error {
	r, q := c.r, &c.request
	if err := c.header.CheckXID(c.stream, &r.cfg.rules); err != nil {
		return err
	}
	args, err := q.Call.Parse(c.stream)
	if err != nil {
		return err
	}
	if r.cfg.rules.AnyXID { // RFC 5666 §4.1: that of the header counts
		q.XID = c.header.XID
	}
	q.Message, q.Args = c.stream, c.stream[args:]
	if len(c.assembly.Items) == 0 || len(c.header.Reads) == 0 {
		return nil
	}
	// RFC 8166 §6.1: what was reduced has to be what may be reduced, and as long
	// as the count that stayed in the stream says.
	binding := r.cfg.bindings[payload.ProgramVersion{Prog: q.Prog, Vers: q.Vers}]
	if binding == nil || payload.Protected(&q.Cred) {
		return wire.Errorf(wire.FaultStream, "call of XID %#x with reduced arguments: program %d version %d has none that may be", q.XID, q.Prog, q.Vers)
	}
	c.cursor.Whole(c.stream, args)
	if err := payload.WalkCall(binding, q.Proc, &c.cursor); err != nil {
		return err
	}
	return c.assembly.CheckItems(c.cursor.Items())
}
