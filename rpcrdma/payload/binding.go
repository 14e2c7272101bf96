// Upper-layer bindings say which data may be in chunks (RFC 8166 §6).

package payload

import (
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// A Binding is an upper-layer binding: which items of a version of a program are
// DDP-eligible, that is, may be in chunks of their own. It depends on the procedure, never
// on the XDR type alone (RFC 8166 §6.1). A program without a binding works, too; its long
// calls and replies are sent as long messages.
//
// Methods may be called by many goroutines at a time. They do not trust what
// they walk: the octets are a peer's.
type Binding interface {
	// WalkCall goes through the arguments of a call, which c stands at, and
	// visits every variable-length opaque or string item of them in order, by
	// [Cursor.Opaque], or [Cursor.Eligible] where the item may be reduced. It
	// returns an error for arguments that do not match the procedure. It need not
	// return the errors of c.
	WalkCall(proc uint32, c *Cursor) error

	// WalkReply does the same with the results of a successful reply.
	WalkReply(proc uint32, c *Cursor) error

	// MaxReply says how long the reply to a call can be, whose arguments c
	// stands at. It may leave arguments that it does not understand to what
	// WalkCall says of them.
	MaxReply(proc uint32, c *Cursor) ReplyBound

	// ReadRead reports whether a reply may be fetched by the requester from Read
	// chunks (RFC 5666 §3.8: if the upper layer permits).
	ReadRead(proc uint32) bool
}

// WalkCall has a binding go through the arguments that c stands at, to their
// end. An error is a [wire.FaultStream].
func WalkCall(b Binding, proc uint32, c *Cursor) error { return walked(b.WalkCall(proc, c), c) }

// WalkReply does the same with the results of a successful reply.
func WalkReply(b Binding, proc uint32, c *Cursor) error { return walked(b.WalkReply(proc, c), c) }

// walked returns the error of a walk, which has to reach the end.
func walked(err error, c *Cursor) error {
	if end := c.End(); end != nil {
		return end
	}
	if err != nil {
		return wire.Errorf(wire.FaultStream, "%v", err)
	}
	return nil
}

// A ReplyBound says how long a reply can become, with a verifier of no octets.
type ReplyBound struct {
	Fixed int   // octets of the message, from its XID on, but for the data of Items and their roundup; -1: not known
	Items []int // for each DDP-eligible result, in order, the most octets of its data
}

// Bindings finds the binding of a program and version.
type Bindings map[ProgramVersion]Binding

// A ProgramVersion names a version of a program.
type ProgramVersion struct{ Prog, Vers uint32 }
