// This file checks a parsed message by the rules of its direction (RFC 8166 §4, RFC 8167
// §5).

package wire

import (
	"encoding/binary"
	"fmt"
)

// A Direction distinguishes calls and replies.
type Direction uint8

const (
	DirectionUnknown Direction = iota // its credits are ignored (RFC 8167 §4.1)
	DirectionCall                     // for the responder, RDMA_DONE too
	DirectionReply                    // for the requester, RDMA_ERROR too
)

func (d Direction) String() string {
	switch d {
	case DirectionCall:
		return "call"
	case DirectionReply:
		return "reply"
	}
	return "unknown direction"
}

// The msg_type word of an RPC message (RFC 5531 §9).
const (
	rpcCall  = 0
	rpcReply = 1
)

// Direction reports whether a message that was parsed is a call or a reply, by
// its contents and not by its XID (RFC 8167 §5). Payload is what Parse
// returned. For an RDMA_NOMSG the lists decide: a Read chunk at position zero holds a
// call, or with Rules.ReadRead possibly a reply, which shows when its RPC message has been
// fetched; a Reply chunk that was used belongs to a reply, if its XID is one that the
// receiver has sent.
func (h *Header) Direction(payload []byte, r *Rules) Direction {
	switch h.Proc {
	case ProcMsg, ProcMsgP:
		return DirectionOf(payload)
	case ProcNoMsg:
		if h.atZero() {
			if r.ReadRead {
				return DirectionUnknown
			}
			return DirectionCall
		}
		if h.Reply.Length() > 0 {
			return DirectionReply
		}
	case ProcDone:
		return DirectionCall
	case ProcError:
		return DirectionReply
	}
	return DirectionUnknown
}

// DirectionOf returns the direction of an RPC message by its second word.
func DirectionOf(message []byte) Direction {
	if len(message) >= 8 {
		switch binary.BigEndian.Uint32(message[4:]) {
		case rpcCall:
			return DirectionCall
		case rpcReply:
			return DirectionReply
		}
	}
	return DirectionUnknown
}

// atZero reports whether the Read list has an entry of position zero.
func (h *Header) atZero() bool {
	for _, s := range h.Reads {
		if s.Position == 0 {
			return true
		}
	}
	return false
}

// CheckCall checks what a responder received. An RDMA_DONE passes: it gives
// back what is held for its XID, if anything is, and has no answer (RFC 8166
// §4.6.2).
func (h *Header) CheckCall(r *Rules) error {
	switch h.Proc {
	case ProcDone:
		return nil
	case ProcError: // RFC 8166 §4.2.4: requesters send none, responders discard it
		return Errorf(FaultUnexpected, "RDMA_ERROR of XID %#x, to a responder", h.XID)
	}
	if err := h.checkMessage(r); err != nil {
		return err
	}
	if h.Proc == ProcNoMsg && !h.atZero() { // RFC 8166 §3.5.3, §4.2.4
		return Errorf(FaultChunk, "RDMA_NOMSG call of XID %#x without a Read chunk at position zero", h.XID)
	}
	if r.NoChunks && (len(h.Reads) > 0 || len(h.Writes) > 0 || h.HasReply) { // RFC 8167 §5.3
		return Errorf(FaultChunk, "call of XID %#x with chunks, which are not supported in this direction", h.XID)
	}
	return nil
}

