// This file makes the errors of the Receiver: one function for each check of
// RFC 5041 §7.1, off the path of good segments.

package ddp

import "fmt"

// refuse makes the error for the segment at hand.
func (r *Receiver) refuse(etype, code uint8, format string, args ...any) *Error {
	s := &r.seg
	return &Error{
		EType: etype, Code: code, SegmentLength: s.length,
		header: s.header, headerLen: uint8(s.headerLen),
		detail: fmt.Sprintf(format, args...),
	}
}

// tooShort: RFC 5041 §7.2 has no code for a segment without a whole header.
func (r *Receiver) tooShort() error {
	return r.refuse(LocalCatastrophic, 0, "a segment of %d octets is shorter than a DDP header (%d tagged, %d untagged)",
		r.seg.length, TaggedLen, UntaggedLen)
}

func (r *Receiver) badVersion(etype, code, version uint8) error {
	return r.refuse(etype, code, "the segment says version %d, the stream is version %d", version, r.version)
}

func (r *Receiver) badQN(qn uint32) error {
	return r.refuse(UntaggedBuffer, CodeInvalidQN, "queue %d, expected 0 to %d", qn, Queues-1)
}

func (r *Receiver) badMSN(h *Untagged, q *queue) error {
	err := r.refuse(UntaggedBuffer, CodeMSNRange, "message %d on queue %d, expected message %d", h.MSN, h.QN, q.done+1)
	err.Ahead = h.MSN - (q.done + 1) // RFC 5041 §4.3: modulo 2^32
	return err
}

func (r *Receiver) noBuffer(h *Untagged) error {
	return r.refuse(UntaggedBuffer, CodeNoBuffer, "message %d on queue %d found no buffer", h.MSN, h.QN)
}

func (r *Receiver) badMO(h *Untagged, q *queue) error {
	return r.refuse(UntaggedBuffer, CodeInvalidMO, "message %d on queue %d goes on at offset %d, expected %d (buffer of %d octets)",
		h.MSN, h.QN, h.MO, q.received, q.size)
}

func (r *Receiver) tooLong(h *Untagged, q *queue, n int) error {
	return r.refuse(UntaggedBuffer, CodeTooLong, "message %d on queue %d has %d octets at offset %d, its buffer has %d in all",
		h.MSN, h.QN, n, h.MO, q.size)
}

// refused makes the error for a Fault of PlaceTagged. A range that wraps is also out
// of bounds, so wrap and bounds are told apart here, whatever the memory checks
// first.
func (r *Receiver) refused(h *Tagged, n int, f Fault) error {
	if f == FaultBounds && h.TO+uint64(n-1) < h.TO {
		f = FaultWrap
	}
	why := ""
	if faultCode(f) == CodeNotAssociated {
		why = ": " + f.Reason() // it is one code for several
	}
	return r.refusedFor(h, n, f, why)
}

func (r *Receiver) refusedFor(h *Tagged, n int, f Fault, why string) error {
	err := r.refuse(TaggedBuffer, faultCode(f), "%d octets at offset %#x of STag 0x%08x%s", n, h.TO, h.STag, why)
	err.Fault = f
	return err
}

// unwritable makes the error of memory that was given for the segment at hand and
// could not be written: an access that the peer has no right to (RFC 5041 §7.1).
func (r *Receiver) unwritable(cause error) error {
	s := &r.seg
	if !s.isTagged {
		return r.ulp.Unwritable(&s.untagged, cause)
	}
	return r.refusedFor(&s.tagged, s.payload, FaultMemory, ": "+cause.Error())
}

// refusedWindow has err, of a Window, name the segment that the Window begins in.
func (r *Receiver) refusedWindow(err error) error {
	r.reach()
	if e, ok := err.(*Error); ok {
		e.SegmentLength, e.header = r.seg.length, r.seg.header
	}
	return err
}

// shortMemory: the ULP broke its promise to give memory for the whole payload.
func (r *Receiver) shortMemory(missing int) error {
	return r.refuse(LocalCatastrophic, 0, "no memory for the last %d of %d octets of payload", missing, r.seg.payload)
}
