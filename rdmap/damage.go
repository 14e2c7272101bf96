// This file ends messages whose memory is refused, revoked or cannot be read while they are
// being sent.

package rdmap

import (
	"errors"

	"github.com/weft-rdma/weft/ddp"
)

// refused ends an answer whose source is refused, from segment number frame on. It returns
// what segment does.
func (o *outbound) refused(frame uint64, f ddp.Fault) bool {
	o.s.cfg.Hold.Truncate(frame)
	if !o.ddp.Empty() {
		// The Terminate message says what was left of the request. What waits
		// may not leave either, as it may refer to the same memory.
		return false
	}
	o.ddp.Drop()
	o.unanswered(o.msg.req.readFault(f))
	return true
}

// failed ends an operation that cannot go on with segment number frame. It returns what
// segment does.
func (o *outbound) failed(frame uint64, err error) bool {
	// What was found before the error belongs to no segment. Its owner is told, and may
	// take it away before the Terminate has left.
	o.s.cfg.Hold.Truncate(frame)
	o.ddp.Drop()
	o.s.ulp.Failed(o.msg.ticket, err)
	return true
}

// unreadable ends a message whose memory cannot be read. It returns what segment does.
func (o *outbound) unreadable(fault error) bool {
	if o.short.appending {
		o.dropRun()
		return true
	}
	o.pieces = o.pieces[:0]
	torn := o.ddp.Appended()
	o.ddp.Truncate(torn)
	o.note(false)
	if o.msg.kind == kindAnswer {
		if o.ddp.Copied() {
			o.s.cfg.Hold.Truncate(o.frame)
		}
		return o.refused(torn, ddp.FaultMemory)
	}
	return o.failed(torn, &MemoryError{fault})
}

// damaged deals with segments whose memory was revoked, or turned out to be unreadable,
// before they could be written: frame is the first of them. If it has begun to leave,
// the stream cannot go on in any way; else it is dropped with all after it, and what it
// was part of fails (Verbs §6.4).
func (o *outbound) damaged(frame uint64, f ddp.Fault, why error) error {
	s := o.s
	begun := o.ddp.Truncate(frame)
	s.cfg.Hold.Truncate(frame)
	victim, ok := o.inflight.truncate(frame)
	o.ddp.Drop()
	switch {
	case begun:
		if f == ddp.FaultMemory && ok && victim.kind == kindOperation {
			s.ulp.Damaged(victim.ticket, why)
		}
		return &tornError{why}
	case !ok || victim.kind == kindTerminate:
		return &tornError{why}
	case victim.kind == kindAnswer:
		o.unanswered(victim.fault(f))
	default:
		s.ulp.Failed(victim.ticket, why)
	}
	return nil
}

// A MemoryError is why an operation cannot go on whose memory the system does not let
// us read or write.
type MemoryError struct{ Err error }

func (e *MemoryError) Error() string { return "rdmap: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *MemoryError) Unwrap() error { return e.Err }

var errRevoked = errors.New("rdmap: memory was revoked while it was being sent")

// A tornError is why a stream has to be reset: a segment has left in part and cannot be
// completed.
type tornError struct{ cause error }

func (e *tornError) Error() string {
	return "rdmap: the stream was reset in the middle of a segment: " + e.cause.Error()
}
func (e *tornError) Unwrap() error { return e.cause }
