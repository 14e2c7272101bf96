// This file explains errors: what was wrong with a work request or with a message of
// the peer, what was needed, and which field to set.

package verbs

import (
	"errors"
	"fmt"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/rdmap"
)

// unstarted says why precheck refused a work request with s.
func (u ulp) unstarted(w *sendWQE, s Status) string {
	remote := &w.wr.Remote
	switch {
	case s == InvalidLength:
		return tooLong(w.length)
	case s == InvalidWQE:
		return consortium
	case s == ZeroReadResources:
		return u.noReads()
	case s == InvalidSTag && remote.STag == 0 && w.wr.Op.row().remote:
		return zeroRemote
	}
	e := &w.wr.SGL[0]
	if s == InvalidSTag && e.STag == 0 {
		return zeroSTag
	}
	f := u.out.Check(uint32(e.STag), e.TO, uint64(e.Length), memory.LocalWrite)
	return refused(&u.out.Holder, e.STag, e.TO, uint64(e.Length), f)
}

const (
	consortium = "the stream is of the RDMA Consortium's version, which does not have the operation"
	zeroRemote = "SendWR.Remote.STag is 0: set it to the STag that the peer advertised"
	zeroSTag   = "SGE.STag is 0: set it to a region's, as MR.SGE does"
)

// tooLong is a scatter/gather list of more octets than a message can have.
func tooLong(n uint64) string {
	return fmt.Sprintf("%d octets in all, a message has at most %d", n, uint64(maxMessage))
}

// noReads says why ORD is 0.
func (q *QP) noReads() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ord == 0 {
		return "ORD is 0: set QPConfig.ORD, and IRD at the peer"
	}
	return fmt.Sprintf("ORD is 0 as agreed with the peer, though QPConfig.ORD is %d: the peer's IRD has to be above 0", q.ord)
}

// refused says why h refused local memory.
func refused(h *memory.Holder, stag memory.STag, to, n uint64, f ddp.Fault) string {
	if f == ddp.FaultSTag && stag == 0 {
		return zeroSTag + " (0 names Config.Physical, for queue pairs with QPConfig.Privileged)"
	}
	why := f.Reason()
	if f == ddp.FaultAccess {
		why = h.Denied().String()
	}
	return fmt.Sprintf("%d octets at offset %#x of STag %v: %s", n, to, stag, why)
}

// notInvalidated says why a local STag could not be invalidated.
func notInvalidated(stag memory.STag, f ddp.Fault) string {
	return fmt.Sprintf("STag %v: %s", stag, f.Reason())
}

// An explained error has its explanation behind it.
type explained struct {
	error
	why string
}

func (e explained) Error() string { return e.error.Error() + ": " + e.why }
func (e explained) Unwrap() error { return e.error }

// explain puts behind an error of the peer's what this side knows of it; h is what
// looked for the memory.
func (q *QP) explain(err error, h *memory.Holder) error {
	if why := q.explanation(err, h); why != "" {
		return explained{err, why}
	}
	return err
}

func (q *QP) explanation(err error, h *memory.Holder) string {
	if faultOf(err) == ddp.FaultMemory {
		return "" // the rights are there, the pages are not
	}
	op := opcodeOf(err)
	switch q.eventOf(err) {
	case EventReadDisabled:
		return q.inbound.lacks(RemoteRead)
	case EventWriteDisabled:
		return q.inbound.lacks(RemoteWrite)
	case EventProtectionAccess:
		if op == rdmap.OpReadResponse && !q.cfg.ReadSinkLocalWrite {
			return fmt.Sprintf("it is the sink of an RDMA Read: %v: register it so, or set QPConfig.ReadSinkLocalWrite", h.Denied())
		}
		return h.Denied().String()
	case EventIRRQAccess:
		return q.noRemoteAccess(op, h)
	case EventRQMSNRange:
		var segment *ddp.Error
		if errors.As(err, &segment) && segment.Code == ddp.CodeNoBuffer {
			return "post receives before they are needed, or set QPConfig.PauseOnEmptyRQ"
		}
	}
	return ""
}

// faultOf is why an access was refused, NoFault if that is not what err is.
func faultOf(err error) ddp.Fault {
	var segment *ddp.Error
	var message *rdmap.Error
	switch {
	case errors.As(err, &segment):
		return segment.Fault
	case errors.As(err, &message):
		return message.Fault
	}
	return ddp.NoFault
}

// noRemoteAccess says what a Read, an atomic or an invalidation of the peer's lacked.
func (q *QP) noRemoteAccess(op rdmap.Opcode, h *memory.Holder) string {
	switch {
	case op == rdmap.OpAtomicRequest && !q.inbound.has(RemoteAtomic):
		return q.inbound.lacks(RemoteAtomic)
	case op.Invalidates() && !q.inbound.access().Remote():
		return q.inbound.lacks(0)
	case op.Invalidates():
		return "it needs a remote right"
	}
	return h.Denied().String()
}

// opcodeOf is the opcode of the segment at fault; of none it is that of a Write.
func opcodeOf(err error) rdmap.Opcode {
	var at interface{ Header() []byte }
	if !errors.As(err, &at) || len(at.Header()) < 2 {
		return rdmap.OpWrite
	}
	_, op := rdmap.ParseControl(at.Header()[1])
	return op
}
