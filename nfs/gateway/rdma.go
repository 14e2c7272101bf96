// This file is the way to a server over RDMA.

package gateway

import (
	"log/slog"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/verbs"
)

// callbacks is how many calls of a server's a client in front may have to
// execute at a time.
const callbacks = 16

// An RDMAConfig says how a server is called over RDMA.
type RDMAConfig struct {
	Address string      // host and port of the server
	RNIC    *verbs.RNIC // what connections are made with

	// Connection holds what is not the default of the connections.
	Connection cm.Params

	// Retrying, if not nil, is told why there is no connection for calls that wait,
	// as rpctcp's and rpcrdma's ClientConfig say.
	Retrying func(error)

	// Logger tells of connections lost and made again; nil is silent.
	Logger *slog.Logger
}

// RDMA is a server that is called over RDMA.
//
// It places the data of READ, and takes it, too, when they come another way. Its
// calls wait for a server that is away, and for one that does not accept
// connections yet.
func RDMA(cfg RDMAConfig) Backend {
	bindings := nfs.Bindings()
	return Backend{
		Bindings: bindings,
		Open: func(f Front) (oncrpc.Caller, error) {
			return rpcrdma.NewClient(rpcrdma.ClientConfig{
				Addr: cfg.Address, RNIC: cfg.RNIC, Bindings: bindings,
				InlineResults: true,
				Timeout:       -1, // Config.Wait says how long
				Patient:       true, RetryRejected: true,
				Reverse: f.Reverse, ReverseCredits: callbacks,
				Connection: cfg.Connection, Retrying: cfg.Retrying, Logger: cfg.Logger,
			})
		},
	}
}
