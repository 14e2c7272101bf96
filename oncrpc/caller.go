// This file defines what a client's transport offers to programs: the Caller, and
// the calls that it makes.

package oncrpc

import (
	"context"
	"errors"
)

// ErrXIDInUse is the error of a forwarded call while another call with its XID is in
// progress. The reply to that call answers both.
var ErrXIDInUse = errors.New("oncrpc: a call with this XID is in progress")

// A ClientCall is a call to be made. The Caller changes nothing in it, and does not
// access its memory after [Caller.Call] has returned.
type ClientCall struct {
	Call          // the transport chooses the XID, unless Forward is set
	Args [][]byte // the arguments: an XDR stream in any number of pieces

	// Forward makes the call on behalf of another client. It keeps its XID, by which
	// servers recognize retransmissions and which RPCSEC_GSS protects (RFC 2203
	// §5.3.1). If a call with that XID is in progress, the error is [ErrXIDInUse]. A
	// reply is returned whatever its status, so that its verifier reaches the client.
	Forward bool

	// Sinks are memory for the results that the upper-layer binding calls
	// DDP-eligible, in their order. A transport may place results there instead of in
	// the reply, at most as many as there are sinks. A result that is longer than its
	// sink is an error.
	Sinks [][]byte

	// Alloc, if not nil, returns memory for a reply of n octets from its XID on, in
	// place of the transport's. ClientReply.Message then lies in it, and Release does
	// not touch it. It is called for each reply that arrives; the last one is
	// returned. Request.Alloc fits, so that a gateway receives a reply where it will
	// send it from. A transport need not use it.
	Alloc func(n int) []byte

	// MaxReply is the longest possible reply in octets, from its XID on and without
	// results in Sinks. 0 leaves it to the upper-layer binding, or without one to the
	// transport's limit.
	MaxReply int
}

// A ClientReply is a reply to a call. Release returns its memory; the reply must not be
// used after that.
type ClientReply struct {
	Reply          // the header, of a successful call unless Forward was set
	Message []byte // the reply from its XID on, without results that were placed
	Results []byte // the end of Message, after the header

	// Placed says which results are in the sinks, in their order. It is shorter than
	// Sinks if there were fewer results or the transport placed none.
	Placed []Placed

	// Free, if not nil, is called once by Release. The transport sets it.
	Free func()
}

// A Placed result is in a sink instead of in the XDR stream.
type Placed struct {
	At     int // where in Message its data and roundup are missing, after its count word
	Length int // octets in the sink, as the count word says; -1: the result is in the stream after all
	Sink   int // index of the sink, mostly the result's own
}

// Release returns the reply's memory to the transport. Without it, the garbage collector
// frees the memory.
func (r *ClientReply) Release() {
	if f := r.Free; f != nil {
		r.Free = nil
		f()
	}
}

// A Caller makes calls over a transport. Its methods may be called by many goroutines.
type Caller interface {
	// Call makes a call and waits for the reply. The error is an [*AcceptError] or a
	// [*RejectError] if the server did not execute the call, and the context's error if
	// that ended first. After that and any other error the call may have been executed
	// or not.
	Call(ctx context.Context, c *ClientCall) (*ClientReply, error)

	// Close fails all calls in progress and frees everything.
	Close() error
}
