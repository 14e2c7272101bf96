// This file is where programs hand calls to a transport: what they say, and
// what they get.

package oncrpc

import (
	"context"
	"errors"
)

// ErrXIDInUse is what a forwarded call gets whose XID another call under way
// has already, to which the reply will be.
var ErrXIDInUse = errors.New("oncrpc: a call with this XID is under way")

// A ClientCall is a call to be made. Nothing of it is changed, and none of its
// memory is looked at or written to after [Caller.Call] has returned.
type ClientCall struct {
	Call          // the XID is the transport's to choose, but for Forward
	Args [][]byte // the arguments: an XDR stream, cut wherever its maker likes

	// Forward passes the call on for somebody else. It keeps its XID, by which
	// servers tell a call that is repeated, and which RPCSEC_GSS protects (RFC 2203
	// §5.3.1); a call whose XID is under way already gets [ErrXIDInUse]. And any
	// reply is returned, whether it says success or not, so that its verifier gets
	// where it belongs.
	Forward bool

	// Sinks is memory for those results that the upper-layer binding calls
	// DDP-eligible, in their order. A transport may place them there and leave
	// them out of the reply, or not. It may do so for as many as there are sinks;
	// a result that is longer than its sink is an error.
	Sinks [][]byte

	// Alloc, if not nil, gives memory for a reply of n octets, from its XID on,
	// instead of the transport: ClientReply.Message is in it then, and Release
	// does not touch it. It is called once for each reply that arrives, of which
	// only the last is returned. Request.Alloc fits: so a gateway has a reply
	// read where it is sent from. A transport need not use it.
	Alloc func(n int) []byte

	// MaxReply is how long the reply can become in octets, from its XID on,
	// without what the Sinks take. 0 leaves it to the upper-layer binding, or if
	// there is none to the transport's limit.
	MaxReply int
}

// A ClientReply is what came back. Release gives its memory back; the reply may
// not be used any more then.
type ClientReply struct {
	Reply          // the header; it says success, otherwise Call has returned its error, but for Forward
	Message []byte // the reply from its XID on, without what was placed
	Results []byte // the end of Message, behind the header

	// Placed says which results are in the sinks, in the order of the results.
	// It is shorter than Sinks if there were fewer results, or none was placed.
	Placed []Placed

	// Free, if not nil, is what Release calls, once. It is the transport's.
	Free func()
}

// A Placed result is in a sink instead of in the stream.
type Placed struct {
	At     int // where in Message its data and roundup are missing; the count word is before it
	Length int // octets in the sink: what the count word says; -1: the result is in the stream after all
	Sink   int // which sink; mostly the result's own index
}

// Release gives the reply's memory back to the transport. Who forgets it costs
// the garbage collector work and nothing else.
func (r *ClientReply) Release() {
	if f := r.Free; f != nil {
		r.Free = nil
		f()
	}
}

// A Caller makes calls over a transport. Many goroutines may use it.
type Caller interface {
	// Call makes a call and waits for the reply. It returns an [*AcceptError] or
	// a [*RejectError] when the server did not execute the call, the context's
	// error when that ended first, and other errors for what the transport
	// could not do; whether the call was executed is not known then.
	Call(ctx context.Context, c *ClientCall) (*ClientReply, error)

	// Close ends all calls with an error and frees everything.
	Close() error
}
