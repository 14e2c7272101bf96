// This file holds the header and its encoding (RFC 5666 §4.3, RFC 8166 §4.7).

package wire

import "encoding/binary"

// Lengths of headers in octets.
const (
	fixedLen    = 16 // what all versions and types have
	creditsAt   = 8  // where the credits are in them
	NullLen     = 28 // MSG and NOMSG with three absent lists
	NullMsgPLen = 36 // MSGP with three absent lists

	DoneLen     = 16 // RDMA_DONE
	ErrVersLen  = 28 // RDMA_ERROR with ERR_VERS
	ErrChunkLen = 20 // RDMA_ERROR with ERR_CHUNK

	extraLen = 32 // RFC 5666 §4.3: rdma_extra, of codes that nobody assigned
)

// A Header is what an RPC-over-RDMA message begins with.
//
// [Header.Parse] lets Reads, Writes and Reply refer to memory that belongs to
// the Header and lasts until it parses again. Memory that a caller puts there
// it never writes to.
type Header struct {
	XID     uint32
	Version uint32 // sent as it is with RDMA_ERROR, and as 1 with all others
	Credits uint32 // requested by a call, granted by a reply; not checked here
	Proc    Proc

	// Of RDMA_MSGP: pads and what they depend on, see [Padding].
	Align, Threshold uint32

	// Of RDMA_MSG, RDMA_NOMSG and RDMA_MSGP.
	Reads    []ReadSegment // the Read list, in the order of the wire
	Writes   []WriteChunk  // the Write list, a chunk for each result
	Reply    WriteChunk    // the Reply chunk, if there is one
	HasReply bool          // whether there is one; it may have no segments

	// Of RDMA_ERROR.
	Err       ErrorCode
	Low, High uint32 // of ErrVers: the supported versions, inclusive

	// What the lists refer to after Parse.
	reads    []ReadSegment
	sorted   []ReadSegment
	writes   []WriteChunk
	segments []Segment
}

// Len returns the octets that Append appends.
func (h *Header) Len() int {
	switch h.Proc {
	case ProcDone:
		return DoneLen
	case ProcError:
		switch h.Err {
		case ErrVers:
			return ErrVersLen
		case ErrChunk:
			return ErrChunkLen
		}
		return ErrChunkLen + extraLen
	}
	n := NullLen + (4+ReadSegmentLen)*len(h.Reads)
	if h.Proc == ProcMsgP {
		n += NullMsgPLen - NullLen
	}
	for _, c := range h.Writes {
		n += 8 + segmentLen*len(c)
	}
	if h.HasReply {
		n += 4 + segmentLen*len(h.Reply)
	}
	return n
}

// Append appends the header to dst. What the message type does not have is not
// sent, whatever is set (RFC 5666 §4.1); an unknown type is sent like RDMA_MSG,
// and an unknown error code with eight words of zeros (RFC 5666 §4.3), which is
// for tests of peers. The lists go out in the order that they have.
func (h *Header) Append(dst []byte) []byte {
	version := uint32(Version) // RFC 8166 §4.2.2
	if h.Proc == ProcError {
		version = h.Version // RFC 8166 §4.5: the one of the request
	}
	dst = binary.BigEndian.AppendUint32(dst, h.XID)
	dst = binary.BigEndian.AppendUint32(dst, version)
	dst = binary.BigEndian.AppendUint32(dst, h.Credits)
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Proc))
	switch h.Proc {
	case ProcDone:
		return dst
	case ProcError:
		return h.appendError(dst)
	case ProcMsgP:
		dst = binary.BigEndian.AppendUint32(dst, h.Align)
		dst = binary.BigEndian.AppendUint32(dst, h.Threshold)
	}
	return h.appendLists(dst)
}

// extra is the rdma_extra of codes that nobody assigned.
var extra [extraLen]byte

func (h *Header) appendError(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Err))
	switch h.Err {
	case ErrVers:
		dst = binary.BigEndian.AppendUint32(dst, h.Low)
		return binary.BigEndian.AppendUint32(dst, h.High)
	case ErrChunk:
		return dst
	}
	return append(dst, extra[:]...)
}

func (h *Header) appendLists(dst []byte) []byte {
	for _, r := range h.Reads {
		dst = binary.BigEndian.AppendUint32(dst, 1)
		dst = binary.BigEndian.AppendUint32(dst, r.Position)
		dst = r.Segment.append(dst)
	}
	dst = binary.BigEndian.AppendUint32(dst, 0)
	for _, c := range h.Writes {
		dst = c.append(dst)
	}
	dst = binary.BigEndian.AppendUint32(dst, 0)
	if h.HasReply {
		return h.Reply.append(dst)
	}
	return binary.BigEndian.AppendUint32(dst, 0)
}

// append appends the word that says that c is there, and c.
func (c WriteChunk) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, 1)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(c)))
	for _, s := range c {
		dst = s.append(dst)
	}
	return dst
}

// AppendErrVers appends the RDMA_ERROR that answers a call whose version is not
// 1. It carries the XID and the version of the call, and says that version 1
// alone is supported (RFC 8166 §4.5.1).
func AppendErrVers(dst []byte, xid, version, credits uint32) []byte {
	h := Header{XID: xid, Version: version, Credits: credits, Proc: ProcError, Err: ErrVers, Low: Version, High: Version}
	return h.Append(dst)
}

// AppendErrChunk appends the RDMA_ERROR that answers a call of version 1 whose
// header is not valid, or whose reply fits nothing that it offered (RFC 8166
// §4.5.2, §4.5.3).
func AppendErrChunk(dst []byte, xid, credits uint32) []byte {
	h := Header{XID: xid, Version: Version, Credits: credits, Proc: ProcError, Err: ErrChunk}
	return h.Append(dst)
}

// AppendDone appends the RDMA_DONE that tells a responder that the Read chunks
// of its reply were fetched (RFC 5666 §3.8). Its credits are the requested
// ones, as in a call.
func AppendDone(dst []byte, xid, credits uint32) []byte {
	h := Header{XID: xid, Credits: credits, Proc: ProcDone}
	return h.Append(dst)
}

// PutCredits replaces the credits in message, which begins with a header.
func PutCredits(message []byte, credits uint32) {
	binary.BigEndian.PutUint32(message[creditsAt:], credits)
}

// CommonHandle returns the handle that all segments of the chunk lists have; 0
// if they have several, or if there is no segment.
func (h *Header) CommonHandle() (handle uint32) {
	same := true
	see := func(s Segment) {
		same = same && (handle == 0 || handle == s.Handle)
		handle = s.Handle
	}
	for _, s := range h.Reads {
		see(s.Segment)
	}
	for _, chunk := range h.Writes {
		for _, s := range chunk {
			see(s)
		}
	}
	for _, s := range h.Reply {
		see(s)
	}
	if !same {
		return 0
	}
	return handle
}

// RemoteError returns the error that an RDMA_ERROR reports, and nil for any
// other message.
func (h *Header) RemoteError() error {
	if h.Proc != ProcError {
		return nil
	}
	return &RemoteError{Code: h.Err, Low: h.Low, High: h.High}
}
