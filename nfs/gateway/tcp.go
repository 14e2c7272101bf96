// This file is the way to a server over TCP.

package gateway

import (
	"log/slog"
	"net"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpctcp"
)

// A TCPConfig says how a server is called over TCP.
type TCPConfig struct {
	Address string // host and port of the server

	// Reserved makes connections from ports below 1024 where this process may use
	// them, which Linux's server asks for unless its export says "insecure".
	Reserved bool

	// Wrap, if not nil, is put around each connection.
	Wrap func(net.Conn) net.Conn

	// Retrying, if not nil, is told why there is no connection for calls that wait,
	// as rpctcp's and rpcrdma's ClientConfig say.
	Retrying func(error)

	// Logger tells of connections lost and made again; nil is silent.
	Logger *slog.Logger
}

// TCP is a server that is called over TCP.
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
