// This file calls a server over TCP.

package gateway

import (
	"crypto/tls"
	"log/slog"
	"net"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpctcp"
)

// A TCPConfig says how to call a server over TCP.
type TCPConfig struct {
	Address string // host and port of the server

	// Reserved connects from ports below 1024 if this process may use them. Linux's
	// server requires that unless the export has the option "insecure".
	Reserved bool

	// TLS, if not nil, has every connection use RPC with TLS (RFC 9289), and AnyALPN
	// accepts servers that do not choose the protocol sunrpc; see the ClientConfig of
	// rpctcp.
	TLS     *tls.Config
	AnyALPN bool

	// Wrap, if not nil, is put around each connection, below TLS.
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
			TLS: cfg.TLS, AnyALPN: cfg.AnyALPN, Prog: nfs.Program, Vers: nfs.V3,
			KeepPort: true, LocalPort: f.Port,
			Idle:    -1, // a client that waits for callbacks makes no calls
			Reverse: f.Reverse, Wrap: cfg.Wrap, Retrying: cfg.Retrying, Logger: cfg.Logger,
		})
	}}
}
