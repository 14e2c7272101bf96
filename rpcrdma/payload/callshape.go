// This file describes a call for planning.

package payload

import (
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// CallShape is what a call is made of.
type CallShape struct {
	XID     uint32
	Stream  [][]byte // the unreduced Payload stream in pieces, from its XID on
	Items   []Item   // of the arguments, in order; none where there is no binding
	Sinks   [][]byte // memory for results
	Bound   ReplyBound
	Longest int // octets of the longer body of credential and verifier

	// protected says that RPCSEC_GSS integrity or privacy covers the message, of
	// which then nothing is reduced, either way (RFC 8166 §8.2.2.3).
	Protected bool
}

// Describe describes the call c, whose header is head, with cursor to walk it. Unbound is
// the length to assume for a reply without a known limit.
//
// Arguments that do not match the procedure are an error, a [wire.FaultStream].
func (s *CallShape) Describe(head []byte, c *oncrpc.ClientCall, binding Binding, cursor *Cursor, unbound int) error {
	s.XID = c.XID
	s.Stream = append(append(s.Stream[:0], head), c.Args...)
	s.Items, s.Sinks, s.Bound = s.Items[:0], c.Sinks, ReplyBound{Fixed: -1}
	s.Longest = max(len(c.Cred.Body), len(c.Verf.Body))
	s.Protected = Protected(&c.Cred)
	if binding != nil && !s.Protected {
		// What goes inline may be padded, for which all items count.
		cursor.EligibleOnly = octets(s.Stream) > wire.MaxPrivateSize
		cursor.WholePieces(s.Stream, len(head))
		if err := WalkCall(binding, c.Proc, cursor); err != nil {
			return wire.Errorf(wire.FaultStream, "arguments of procedure %d: %v", c.Proc, err)
		}
		s.Items = append(s.Items, cursor.Items()...)
		cursor.WholePieces(s.Stream, len(head))
		s.Bound = binding.MaxReply(c.Proc, cursor)
	}
	switch {
	case c.MaxReply > 0 && s.Protected:
		s.Bound.Fixed = c.MaxReply + oncrpc.MaxAuthBody // what protects takes room, too
		for _, sink := range s.Sinks {
			s.Bound.Fixed += int(rounded(len(sink)))
		}
	case c.MaxReply > 0:
		// What is not for sinks is among MaxReply.
		s.Bound.Fixed, s.Bound.Items = c.MaxReply, s.Bound.Items[:min(len(s.Bound.Items), len(s.Sinks))]
	case s.Bound.Fixed >= 0:
		s.Bound.Fixed += verifierRoom(c.Cred.Flavor)
	case c.Proc == 0 && !s.Protected: // RFC 5531 §12.1: returns nothing
		s.Bound.Fixed = minReply + verifierRoom(c.Cred.Flavor)
	default:
		s.Bound.Fixed = unbound
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
