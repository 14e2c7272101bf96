// This file is Query QP.

package verbs

import (
	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/rdmap"
)

// QPAttributes are the attributes of a queue pair (Verbs §9.2.5.2).
type QPAttributes struct {
	Num    uint32 // QP ID
	State  State
	PD     *PD
	SendCQ *CQ
	RecvCQ *CQ
	SRQ    *SRQ // nil without

	SendDepth, RecvDepth          int  // work requests outstanding at a time; RecvDepth is 0 with an S-RQ
	SendSGEs, WriteSGEs, RecvSGEs int  // elements of a list; RecvSGEs is 0 with an S-RQ
	IRD, ORD                      int  // with a stream, those of the stream
	RemoteRead, RemoteWrite       bool // Inbound RDMA Read, and RDMA Write and Read Response, are enabled
	RemoteAtomic                  bool // inbound atomics are
	BindWindows, Privileged       bool
	Extensions                    bool // RFC 7306's operations can be posted

	RQLimit      int // the QP RQ Limit, 0 without an S-RQ
	RQLimitArmed bool

	// LLP is the stream below in RTS, Closing and Terminate, and nil otherwise.
	LLP ddp.LLP

	// Of Terminate and Error, if a Terminate message was sent or received:
	Terminate      []byte                // its payload: the Terminate header
	TerminateError *rdmap.TerminateError // the same, parsed
	TerminateLocal bool                  // this side sent it
}

// Query returns the attributes of the queue pair, in any state. The results besides
// success are ErrRNIC and ErrQP.
func (q *QP) Query() (QPAttributes, error) {
	const verb = "query QP"
	if err := q.rnic.alive(verb); err != nil {
		return QPAttributes{}, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dead {
		return QPAttributes{}, q.rnic.gone(verb, ErrQP)
	}
	c := &q.cfg
	a := QPAttributes{
		Num: q.num, State: q.state, PD: q.pd, SendCQ: c.SendCQ, RecvCQ: c.RecvCQ, SRQ: c.SRQ,
		SendSGEs: c.SendSGEs, WriteSGEs: c.WriteSGEs, RecvSGEs: c.RecvSGEs,
		RemoteRead: q.inbound.has(RemoteRead), RemoteWrite: q.inbound.has(RemoteWrite), RemoteAtomic: q.inbound.has(RemoteAtomic),
		BindWindows: c.BindWindows, Privileged: c.Privileged, Extensions: c.Extensions,
	}
	now := q.allocated()
	a.SendDepth, a.RecvDepth, a.IRD, a.ORD = now.SendDepth, now.RecvDepth, now.IRD, now.ORD
	a.RQLimit, a.RQLimitArmed = q.rq.queryLimit()
	switch q.state {
	case RTS, Closing, Terminate:
		a.LLP = q.conn.Load().llp
	}
	if e, ok := q.err.(*rdmap.TerminateError); ok && (q.state == Terminate || q.state == Error) {
		a.Terminate, a.TerminateError, a.TerminateLocal = append([]byte(nil), e.Raw...), e, !e.Remote
	}
	return a, nil
}

// allocated is what Create QP and Modify QP return of a queue pair; needs mu.
func (q *QP) allocated() QPModified {
	a := QPModified{IRD: q.ird, ORD: q.ord}
	if q.conn.Load() != nil {
		a.IRD, a.ORD = q.terms.IRD, q.terms.ORD
	}
	q.sq.post.Lock()
	a.SendDepth = int(q.sq.depth)
	q.sq.post.Unlock()
	q.rq.post.Lock()
	a.RecvDepth = int(q.rq.depth)
	q.rq.post.Unlock()
	return a
}