// CheckReply checks what a requester received. An RDMA_ERROR passes:
// [Header.RemoteError] is what its call ends with.
func (h *Header) CheckReply(r *Rules) error {
	switch h.Proc {
	case ProcDone: // RFC 8166 §4.6.2
		return Errorf(FaultUnexpected, "RDMA_DONE of XID %#x, to a requester", h.XID)
	case ProcError:
		return nil
	}
	if err := h.checkMessage(r); err != nil {
		return err
	}
	if len(h.Reads) > 0 && !r.ReadRead { // RFC 8166 §4.3.1
		return Errorf(FaultChunk, "reply of XID %#x with a Read list", h.XID)
	}
	used := h.Reply.Length() > 0
	switch {
	case h.Proc == ProcNoMsg && used == h.atZero():
		return Errorf(FaultChunk, "RDMA_NOMSG reply of XID %#x, expected its RPC message in the Reply chunk or in a Read chunk", h.XID)
	case h.Proc != ProcNoMsg && used:
		return Errorf(FaultChunk, "%v reply of XID %#x with a Reply chunk of %d octets, expected it unused", h.Proc, h.XID, h.Reply.Length())
	}
	return nil
}

// checkMessage checks what calls and replies have in common.
func (h *Header) checkMessage(r *Rules) error {
	switch {
	case h.Proc > ProcError:
		return Errorf(FaultChunk, "%v, expected 0 to 4", h.Proc)
	case h.Proc == ProcMsgP && !r.MSGP: // RFC 8166 §4.6.1
		return Errorf(FaultChunk, "RDMA_MSGP of XID %#x, which is not enabled", h.XID)
	case h.Proc != ProcNoMsg && h.atZero():
		// Position zero is where the RPC message begins, and this one begins
		// inline.
		return Errorf(FaultChunk, "%v of XID %#x with a Read chunk at position zero", h.Proc, h.XID)
	}
	return nil
}

// CheckReturned checks the Write list and Reply chunk of a reply against those
// of its call: the responder copies them, and rewrites the lengths to what it
// placed, in order and without gaps (RFC 8166 §3.4.6, §4.3.3). Taken too: a
// chunk that came back empty, and chunks that did not come back, as unused (RFC
// 8267 §6.4.1); and, of Write chunks, a length that counts roundup beyond the
// end of what was offered (RFC 5666 §3.7), which was not placed: no octet after
// the count in the Payload stream is a result.
func (h *Header) CheckReturned(call *Header) error {
	if len(h.Writes) > len(call.Writes) {
		return Errorf(FaultChunk, "reply of XID %#x returns %d Write chunks, offered were %d", h.XID, len(h.Writes), len(call.Writes))
	}
	for i, c := range h.Writes {
		if err := c.checkReturned(call.Writes[i], true); err != nil {
			err.Detail = fmt.Sprintf("Write chunk %d of XID %#x: %s", i, h.XID, err.Detail)
			return err
		}
	}
	if !h.HasReply {
		return nil
	}
	if !call.HasReply {
		return Errorf(FaultChunk, "reply of XID %#x returns a Reply chunk, none was offered", h.XID)
	}
	if err := h.Reply.checkReturned(call.Reply, false); err != nil {
		err.Detail = fmt.Sprintf("Reply chunk of XID %#x: %s", h.XID, err.Detail)
		return err
	}
	return nil
}

func (c WriteChunk) checkReturned(offered WriteChunk, roundup bool) *Error {
	if len(c) == 0 {
		return nil
	}
	if len(c) != len(offered) {
		return Errorf(FaultChunk, "came back with %d segments, offered were %d", len(c), len(offered))
	}
	rounded := roundup && c.Length()%4 == 0
	for i, end := 0, false; i < len(c); i++ {
		got, want := c[i], offered[i]
		if got.Handle != want.Handle || got.Offset != want.Offset {
			return Errorf(FaultChunk, "segment %d came back as %#x at %#x, offered was %#x at %#x", i, got.Handle, got.Offset, want.Handle, want.Offset)
		}
		if end && got.Length > 0 {
			return Errorf(FaultChunk, "segment %d has %d octets, and one before it was not filled, or overfilled", i, got.Length)
		}
		if got.Length > want.Length && !(rounded && got.Length-want.Length < 4) {
			return Errorf(FaultChunk, "segment %d came back with %d octets, offered were %d", i, got.Length, want.Length)
		}
		end = end || got.Length != want.Length
	}
	return nil
}
