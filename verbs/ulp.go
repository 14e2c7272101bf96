// This file implements rdmap.ULP for a queue pair: the source of operations, the
// receiver of messages, and protected memory.

package verbs

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/rdmap"
)

// ulp is the QP without its verbs.
type ulp struct{ *QP }

var _ rdmap.ULP = ulp{}

// A hold holds the memory of segments on their way out.
type hold struct{ memory.Holder }

// Revoked returns the lowest frame whose memory was revoked.
func (h *hold) Revoked() uint64 {
	_, frame, _ := h.Holder.Revoked()
	return frame
}

// A wqError is the failure of a work request of this side. The Terminate message says
// local catastrophic error (Verbs §6.4, figure 23).
type wqError struct {
	status Status
	detail string // what was wrong with which, and what to do; may be empty
}

func (e wqError) Error() string {
	s := "work request ended: " + e.status.String()
	if e.detail != "" {
		s += ": " + e.detail
	}
	return s
}

func (e wqError) Unwrap() error { return e.status }

func (e wqError) TerminateCode() (layer, etype, code uint8) {
	return rdmap.LayerRDMA, rdmap.LocalCatastrophic, 0
}

// statusOf is the completion status for memory that was refused.
func statusOf(f ddp.Fault) Status {
	switch f {
	case ddp.NoFault:
		return Success
	case ddp.FaultBounds:
		return BaseBounds
	case ddp.FaultAccess, ddp.FaultDisabled, ddp.FaultMemory:
		return AccessViolation
	case ddp.FaultAssociation:
		return InvalidPD
	case ddp.FaultWrap:
		return WrapError
	}
	return InvalidSTag
}

// --- rdmap.SendQueue

// Next starts the next work request. Local ones are executed at once.
func (u ulp) Next(op *rdmap.Operation) bool {
	s := &u.sq
	for {
		n := s.next.Load()
		if n == s.tail.Load() {
			return false
		}
		w := s.at(n)
		if w.local {
			if !u.execute(n, w) {
				return false
			}
			continue
		}
		if status := u.precheck(w); status != Success {
			s.next.Store(n + 1)
			u.Failed(n, wqError{status, u.unstarted(w, status)})
			return false
		}
		u.describe(op, n, w)
		s.next.Store(n + 1)
		return true
	}
}

// describe makes the RDMAP operation of a work request.
func (u ulp) describe(op *rdmap.Operation, n uint64, w *sendWQE) {
	row := w.wr.Op.row()
	op.Opcode = row.opcode
	op.Fence = w.wr.Flags&ReadFence != 0
	op.Ticket = n
	op.Length = uint32(w.length)
	op.InvalidateSTag = uint32(w.wr.Invalidate)
	op.RemoteSTag, op.RemoteTO = uint32(w.wr.Remote.STag), w.wr.Remote.TO
	op.Immediate = w.wr.Immediate
	if !w.needsResponse {
		return // the other fields are not used
	}
	op.SinkSTag, op.SinkTO = uint32(w.wr.SGL[0].STag), w.wr.SGL[0].TO
	a := &w.wr.Atomic
	op.Atomic = rdmap.AtomicRequest{AOpCode: row.atomic, Data: a.Data, Mask: a.Mask, Compare: a.Compare, CompareMask: a.CompareMask}
}

// precheck makes the checks that belong to the start of a work request
// (Verbs §8.3.2). That the sink of a Read may be written is not among them: the
// answer is a remote access, and refused when it comes (Verbs §7.4.2). An STag of
// zero cannot be its sink, nor what is asked of the peer (Verbs §8.1.3.2.1).
func (u ulp) precheck(w *sendWQE) Status {
	c, op := u.conn.Load(), w.wr.Op.row()
	switch {
	case w.length > maxMessage:
		return InvalidLength
	case op.extension && c.llp.Version() == rdmap.VersionConsortium:
		return InvalidWQE // RFC 7306 §4.1: RV is 01b
	case op.remote && !op.needsResponse && w.length > 0 && w.wr.Remote.STag == 0:
		return InvalidSTag
	case !w.needsResponse:
		return Success
	case c.stream.ORD() == 0:
		return ZeroReadResources
	case w.length == 0:
		return Success
	case w.wr.Remote.STag == 0:
		return InvalidSTag
	}
	e := &w.wr.SGL[0]
	if op.list == value {
		return statusOf(u.out.Check(uint32(e.STag), e.TO, uint64(e.Length), memory.LocalWrite))
	}
	if e.STag == 0 {
		return InvalidSTag
	}
	return Success
}

