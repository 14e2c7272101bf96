// This file compares a reply with its call: which results were placed where, and whether
// that is allowed (RFC 8166 §4.3, §6.1).

package payload

import (
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// A ReplyReader reads the reply to one call.
type ReplyReader struct {
	Call    *wire.Header // as it was sent
	Binding Binding      // nil without
	Proc    uint32
	Forward bool // see oncrpc.ClientCall

	// inlineResults takes an eligible result that is in the stream although a
	// Write chunk was there for it, which is a violation (RFC 8166 §6.1).
	InlineResults bool

	Cursor Cursor
	chunks []int
}

// Read reads message, the reduced Payload stream of the reply with header h, which
// has passed CheckReply and CheckReturned, into r. Where it returns an error the call ends with that:
//   - an *oncrpc.AcceptError or *oncrpc.RejectError is what the server says;
//   - a FaultStream is a reply that is none to this call, or a reduction of what
//     may not be reduced, or none of what has to be (RFC 8166 §6.1).
func (t *ReplyReader) Read(h *wire.Header, message []byte, r *oncrpc.ClientReply) error {
	at, err := r.Reply.Parse(message)
	if err != nil {
		return wire.Errorf(wire.FaultStream, "reply to XID %#x: %v", t.Call.XID, err)
	}
	r.Message, r.Results = message, message[at:]
	if err := r.Reply.Err(); err != nil {
		if t.Forward {
			return nil
		}
		return err
	}
	if len(t.Call.Writes) == 0 {
		return nil // nothing can have been reduced
	}
	return t.place(h, at, r)
}

// place finds which results are in which sinks.
func (t *ReplyReader) place(h *wire.Header, at int, r *oncrpc.ClientReply) error {
	t.chunks = t.chunks[:0]
	used := 0 // chunks up to the last one that holds something
	for i, offered := range t.Call.Writes {
		n := 0
		if i < len(h.Writes) {
			n = int(h.Writes[i].Length())
		}
		switch {
		case n > 0:
			used = i + 1
		case len(offered) == 0 || t.InlineResults: // RFC 8166 §4.3.2.3
			n = Inline
		}
		t.chunks = append(t.chunks, n)
	}
	t.Cursor.EligibleOnly = true
	t.Cursor.Reduced(r.Message, at, t.chunks)
	if err := WalkReply(t.Binding, t.Proc, &t.Cursor); err != nil {
		return wire.Errorf(wire.FaultStream, "results of XID %#x, procedure %d: %v", h.XID, t.Proc, err)
	}
	if met := t.Cursor.Chunks(); met < used { // RFC 8166 §6.1
		return wire.Errorf(wire.FaultStream, "reply to XID %#x has octets in Write chunk %d, and %d results for Write chunks", h.XID, used-1, met)
	}
	placed := false
	for _, item := range t.Cursor.Items() {
		if !item.Eligible {
			continue
		}
		p := oncrpc.Placed{At: item.At, Length: -1, Sink: len(r.Placed)}
		if item.Chunk >= 0 {
			p.Length, p.Sink, placed = item.Length, item.Chunk, true
			if offered := t.Call.Writes[item.Chunk].Length(); uint64(item.Length) > offered {
				return wire.Errorf(wire.FaultStream, "result of %d octets in Write chunk %d of XID %#x, which holds %d", item.Length, item.Chunk, h.XID, offered)
			}
		}
		r.Placed = append(r.Placed, p)
	}
	if !placed {
		r.Placed = nil
	}
	return nil
}
