// This file fetches replies that their responder exposes by Read list, and tells
// it when that is done (RFC 5666 §3.8, §5.1).

package rpcrdma

import (
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// A fetch is the RDMA Reads of one reply.
type fetch struct {
	work
	r        *requester
	x        *rpc // whose reply it is; nil when nobody waits for it any more; the requester's lock guards it
	xid      uint32
	assembly payload.Assembly
	buf      *buffer
	sges     []verbs.SGE
	err      error // why it was not fetched; the connection goes on
}

// read fetches the reply of x, whose message has a Read list. The lock is held.
func (r *requester) read(x *rpc) {
	f := &fetch{r: r, x: x, xid: x.call.XID}
	x.fetch = f
	f.done = f.fetched
	inline, err := x.header.Parse(x.message, &r.cfg.rules)
	if err == nil {
		err = f.plan(&x.header, inline)
	}
	if err == nil && len(f.wrs) > 0 {
		// If that fails the connection has ended, and the queue's end, which comes
		// after what is handled now, ends x by way of the requester.
		if err = r.e.queue.fetch(&f.work); err != nil {
			r.e.pool.put(f.buf)
			x.fetch = nil
			r.xids[f.xid] = x
		}
		return
	}
	f.err = err
	r.fetched(f)
}

// plan makes the RDMA Reads, and puts what came inline in its place.
func (f *fetch) plan(h *wire.Header, inline []byte) error {
	if err := f.assembly.Plan(h, len(inline), nil, &f.r.cfg.rules); err != nil {
		return err
	}
	if f.r.e.queue.mostReads() == 0 {
		return wire.Errorf(wire.FaultLocal, "reply of XID %#x with a Read list, and no RDMA Read may be made on this connection", f.xid)
	}
	var err error
	if f.buf, err = f.r.e.pool.get(f.assembly.Length); err != nil {
		return err
	}
	f.sges = make([]verbs.SGE, 0, len(f.assembly.Pieces)) // is not moved while it is referred to
	at := 0
	for _, p := range f.assembly.Pieces {
		to := f.buf.b[at:][:p.Length]
		switch p.Kind {
		case payload.PieceInline:
			copy(to, inline[p.Offset:])
		case payload.PieceZeros:
			clear(to)
		case payload.PieceRead:
			f.sges = append(f.sges, f.buf.mr.SGE(at, p.Length))
			f.wrs = append(f.wrs, verbs.SendWR{
				Op: verbs.OpRead, SGL: f.sges[len(f.sges)-1:],
				Remote: verbs.Remote{STag: memory.STag(p.Segment.Handle), TO: p.Segment.Offset},
			})
		}
		at += p.Length
	}
	return nil
}

// fetched is called when the Reads have ended.
func (f *fetch) fetched(_ *work, err error) {
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	if err != nil { // with the connection
		f.r.e.pool.put(f.buf)
		f.x.failLost(err)
		return
	}
	f.r.fetched(f)
}

// fetched ends the call whose reply was fetched, or cannot be. First it tells the
// responder, by RDMA_DONE, that the reply's memory is no longer needed. The lock is held.
func (r *requester) fetched(f *fetch) {
	r.sendDone(f.xid)
	if x := f.x; x != nil {
		if f.err == nil {
			// The reply may be kept, and forgotten: it does not stay registered.
			x.plain = append(x.plain[:0], f.buf.b[:f.assembly.Length]...)
		}
		x.over, x.err = true, f.err
		x.wake()
	}
	if f.buf != nil {
		r.e.pool.put(f.buf)
	}
	r.admit()
}

// sendDone sends an RDMA_DONE. It has a place in the window already (RFC 5666
// §3.8). The lock is held.
func (r *requester) sendDone(xid uint32) {
	r.window.finish()
	var s *sending
	var err error
	if n := len(r.free); n > 0 {
		s, r.free = r.free[n-1], r.free[:n-1]
	} else if s, err = newSending(r); err != nil {
		r.e.fail(err)
		return
	}
	s.post(len(wire.AppendDone(s.buf.b[:0], xid, r.window.requested)))
}
