// This file is what QPConfig.Strict refuses at posting: work requests that would
// complete in error, or whose answer would end the stream.

package verbs

import (
	"fmt"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/rdmap"
)

// strictError is the refusal of what would end with a status.
func strictError(verb string, s Status, why string) error {
	return fmt.Errorf("verbs: %s: %w: it would end with %w: %s", verb, ErrModifier, s, why)
}

// strictSend refuses a work request for the send queue that checkSend has nothing
// against.
func (q *QP) strictSend(wr *SendWR) error {
	const verb = "post to SQ"
	n, op := uint64(0), wr.Op.row()
	if op.list != noList {
		n = octets(wr.SGL)
	}
	c := q.conn.Load()
	switch {
	case n > maxMessage:
		return strictError(verb, InvalidLength, tooLong(n))
	case wr.Op == OpBind && !q.cfg.BindWindows:
		return strictError(verb, AccessViolation, "set QPConfig.BindWindows")
	case wr.Op == OpFastRegister && !q.cfg.Privileged:
		return strictError(verb, NotPrivileged, errNotPrivileged.Error())
	case c != nil && op.extension && c.llp.Version() == rdmap.VersionConsortium:
		return strictError(verb, InvalidWQE, consortium)
	case c != nil && op.needsResponse && c.stream.ORD() == 0:
		return strictError(verb, ZeroReadResources, "ORD is 0: set QPConfig.ORD, and IRD at the peer")
	case n > 0 && wr.Remote.STag == 0 && op.remote:
		return strictError(verb, InvalidSTag, zeroRemote)
	case op.list == sink && n > 0:
		return q.strictSink(verb, &wr.SGL[0])
	case op.needsResponse:
		return q.strictMemory(verb, wr.SGL, LocalWrite)
	case op.list != noList:
		return q.strictMemory(verb, wr.SGL, LocalRead)
	}
	return nil
}

// strictSink refuses the sink of a Read that the answer could not be written to.
func (q *QP) strictSink(verb string, e *SGE) error {
	if e.STag == 0 {
		return strictError(verb, InvalidSTag, zeroSTag)
	}
	if !q.inbound.has(responses) {
		return strictError(verb, AccessViolation, q.inbound.lacks(RemoteWrite)+", and an answer is a write")
	}
	h := q.looker()
	need, advice := RemoteWrite, ": register the sink of a Read so, or set QPConfig.ReadSinkLocalWrite"
	if q.cfg.ReadSinkLocalWrite {
		need, advice = LocalWrite, ""
	}
	f := h.Check(uint32(e.STag), e.TO, uint64(e.Length), need)
	if !certain(f) {
		return nil
	}
	if f != ddp.FaultAccess {
		advice = ""
	}
	return strictError(verb, statusOf(f), refused(&h, e.STag, e.TO, uint64(e.Length), f)+advice)
}

// strictRecv refuses a receive.
func (q *QP) strictRecv(wr *RecvWR) error {
	const verb = "post to RQ"
	if n := octets(wr.SGL); n > maxMessage {
		return strictError(verb, InvalidLength, tooLong(n))
	}
	return q.strictMemory(verb, wr.SGL, LocalWrite)
}

// strictMemory refuses local memory that lacks the right, or the octets.
func (q *QP) strictMemory(verb string, sgl []SGE, need memory.Access) error {
	h := q.looker()
	for i := range sgl {
		e := &sgl[i]
		f := h.Check(uint32(e.STag), e.TO, uint64(e.Length), need)
		if certain(f) || f == ddp.FaultSTag && e.STag == 0 {
			return strictError(verb, statusOf(f), refused(&h, e.STag, e.TO, uint64(e.Length), f))
		}
	}
	return nil
}

// looker returns a Holder for the goroutine that posts.
func (q *QP) looker() (h memory.Holder) {
	h.Init(q.rnic.table, q.pd.mem, memory.Stream(q.num))
	if q.cfg.Privileged {
		h.AllowZero()
	}
	return h
}

// certain reports that an access that is refused now will be then. An STag that is
// not valid may have become so, by a request that is posted in front.
func certain(f ddp.Fault) bool { return f != ddp.NoFault && f != ddp.FaultSTag }

// octets is how many octets a scatter/gather list names.
func octets(sgl []SGE) (n uint64) {
	for i := range sgl {
		n += uint64(sgl[i].Length)
	}
	return n
}
