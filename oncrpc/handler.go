// This file is where a transport hands calls to programs: what a call looks
// like to its handler, and the choice of the handler by program and version.

package oncrpc

import (
	"context"
	"errors"
	"net"
	"slices"

	"github.com/weft-rdma/weft/origin"
)

// ErrNoReply is what a [Handler] returns for a call that is not to be answered:
// its caller will send it again, or gives up.
var ErrNoReply = errors.New("oncrpc: the call gets no reply")

// A Request is a call as a transport has received it. It and all memory that it
// refers to belong to the transport again when the handler has returned.
type Request struct {
	Call           // the header; the bodies of Cred and Verf are part of Message
	Message []byte // the whole call, from its XID on; nothing of it is elsewhere
	Args    []byte // the arguments: the end of Message

	Network       string   // what carried the call: "tcp", "udp" or "rdma"
	Local, Remote net.Addr // of the connection

	// Origin is where the call comes from, as this machine knows it: what the
	// server's Admit has found out about the connection, or what Remote tells. A
	// transport always sets it.
	Origin *origin.Origin

	// Session is the same for all calls of one connection, and for no others.
	// It is comparable. A handler that keeps something for a connection is told
	// of its end by SessionEnd.
	Session any

	// SessionEnd, if not nil, runs f when the connection has ended and no call
	// of it is in a handler any more. It runs f at once if that is so already.
	SessionEnd func(f func())

	// Back, if not nil, calls programs of the peer's over the connection that
	// this call came by (RFC 8167, RFC 8881 §2.10.3.1). It may be kept; after the
	// connection's end its calls fail.
	Back Caller

	// Alloc gives n octets of memory for the reply, in which what they contain
	// is not defined. What a transport gives is what it can send without a copy.
	// Nil stands for the heap. The memory is the transport's again when the reply
	// is sent, or the handler has returned another one or an error.
	Alloc func(n int) []byte
}

// Buffer returns memory for a reply of up to n octets, as an empty slice with
// that capacity.
func (r *Request) Buffer(n int) []byte {
	if r.Alloc == nil {
		return make([]byte, 0, n)
	}
	return r.Alloc(n)[:0]
}

// Accept begins a successful reply of up to n octets of results: it returns an
// Encoder that stands behind the header, with AUTH_NONE for a verifier.
func (r *Request) Accept(n int) Encoder {
	reply := Reply{XID: r.XID}
	e := NewEncoder(r.Buffer(reply.Len() + n))
	reply.Encode(&e)
	return e
}

// A Handler executes calls. A transport calls it from many goroutines at a
// time, for one connection too.
type Handler interface {
	// ServeRPC executes the call and returns the whole reply, from its XID on,
	// in memory of r.Buffer best. An error instead is answered as [ReplyTo] says,
	// but [ErrNoReply], which is not answered. The context ends with the
	// connection or when the server is shut down.
	ServeRPC(ctx context.Context, r *Request) (reply []byte, err error)
}

// A HandlerFunc is a function that is a Handler.
type HandlerFunc func(ctx context.Context, r *Request) (reply []byte, err error)

// ServeRPC calls f.
func (f HandlerFunc) ServeRPC(ctx context.Context, r *Request) ([]byte, error) { return f(ctx, r) }

// A Program is the versions of one program that one Handler serves. Its
// procedure 0 is answered without it (RFC 5531 §12.1).
type Program struct {
	Prog      uint32
	Low, High uint32 // versions, inclusive
	Handler   Handler
}

// A Mux is a Handler that chooses among programs. It answers PROG_UNAVAIL and
// PROG_MISMATCH by itself, and procedure 0 of what there is. A program may be
// in it with several ranges of versions.
type Mux []Program

// ServeRPC executes the call by the program that it is for.
func (m Mux) ServeRPC(ctx context.Context, r *Request) ([]byte, error) {
	var known []Program
	for _, p := range m {
		if p.Prog != r.Prog {
			continue
		}
		if p.Low <= r.Vers && r.Vers <= p.High {
			if r.Proc == 0 {
				e := r.Accept(0)
				return e.Finish()
			}
			return p.Handler.ServeRPC(ctx, r)
		}
		known = append(known, p)
	}
	if known == nil {
		return nil, &AcceptError{Stat: ProgUnavail}
	}
	mismatch := &AcceptError{Stat: ProgMismatch}
	mismatch.Low = slices.MinFunc(known, func(a, b Program) int { return int(int64(a.Low) - int64(b.Low)) }).Low
	mismatch.High = slices.MaxFunc(known, func(a, b Program) int { return int(int64(a.High) - int64(b.High)) }).High
	return nil, mismatch
}
