// This file calls a server over RDMA.

package gateway

import (
	"log/slog"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/nfs/binding"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/verbs"
)

// callbacks is the number of callbacks at a time that the server may make over one
// connection.
const callbacks = 16

// An RDMAConfig says how to call a server over RDMA.
type RDMAConfig struct {
	Address string      // host and port of the server
	RNIC    *verbs.RNIC // the RNIC of the connections

	// Connection holds parameters of the connections that are not the default.
	Connection cm.Params

	// Retrying, if not nil, is called with the reason while calls wait for a
	// connection; see the ClientConfig of rpctcp and rpcrdma.
	Retrying func(error)

	// Logger logs when connections are lost and restored; nil discards.
	Logger *slog.Logger
}

// RDMA returns the Backend for a server over RDMA.
//
// It places the data of READ, and also accepts them within replies. Calls wait for a
// server that is unreachable, or that does not accept connections yet.
func RDMA(cfg RDMAConfig) Backend {
	bindings := binding.NFS()
	return Backend{
		Bindings: bindings,
		Open: func(f Front) (oncrpc.Caller, error) {
			return rpcrdma.NewClient(rpcrdma.ClientConfig{
				Address: cfg.Address, RNIC: cfg.RNIC, Bindings: bindings,
				InlineResults: true,
				Timeout:       -1, // Config.Wait says how long
				RetryRejected: true,
				Idle:          -1, // a client that waits for callbacks makes no calls
				Reverse:       f.Reverse, ReverseCredits: callbacks,
				Connection: cfg.Connection, Retrying: cfg.Retrying, Logger: cfg.Logger,
			})
		},
	}
}
