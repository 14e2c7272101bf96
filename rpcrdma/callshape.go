// This file finds what a call is made of, as far as its planning cares.

package rpcrdma

import "github.com/weft-rdma/weft/oncrpc"

// callShape is what a call is made of.
type callShape struct {
	xid     uint32
	stream  [][]byte // the unreduced Payload stream in pieces, from its XID on
	items   []Item   // of the arguments, in order; none where there is no binding
	sinks   [][]byte // memory for results
	bound   ReplyBound
	longest int // octets of the longer body of credential and verifier

	// protected says that RPCSEC_GSS integrity or privacy covers the message, of
	// which then nothing is reduced, either way (RFC 8166 §8.2.2.3).
	protected bool
}

// of describes the call c, whose header is head, with cursor to walk it. Unbound
// is the room to be made for a reply of which nobody knows how long it can be.
//
// Arguments that are none of the procedure's are an error, a [FaultStream].
func (s *callShape) of(head []byte, c *oncrpc.ClientCall, binding Binding, cursor *Cursor, unbound int) error {
	s.xid = c.XID
	s.stream = append(append(s.stream[:0], head), c.Args...)
	s.items, s.sinks, s.bound = s.items[:0], c.Sinks, ReplyBound{Fixed: -1}
	s.longest = max(len(c.Cred.Body), len(c.Verf.Body))
	s.protected = protected(&c.Cred)
	if binding != nil && !s.protected {
		// What goes inline may be padded, for which all items count.
		cursor.EligibleOnly = octets(s.stream) > MaxPrivateSize
		cursor.WholePieces(s.stream, len(head))
		if err := WalkCall(binding, c.Proc, cursor); err != nil {
			return faultf(FaultStream, "arguments of procedure %d: %v", c.Proc, err)
		}
		s.items = append(s.items, cursor.Items()...)
		cursor.WholePieces(s.stream, len(head))
		s.bound = binding.MaxReply(c.Proc, cursor)
	}
	switch {
	case c.MaxReply > 0 && s.protected:
		s.bound.Fixed = c.MaxReply + oncrpc.MaxAuthBody // what protects takes room, too
		for _, sink := range s.sinks {
			s.bound.Fixed += int(rounded(len(sink)))
		}
	case c.MaxReply > 0:
		// What is not for sinks is among MaxReply.
		s.bound.Fixed, s.bound.Items = c.MaxReply, s.bound.Items[:min(len(s.bound.Items), len(s.sinks))]
	case s.bound.Fixed >= 0:
		s.bound.Fixed += verifierRoom(c.Cred.Flavor)
	case c.Proc == 0 && !s.protected: // RFC 5531 §12.1: returns nothing
		s.bound.Fixed = minReply + verifierRoom(c.Cred.Flavor)
	default:
		s.bound.Fixed = unbound
	}
	return nil
}

// octets is how many there are in pieces.
func octets(pieces [][]byte) (n int) {
	for _, piece := range pieces {
		n += len(piece)
	}
	return n
}

// verifierRoom is how many octets of verifier a reply may have, by the flavor of
// the call's credential: only security flavors put something there (RFC 5531
// §8.2, §14), and AUTH_SHORT, which answers AUTH_SYS (Appendix A).
func verifierRoom(f oncrpc.Flavor) int {
	if f == oncrpc.FlavorNone || f == oncrpc.FlavorSys {
		return 0
	}
	return oncrpc.MaxAuthBody
}
