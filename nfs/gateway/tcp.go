// This file calls a server over TCP.

package gateway

import (
	"log/slog"
	"net"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpctcp"
)

// A TCPConfig says how to call a server over TCP.
type TCPConfig struct {
	Address string // host and port of the server

	// Reserved connects from ports below 1024 if this process may use them. Linux's
	// server requires that unless the export has the option "insecure".
	Reserved bool

	// Wrap, if not nil, is put around each connection.
	Wrap func(net.Conn) net.Conn

	// Retrying, if not nil, is called with the reason while calls wait for a
	// connection; see the ClientConfig of rpctcp and rpcrdma.
	Retrying func(error)

	// Logger logs when connections are lost and restored; nil discards.
	Logger *slog.Logger
}

// TCP returns the Backend for a server over TCP.
func TCP(cfg TCPConfig) Backend {
	return Backend{Open: func(f Front) (oncrpc.Caller, error) {
		return rpctcp.NewClient(rpctcp.ClientConfig{
			Address: cfg.Address, Reserved: cfg.Reserved,
			KeepPort: true, LocalPort: f.Port,
			Idle:    -1, // a client that waits for callbacks makes no calls
			Reverse: f.Reverse, Wrap: cfg.Wrap, Retrying: cfg.Retrying, Logger: cfg.Logger,
		})
	}}
}
