// This file defines what a transport and the programs of a server are to each
// other: the Request, the Handler, and the Mux that chooses a Handler.

package oncrpc

import (
	"context"
	"errors"
	"net"
	"slices"

	"github.com/weft-rdma/weft/origin"
)

// ErrNoReply is what a [Handler] returns for a call that gets no reply. Its
// client retransmits it or gives up.
var ErrNoReply = errors.New("oncrpc: the call gets no reply")

// A Request is a call that a transport has received. The Request and all memory
// that it refers to belong to the transport again once the handler has returned.
type Request struct {
	Call           // the header; the bodies of Cred and Verf are part of Message
	Message []byte // the whole call from its XID on, in one piece
	Args    []byte // the arguments: the end of Message

	Network       string   // the transport: "tcp", "udp" or "rdma"
	Local, Remote net.Addr // of the connection

	// Origin is where the call comes from, as this machine knows it: the result of
	// the server's Admit for the connection, or else what Remote says. Transports
	// always set it.
	Origin *origin.Origin

	// Session identifies the connection: it is comparable, the same for all calls
	// of one connection, and different for calls of any other. A handler that keeps
	// state for a connection frees it in SessionEnd.
	Session any

	// SessionEnd, if not nil, registers f to run when the connection has ended and
	// no handler executes a call of it. If that is so already, f runs at once.
	SessionEnd func(f func())

	// Back, if not nil, calls programs of the peer over the connection of this call
	// (RFC 8167, RFC 8881 §2.10.3.1). A handler may keep it after returning; calls
	// fail once the connection has ended.
	Back Caller

	// Alloc returns n octets of memory for the reply, with undefined content, which
	// the transport can send without a copy. Nil stands for the heap. The memory is
	// the transport's again when the reply is sent, or when the handler returns an
	// error or a reply in other memory.
	Alloc func(n int) []byte
}

// Buffer returns memory for a reply of up to n octets, as an empty slice of that
// capacity.
func (r *Request) Buffer(n int) []byte {
	if r.Alloc == nil {
		return make([]byte, 0, n)
	}
	return r.Alloc(n)[:0]
}

// Accept begins a successful reply with up to n octets of results. It encodes the
// header, with an AUTH_NONE verifier, and returns the Encoder for the results.
func (r *Request) Accept(n int) Encoder {
	reply := Reply{XID: r.XID}
	e := NewEncoder(r.Buffer(reply.Len() + n))
	reply.Encode(&e)
	return e
}

// A Handler executes calls. A transport calls it from many goroutines at once, also
// for calls of one connection.
type Handler interface {
	// ServeRPC executes a call and returns the whole reply from its XID on,
	// preferably in memory of r.Buffer. The transport answers an error as [ReplyTo]
	// says, and does not answer [ErrNoReply]. The context ends with the connection
	// or when the server shuts down.
	ServeRPC(ctx context.Context, r *Request) (reply []byte, err error)
}

// A HandlerFunc is a function used as a Handler.
type HandlerFunc func(ctx context.Context, r *Request) (reply []byte, err error)

// ServeRPC calls f.
func (f HandlerFunc) ServeRPC(ctx context.Context, r *Request) ([]byte, error) { return f(ctx, r) }

// A Program is a range of versions of a program, served by one Handler. Its
// NULL procedure is answered without the Handler (RFC 5531 §12.1).
type Program struct {
	Prog      uint32
	Low, High uint32 // versions, inclusive
	Handler   Handler
}

// A Mux is a Handler that dispatches calls by program and version. It answers NULL
// of the programs that it has, and PROG_UNAVAIL and PROG_MISMATCH for others. A
// program may have several entries, with different ranges of versions.
type Mux []Program

// ServeRPC executes a call with the Handler of its program and version.
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
