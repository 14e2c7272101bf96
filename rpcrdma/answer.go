// This file is the second half of serving a call, from its handler to the end: the
// reply is planned, and sent by RDMA Writes and a Send. If the call was not valid,
// the protocol's answer to that is sent.

package rpcrdma

import (
	"errors"

	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// alloc is Request.Alloc: memory for a reply, from which it is sent.
func (c *handlerCall) alloc(n int) []byte {
	if at := c.replyHeader(); c.inPlace == 0 && len(c.header.Writes) == 0 && n >= 0 && n <= len(c.send.b)-at {
		// The header's length is known and nothing leaves the stream, so that the
		// reply can stand where it is sent from.
		c.inPlace = at
		return c.send.b[at:][:n]
	}
	b, err := c.lend(n)
	if err != nil {
		return make([]byte, n) // is sent all the same, by a copy
	}
	return b.b[:n]
}

// replyHeader returns the length of the header of a reply: it repeats the lists of
// the call.
func (c *handlerCall) replyHeader() int {
	h := wire.Header{Writes: c.header.Writes, Reply: c.header.Reply, HasReply: c.header.HasReply}
	return h.Len()
}

// forget frees a call that gets no reply.
func (c *handlerCall) forget() {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.release((*heldCall)(c))
}

// replyError replies that the call was not executed, because of err.
func (c *handlerCall) replyError(err error) {
	reply := oncrpc.ReplyTo(c.xid, err)
	b, err := reply.Append(c.request.Buffer(reply.Len()))
	if err != nil {
		c.r.e.fail(err) // RFC 8166 §4.5.4
		c.forget()
		return
	}
	c.answer(b)
}

// fault answers a message as the protocol says for err (RFC 8166 §4.5).
func (c *handlerCall) fault(err error) {
	var e *wire.Error
	if !errors.As(err, &e) {
		c.replyError(err)
		return
	}
	if e.Fault == wire.FaultStream {
		c.r.log("refused a call", "xid", c.xid, "reason", err)
		c.replyError(&oncrpc.AcceptError{Stat: oncrpc.GarbageArgs, Err: err})
		return
	}
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	(*heldCall)(c).refuse(err)
}

// refuse answers a message by an RDMA_ERROR, or GARBAGE_ARGS, or by closing the
// connection.
func (c *heldCall) refuse(err error) {
	r, h := c.r, c.header
	r.log("refused a call", "xid", h.XID, "reason", err)
	const credits = 0 // said by ready
	// The reply that is not sent may be long.
	c.drop()
	var answer []byte
	switch answerTo(err) {
	case wire.AnswerErrVers:
		answer = wire.AppendErrVers(c.send.b[:0], h.XID, h.Version, credits)
	case wire.AnswerErrChunk:
		answer = wire.AppendErrChunk(c.send.b[:0], h.XID, credits)
	case wire.AnswerGarbageArgs:
		// By RDMA_MSG without chunks, because those of the call may be unusable.
		header := wire.Header{XID: h.XID, Credits: credits, Proc: wire.ProcMsg}
		reply := oncrpc.ReplyTo(h.XID, &oncrpc.AcceptError{Stat: oncrpc.GarbageArgs})
		var failed error
		if answer, failed = reply.Append(header.Append(c.send.b[:0])); failed != nil {
			err, answer = failed, nil
		}
	}
	if answer == nil {
		r.e.fail(err)
		r.release(c)
		return
	}
	c.requests.begin(1)
	c.requests.add(verbs.OpSend, c.send, 0, wire.Segment{Length: uint32(len(answer))})
	c.sendNow()
}

// answer sends the reply of a handler.
func (c *handlerCall) answer(reply []byte) {
	r := c.r
	if err := c.layOutCaught(reply); err != nil {
		if f := (*pages.Fault)(nil); errors.As(err, &f) {
			r.log("cannot read a reply", "xid", c.xid, "reason", err)
			c.replyError(&oncrpc.AcceptError{Stat: oncrpc.SystemErr, Err: err})
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		(*heldCall)(c).refuse(err)
		return
	}
	r.mu.Lock()
	if c.offer != nil && !r.closed { // else nothing is sent, and reset withdraws it
		if !r.roomFor(c.offer) {
			r.held = append(r.held, (*heldCall)(c))
			r.mu.Unlock()
			return // unhold has it sent
		}
		r.show((*heldCall)(c))
	}
	posted := (*heldCall)(c).ready()
	r.mu.Unlock()
	posted.dispatch()
}

// layOut makes the work requests that send a reply, and the content of the Send.
func (c *handlerCall) layOut(reply []byte) error {
	r := c.r
	handle := c.chooseInvalidate()
	source, at := c.source(reply)
	threshold := int(r.e.threshold.Load())
	err := c.reply.Plan(c.header, len(reply), c.reduce(reply), threshold)
	if size := c.reply.Header.Len(); err == nil && size > threshold {
		err = wire.Errorf(wire.FaultOverrun, "reply to XID %#x with a header of %d octets, as it repeats the chunks of the call; the threshold is %d", c.xid, size, threshold)
	}
	if isFault(err, wire.FaultOverrun) && c.mayOffer() {
		if source, at, err = c.own(reply, source, at); err == nil {
			err = c.makeOffer(source, at, len(reply))
		}
	}
	if err == nil && len(c.reply.Writes) > 0 {
		source, at, err = c.own(reply, source, at)
	}
	if err != nil {
		return err
	}
	c.requests.begin(len(c.reply.Writes) + 1)
	for _, w := range c.reply.Writes {
		c.requests.add(verbs.OpWrite, source, at+w.From, w.Segment)
	}
	b := c.reply.Header.Append(c.send.b[:0])
	for _, run := range c.reply.Inline {
		b = append(b, reply[run.Offset:][:run.Length]...) // moves nothing if in place
	}
	c.requests.add(verbs.OpSend, c.send, 0, wire.Segment{Length: uint32(len(b))})
	c.setInvalidate(handle)
	return nil
}

// own copies a reply to registered memory if the handler has not asked for any.
func (c *handlerCall) own(reply []byte, source *buffer, at int) (*buffer, int, error) {
	if source != nil {
		return source, at, nil
	}
	b, err := c.lend(len(reply))
	if err != nil {
		return nil, 0, wire.Errorf(wire.FaultLocal, "no memory for a reply of %d octets: %v", len(reply), err)
	}
	copy(b.b, reply)
	return b, 0, nil
}

// source finds the registered memory that a reply begins in.
func (c *handlerCall) source(reply []byte) (b *buffer, at int) {
	if c.inPlace > 0 && &c.send.b[c.inPlace] == &reply[0] {
		return c.send, c.inPlace
	}
	for _, b := range c.results {
		if &b.b[0] == &reply[0] {
			return b, 0
		}
	}
	return nil, 0
}

// reduce finds the results that are DDP-eligible, if there are Write chunks for
// them.
func (c *handlerCall) reduce(reply []byte) []payload.Run {
	c.eligible = c.eligible[:0]
	binding := c.r.cfg.bindings[payload.ProgramVersion{Prog: c.request.Prog, Vers: c.request.Vers}]
	if len(c.header.Writes) == 0 || binding == nil || payload.Protected(&c.request.Cred) {
		return nil
	}
	var h oncrpc.Reply
	at, err := h.Parse(reply)
	if err != nil || h.Err() != nil {
		return nil
	}
	c.cursor.Whole(reply, at)
	if err := payload.WalkReply(binding, c.request.Proc, &c.cursor); err != nil {
		// The handler knows the program better than the binding. The reply goes as
		// it is.
		c.r.log("cannot place results", "xid", c.xid, "reason", err)
		return nil
	}
	for _, item := range c.cursor.Items() {
		if item.Eligible {
			c.eligible = append(c.eligible, item.Run)
		}
	}
	return c.eligible
}

// chooseInvalidate returns the STag that the reply is to invalidate, 0 for none.
// Both sides have to support it, and one handle has to name all that the call
// offers: it then belongs to this XID alone (RFC 8797 §4.1; the rule is Linux's).
func (c *handlerCall) chooseInvalidate() (handle uint32) {
	if !c.r.e.cfg.private.Invalidates(c.r.e.peer) {
		return 0
	}
	return c.header.CommonHandle()
}

// setInvalidate makes the Send, which is the last work request, invalidate the
// peer's STag handle, if that is not 0.
func (c *handlerCall) setInvalidate(handle uint32) {
	if handle != 0 {
		wrs := c.requests.work.wrs
		wr := &wrs[len(wrs)-1]
		wr.Op, wr.Invalidate = verbs.OpSendInvalidate, memory.STag(handle)
	}
}

// ready makes the reply in c.send the next to be sent. What the call came in is
// posted again before: the reply lets the peer use it (RFC 8166 §3.3.1).
func (c *heldCall) ready() *postedCall {
	r := c.r
	wire.PutCredits(c.send.b, r.grants.credits())
	r.replies.add(c.xid, c.requests.work.wrs)
	r.answered(c)
	c.message.repost()
	c.message, c.header = nil, nil
	c.requests.work.done = c.whenSent
	return (*postedCall)(c)
}

// sendNow makes the reply ready and posts it.
func (c *heldCall) sendNow() {
	if posted := c.ready(); posted.post() != nil {
		c.r.release(c)
	}
}

// post posts the work requests. With an error nothing is posted.
func (c *postedCall) post() error { return c.r.e.queue.send(&c.requests.work) }

// dispatch posts a reply. The lock is not held.
func (c *postedCall) dispatch() {
	if c.post() != nil {
		c.sent(nil, nil)
	}
}

// sent ends the call when its reply has left, or will never be sent.
func (c *postedCall) sent(*work, error) {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.release((*heldCall)(c))
}
