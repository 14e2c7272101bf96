// The server of the Connection Configuration Protocol (RFC 5666 §6).

package rpcrdma

import (
	"context"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// A Configurator lets clients configure their connections by CONF_RDMA, which RFC 8166
// removed; private data (RFC 8797) replaces it.
type Configurator struct {
	// Allow decides which calls are accepted, by their credential: RFC 5666 §11 requires
	// an appropriate flavor. Other calls are answered AUTH_TOOWEAK. If Allow is nil, all
	// are.
	Allow func(call *oncrpc.Call) bool

	// Align is the alignment in octets that clients pad to in RDMA_MSGP; 0 and 1 are
	// none.
	Align uint32
}

// allowed reports whether the call may configure.
func (c *Configurator) allowed(call *oncrpc.Call) bool {
	return c.Allow != nil && c.Allow(call)
}

// A confServer is the program rdmaconfig of one connection.
type confServer struct {
	*Configurator
	e *endpoint
}

// ServeRPC answers NULL and CONF_RDMA. The second of a connection replaces what
// the first said.
func (s confServer) ServeRPC(_ context.Context, r *oncrpc.Request) ([]byte, error) {
	switch {
	case r.Vers != wire.ConfVersion:
		return nil, &oncrpc.AcceptError{Stat: oncrpc.ProgMismatch, Low: wire.ConfVersion, High: wire.ConfVersion}
	case r.Proc == wire.ConfNull:
		e := r.Accept(0)
		return e.Finish()
	case r.Proc != wire.ConfRDMA:
		return nil, &oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}
	case !s.allowed(&r.Call):
		return nil, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}
	}
	var call wire.ConfCall
	if err := call.Parse(r.Args); err != nil {
		return nil, &oncrpc.AcceptError{Stat: oncrpc.GarbageArgs, Err: err}
	}
	cfg := &s.e.cfg
	reply := wire.ConfReply{
		MaxCallSendSize: cfg.private.ReceiveSize, // the receives of that size are posted
		Align:           s.Align,
		MaxRDMARead:     uint32(s.e.conn.IRD()),
	}
	s.e.threshold.Store(int64(call.ReplyThreshold(cfg.private.SendSize)))
	s.e.queue.limitReads(int(min(uint32(s.e.mostReads), call.MaxRDMARead)))
	e := r.Accept(wire.ConfLen)
	e.Fixed(reply.Append(nil))
	return e.Finish()
}
