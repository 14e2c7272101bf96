// This file holds a reply against its call: what was placed where, and whether
// that may be (RFC 8166 §4.3, §6.1).

package rpcrdma

import (
	"github.com/weft-rdma/weft/oncrpc"
)

// A replyTaker knows what it takes to read the reply to one call.
type replyTaker struct {
	call    *Header // as it was sent
	binding Binding // nil without
	proc    uint32
	forward bool // see oncrpc.ClientCall

	// inlineResults takes an eligible result that is in the stream although a
	// Write chunk was there for it, which is a violation (RFC 8166 §6.1).
	inlineResults bool

	cursor Cursor
	chunks []int
}

// take reads message, the reduced Payload stream of the reply with header h, which
// has passed CheckReply and CheckReturned, into r. Where it returns an error the call ends with that:
//   - an *oncrpc.AcceptError or *oncrpc.RejectError is what the server says;
//   - a FaultStream is a reply that is none to this call, or a reduction of what
//     may not be reduced, or none of what has to be (RFC 8166 §6.1).
func (t *replyTaker) take(h *Header, message []byte, r *oncrpc.ClientReply) error {
	at, err := r.Reply.Parse(message)
	if err != nil {
		return faultf(FaultStream, "reply to XID %#x: %v", t.call.XID, err)
	}
	r.Message, r.Results = message, message[at:]
	if err := r.Reply.Err(); err != nil {
		if t.forward {
			return nil
		}
		return err
	}
	if len(t.call.Writes) == 0 {
		return nil // nothing can have been reduced
	}
	return t.place(h, at, r)
}

// place finds which results are in which sinks.
func (t *replyTaker) place(h *Header, at int, r *oncrpc.ClientReply) error {
	t.chunks = t.chunks[:0]
	used := 0 // chunks up to the last one that holds something
	for i, offered := range t.call.Writes {
		n := 0
		if i < len(h.Writes) {
			n = int(h.Writes[i].Length())
		}
		switch {
		case n > 0:
			used = i + 1
		case len(offered) == 0 || t.inlineResults: // RFC 8166 §4.3.2.3
			n = Inline
		}
		t.chunks = append(t.chunks, n)
	}
	t.cursor.EligibleOnly = true
	t.cursor.Reduced(r.Message, at, t.chunks)
	if err := WalkReply(t.binding, t.proc, &t.cursor); err != nil {
		return faultf(FaultStream, "results of XID %#x, procedure %d: %v", h.XID, t.proc, err)
	}
	if met := t.cursor.Chunks(); met < used { // RFC 8166 §6.1
		return faultf(FaultStream, "reply to XID %#x has octets in Write chunk %d, and %d results for Write chunks", h.XID, used-1, met)
	}
	placed := false
	for _, item := range t.cursor.Items() {
		if !item.Eligible {
			continue
		}
		p := oncrpc.Placed{At: item.At, Length: -1, Sink: len(r.Placed)}
		if item.Chunk >= 0 {
			p.Length, p.Sink, placed = item.Length, item.Chunk, true
			if offered := t.call.Writes[item.Chunk].Length(); uint64(item.Length) > offered {
				return faultf(FaultStream, "result of %d octets in Write chunk %d of XID %#x, which holds %d", item.Length, item.Chunk, h.XID, offered)
			}
		}
		r.Placed = append(r.Placed, p)
	}
	if !placed {
		r.Placed = nil
	}
	return nil
}