// Gather finds the memory of a part of a Send or Write.
func (u ulp) Gather(dst [][]byte, ticket uint64, off uint64, n int) ([][]byte, error) {
	u.sq.gathered = ticket + 1
	return u.pieces(dst, &u.out.Holder, u.sq.at(ticket).wr.SGL, off, n, LocalRead)
}

// pieces finds the memory of octets [off, off+n) of a scatter/gather list.
func (u ulp) pieces(dst [][]byte, h *memory.Holder, sgl []SGE, off uint64, n int, need memory.Access) ([][]byte, error) {
	var f ddp.Fault
	for i := range sgl {
		e := &sgl[i]
		if off >= uint64(e.Length) {
			off -= uint64(e.Length)
			continue
		}
		part := min(uint64(e.Length)-off, uint64(n))
		if dst, f = h.Resolve(dst, uint32(e.STag), e.TO+off, part, need); f != ddp.NoFault {
			return dst, wqError{statusOf(f), refused(h, e.STag, e.TO+off, part, f)}
		}
		if n -= int(part); n == 0 {
			return dst, nil
		}
		off = 0
	}
	return dst, wqError{status: InvalidWQE}
}

// Sent completes Sends, Writes and Immediate Data. An Invalidate may have waited for
// that.
func (u ulp) Sent(ticket uint64) (more bool) {
	u.sq.sentTo(ticket + 1)
	return u.Waiting()
}

// Responded completes a Read or atomic. Its completion is generated before the receiving
// goroutine waits, or completes a receive.
func (u ulp) Responded(ticket uint64, value uint64) error {
	w := u.sq.at(ticket)
	if finish := w.wr.Op.row().finish; finish != nil {
		if err := finish(u, w, value); err != nil {
			return u.responseFailed(ticket, err)
		}
	}
	u.sq.hear(ticket)
	return nil
}

// putValue writes the value that an atomic found to the memory of its element.
func (u ulp) putValue(w *sendWQE, value uint64) error {
	e := &w.wr.SGL[0]
	u.room()
	var b [1][]byte
	pieces, f := u.in.Resolve(b[:0], uint32(e.STag), e.TO, 8, LocalWrite)
	if f != ddp.NoFault {
		return wqError{statusOf(f), refused(&u.in, e.STag, e.TO, 8, f)}
	}
	var v [8]byte
	binary.NativeEndian.PutUint64(v[:], value)
	if _, err := pages.Scatter(pieces, v[:]); err != nil {
		return memoryFault{err}
	}
	return nil
}

// invalidateSink invalidates the sink of a Read: after the data, before the completion
// (Verbs §8.2.2).
func (u ulp) invalidateSink(w *sendWQE, _ uint64) error {
	stag := w.wr.SGL[0].STag
	u.releaseInbound()
	if f := u.rnic.table.Invalidate(uint32(stag), u.pd.mem, memory.Stream(u.num), false); f != ddp.NoFault {
		return wqError{statusOf(f), notInvalidated(stag, f)}
	}
	return nil
}

// responseFailed is failed for the receiving goroutine. It returns err.
func (u ulp) responseFailed(ticket uint64, err error) error {
	status := LocalCatastrophic
	errors.As(err, &status)
	u.quiesce()
	if !u.condemn(err) {
		status = Flushed
	}
	u.sq.finish(ticket, status)
	return err
}

