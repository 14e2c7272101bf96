// This file holds one call on the requester's side: its message, the memory that
// the responder reads and writes for it, and what it ends with.

package rpcrdma

import (
	"errors"
	"fmt"
	"sync"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// An rpc is a call that is being made, over one connection after the other if it
// has to be. Between attempts it belongs to the goroutine that calls; during one
// the requester's lock guards what its comments say.
type rpc struct {
	rpcs   *rpcs
	call   oncrpc.ClientCall
	head   []byte // the header of the RPC message
	shape  payload.CallShape
	plan   payload.CallPlan
	reader payload.ReplyReader

	// Of an attempt: the memory that is registered for it.
	regions  []region
	gathered []byte // what Read chunks gather
	long     []byte // the Reply chunk

	// signal wakes the caller when it may send, and again at the end. The
	// requester's lock guards the fields that say which.
	signal   chan struct{}
	turn     bool  // a credit is taken for it
	over     bool  // it has ended
	expected bool  // the send queue expects its caller
	err      error // with this; else by a reply
	lost     bool  // because the connection has

	// The message that replies, from which header is parsed again. From the end
	// on they are of the goroutine that calls.
	message []byte
	header  wire.Header
	fetch   *fetch // of a reply by Read list

	plain []byte // the RPC message that replies, if it is not in message or long

	free func() // gives it back
}

// A region is memory that is registered for one attempt of one call.
type region struct {
	mr   *verbs.MR
	gone bool // the responder has invalidated it; the requester's lock guards it
}

// rpcs keeps those of one client that are not in use, with their memory.
type rpcs struct{ pool sync.Pool }

// make makes an rpc of c. Arguments that do not match the procedure fail with a
// [wire.FaultStream], and what cannot be encoded with an *oncrpc.DecodeError.
func (r *rpcs) make(c *oncrpc.ClientCall, xid uint32, binding payload.Binding, unbound int) (*rpc, error) {
	x, _ := r.pool.Get().(*rpc)
	if x == nil {
		x = &rpc{rpcs: r, signal: make(chan struct{}, 1)}
		x.free = x.release
	}
	x.call = *c
	x.call.XID = xid
	var err error
	if x.head, err = x.call.Call.Append(x.head[:0]); err == nil {
		err = x.describe(binding, unbound)
	}
	if err != nil {
		x.release()
		return nil, err
	}
	x.reader.Call, x.reader.Binding, x.reader.Proc, x.reader.Forward = &x.plan.Header, binding, c.Proc, c.Forward
	return x, nil
}

// keepMemory is the most octets of a buffer that an rpc keeps for the next call.
const keepMemory = 1 << 20

// finish reads the reply.
func (x *rpc) finish(r *wire.Rules, inlineResults bool) (*oncrpc.ClientReply, error) {
	stream, err := x.stream(r)
	if err != nil {
		return nil, err
	}
	x.reader.InlineResults = inlineResults
	reply := &oncrpc.ClientReply{Free: x.free}
	if err := x.reader.Read(&x.header, stream, reply); err != nil {
		return nil, err
	}
	return reply, nil
}

// stream returns the RPC message of the reply.
func (x *rpc) stream(r *wire.Rules) ([]byte, error) {
	payload, err := x.header.Parse(x.message, r)
	if err != nil {
		return nil, err
	}
	switch h := &x.header; {
	case x.fetch != nil:
		payload, err = x.plain, h.CheckXID(x.plain, r)
	case h.Proc == wire.ProcNoMsg:
		payload = x.long[:h.Reply.Length()]
		err = h.CheckXID(payload, r)
	case h.Proc == wire.ProcMsgP:
		payload, err = x.unpad(payload)
	}
	return payload, err
}

// release returns x, and everything that its reply refers to, for reuse.
func (x *rpc) release() {
	for _, b := range []*[]byte{&x.gathered, &x.long, &x.plain} {
		if cap(*b) > keepMemory {
			*b = nil
		}
	}
	clear(x.shape.Stream)
	x.call, x.shape.Sinks, x.reader.Binding = oncrpc.ClientCall{}, nil, nil
	x.err, x.fetch = nil, nil
	x.rpcs.pool.Put(x)
}

// register registers each range that the plan exposes, for the peer of one queue pair, and
// sets the handles and offsets in the header.
func (x *rpc) register(qp *verbs.QP) error {
	p := &x.plan
	var gathered *verbs.MR
	if p.Gather > 0 {
		x.gathered = grow(x.gathered, p.Gather)
		if err := x.gather(); err != nil {
			return err
		}
		var err error
		if gathered, err = x.lend(qp, x.gathered, readable); err != nil {
			return err
		}
	}
	for i := range p.Exposures {
		e := &p.Exposures[i]
		s := p.Segment(e)
		access, memory := writable, e.Memory
		switch {
		case e.List == payload.ExposedReply:
			x.long = grow(x.long, e.Part.Length)
			memory = x.long
		case e.List == payload.ExposedRead && memory == nil:
			s.Handle, s.Offset = uint32(gathered.STag()), uint64(e.Part.Offset)
			continue
		case e.List == payload.ExposedRead:
			access = readable
		}
		mr, err := x.lend(qp, memory, access)
		if err != nil {
			return err
		}
		s.Handle, s.Offset = uint32(mr.STag()), 0
	}
	return nil
}

// What a peer may do with memory of Read chunks, and of Write and Reply chunks.
const (
	readable memory.Access = verbs.LocalRead | verbs.RemoteRead
	writable memory.Access = verbs.LocalWrite | verbs.RemoteWrite
)

func (x *rpc) lend(qp *verbs.QP, b []byte, access memory.Access) (*verbs.MR, error) {
	mr, err := qp.PD().RegisterMR(verbs.MRConfig{Buf: b, Access: access, ZeroBased: true, QP: qp})
	if err != nil {
		return nil, fmt.Errorf("rpcrdma: registering %d octets for the call of XID %#x: %w", len(b), x.call.XID, err)
	}
	x.regions = append(x.regions, region{mr: mr})
	return mr, nil
}

// grow returns b with n octets, in which what they are is not defined.
func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// invalidated notes that the responder has invalidated an STag. It reports whether
// that was a valid one of this call.
func (x *rpc) invalidated(stag memory.STag) bool {
	for i := range x.regions {
		if r := &x.regions[i]; !r.gone && r.mr.STag() == stag {
			r.gone = true
			return true
		}
	}
	return false
}

// deregister deallocates all memory of the call. When it returns no octet can move
// by any STag of the call (RFC 8166 §4.5.4).
func (x *rpc) deregister() error {
	var errs []error
	for i, r := range x.regions {
		if err := r.mr.Deallocate(); err != nil {
			errs = append(errs, fmt.Errorf("rpcrdma: taking back memory of XID %#x: %w", x.call.XID, err))
		}
		x.regions[i] = region{}
	}
	x.regions = x.regions[:0]
	return errors.Join(errs...)
}