// Failed completes a work request in error and ends the stream.
func (u ulp) Failed(ticket uint64, err error) {
	if e := (*rdmap.MemoryError)(nil); errors.As(err, &e) {
		u.failed(ticket, memoryFault{e.Err}, AccessViolation)
		return
	}
	why, ok := err.(wqError)
	switch {
	case ok:
	case err == rdmap.ErrNoORD:
		why = wqError{ZeroReadResources, u.noReads()}
	default:
		why = wqError{InvalidSTag, "its memory was invalidated or deallocated before it had been sent"}
	}
	u.failed(ticket, why, why.status)
}

// failed completes a work request with status and ends the stream because of err. If it
// has been ended before the request is flushed.
func (u ulp) failed(ticket uint64, err error, status Status) {
	if !u.workFailed(err) {
		status = Flushed
	}
	u.sq.finish(ticket, status)
}

// --- rdmap.ReceiveQueue

// Receive readies the next receive.
func (u ulp) Receive() (size uint64, ok bool) {
	r := &u.rq
	var since time.Time // of the pause
	for {
		if ok, failed := r.ready(); failed {
			u.releaseInbound() // what ends the stream may have to wait for memory
			u.srqFailed()
			return 0, false
		} else if ok || u.refill() {
			break
		}
		c := u.conn.Load()
		if !u.cfg.PauseOnEmptyRQ || c == nil {
			return 0, false
		}
		if u.cfg.SetAside > 0 { // it has waited for as long as it may
			r.stopWaiting()
			return 0, false
		}
		u.quiesce()
		c.stream.Kick() // what the messages before this one asked for
		if since.IsZero() {
			since = time.Now()
		}
		if ok, _ := r.await(c, since, nil); !ok {
			r.stopWaiting()
			return 0, false
		}
	}
	w := r.front()
	if w.length > maxMessage {
		u.releaseInbound()
		if u.workFailed(wqError{InvalidLength, tooLong(w.length)}) {
			r.complete(&WC{Op: OpRecv, Status: InvalidLength})
		}
		return 0, false
	}
	return w.length, true
}

// WouldBlock reports that Receive would block. A receive of a shared queue may be taken by
// another queue pair before this one asks for it.
func (u ulp) WouldBlock() bool {
	return u.cfg.PauseOnEmptyRQ && (u.rq.srq != nil || u.rq.front() == nil && !u.refill())
}

// Scatter finds the memory of a part of the receive. What it refuses is the
// receive's fault: it completes in error (Verbs §8.3.2).
func (u ulp) Scatter(dst [][]byte, off uint64, n int) ([][]byte, error) {
	u.room()
	h := &u.in
	if u.shared != nil {
		h = u.shared
	}
	dst, err := u.pieces(dst, h, u.rq.front().sgl, off, n, LocalWrite)
	if err != nil {
		u.receiveFailed(err, err.(wqError).status)
	}
	return dst, err
}

// receiveFailed completes the receive in error, and has the stream ended.
func (u ulp) receiveFailed(err error, status Status) {
	if u.condemn(err) {
		u.rq.complete(&WC{Op: OpRecv, Status: status})
	}
}

// Delivered completes the receive.
func (u ulp) Delivered(d *rdmap.Delivery) {
	wc := WC{Op: OpRecv, Bytes: d.Length, Solicited: d.Opcode.Solicited()}
	if d.Opcode == rdmap.OpImmediate || d.Opcode == rdmap.OpImmediateSE {
		wc.Op, wc.Immediate = OpRecvImmediate, d.Immediate
	}
	wc.Invalidated, wc.HasInvalidated = memory.STag(d.Invalidated), d.HasSTag
	u.sq.tell()
	u.rq.complete(&wc)
}

// Refused returns the error for a message that may not invalidate the STag that it names.
// When the stream is ended with it, the receive completes.
func (u ulp) Refused(err error) error { return reportedInWC{err} }

// reportedInWC is an error that the completion of a receive reports, and no event (Verbs
// §8.3.2).
type reportedInWC struct{ error }

func (t reportedInWC) Unwrap() error { return t.error }

// --- rdmap.Memory, by Verbs §7.6.3, figure 21

// WriteTarget: Remote Write, and the QP takes Writes.
func (u ulp) WriteTarget(dst [][]byte, stag uint32, to uint64, n int) ([][]byte, ddp.Fault) {
	if !u.inbound.has(RemoteWrite) {
		return dst, ddp.FaultDisabled
	}
	u.room()
	return u.in.Resolve(dst, stag, to, uint64(n), RemoteWrite)
}

// ReadSink: the same for a Read Response.
func (u ulp) ReadSink(dst [][]byte, stag uint32, to uint64, n int) ([][]byte, ddp.Fault) {
	if !u.inbound.has(responses) {
		return dst, ddp.FaultDisabled
	}
	u.room()
	if !u.cfg.ReadSinkLocalWrite {
		return u.in.Resolve(dst, stag, to, uint64(n), RemoteWrite)
	}
	dst, f := u.in.Resolve(dst, stag, to, uint64(n), LocalWrite)
	if f == ddp.FaultSTag { // a window, perhaps: it has remote rights only
		return u.in.Resolve(dst, stag, to, uint64(n), RemoteWrite)
	}
	return dst, f
}

// CheckSource: Remote Read, and the QP takes Reads.
func (u ulp) CheckSource(stag uint32, to uint64, n uint32) ddp.Fault {
	if !u.inbound.has(RemoteRead) {
		return ddp.FaultDisabled
	}
	return u.in.Check(stag, to, uint64(n), RemoteRead)
}

// Source: Remote Read again, as the response is generated.
func (u ulp) Source(dst [][]byte, stag uint32, to uint64, n int) ([][]byte, ddp.Fault) {
	return u.out.Resolve(dst, stag, to, uint64(n), RemoteRead)
}

// Atomic: Remote Atomic, and the QP takes atomics.
func (u ulp) Atomic(a *rdmap.AtomicRequest) (found uint64, aligned bool, f ddp.Fault) {
	if !u.inbound.has(RemoteAtomic) {
		return 0, true, ddp.FaultDisabled
	}
	found, misaligned, f := u.out.Atomic(a.STag, a.TO, a.Apply)
	return found, !misaligned, f
}

// CheckAtomic: the same, before anything is done.
func (u ulp) CheckAtomic(a *rdmap.AtomicRequest) (aligned bool, f ddp.Fault) {
	if !u.inbound.has(RemoteAtomic) {
		return true, ddp.FaultDisabled
	}
	misaligned, f := u.in.CheckAtomic(a.STag, a.TO)
	return !misaligned, f
}

// Unanswered ends the stream because of memory that has gone.
func (u ulp) Unanswered(err error) { u.conn.Load().unanswered(err) }

// Invalidate is the peer's: Verbs §7.9 wants a remote right on the queue pair,
// too.
func (u ulp) Invalidate(stag uint32) ddp.Fault {
	if !u.inbound.access().Remote() {
		return ddp.FaultAccess
	}
	return u.rnic.table.Invalidate(stag, u.pd.mem, memory.Stream(u.num), true)
}

// Release and Idle end the holds that were kept from one segment to the next, and generate
// the completions that are due.
func (u ulp) Release() { u.quiesce() }
func (u ulp) Idle()    { u.quiesce() }

// quiesce readies the receiving goroutine for waiting.
func (u ulp) quiesce() {
	u.releaseInbound()
	u.sq.tell()
}

// releaseInbound ends every hold of the receiving goroutine.
func (q *QP) releaseInbound() {
	q.in.Forget()
	if q.shared != nil {
		q.shared.Forget()
	}
}

// room limits what is held for earlier segments: a peer chooses how many STags it uses
// between two reads of the socket.
func (u ulp) room() {
	if u.in.Full() || u.shared != nil && u.shared.Full() {
		u.releaseInbound()
	}
}
