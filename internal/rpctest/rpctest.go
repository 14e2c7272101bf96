// Package rpctest serves ONC RPC programs for tests, on loopback and over each transport.
package rpctest

import (
	"context"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs/binding"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/rpctcp"
	"github.com/weft-rdma/weft/verbs"
)

// An Over serves a handler over a transport until the test ends, and returns a Caller of it.
type Over func(t testing.TB, h oncrpc.Handler) oncrpc.Caller

// Transports are all transports, by their names.
var Transports = map[string]Over{"RDMA": OverRDMA, "TCP": OverTCP}

// OverRDMA serves a handler over RPC-over-RDMA, with the bindings of NFS.
func OverRDMA(t testing.TB, h oncrpc.Handler) oncrpc.Caller {
	t.Helper()
	rnic, err := verbs.Open(verbs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rnic.Close() })
	server, err := rpcrdma.NewServer(rnic, rpcrdma.ServerConfig{Handler: h, Bindings: binding.NFS()})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := cm.Listen(t.Context(), rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	run(t, func() { server.Serve(context.Background(), ln) }, server.Close)
	caller, err := rpcrdma.NewClient(rpcrdma.ClientConfig{Address: ln.Addr().String(), Bindings: binding.NFS()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { caller.Close() })
	return caller
}

// OverTCP serves a handler over TCP.
func OverTCP(t testing.TB, h oncrpc.Handler) oncrpc.Caller {
	t.Helper()
	address := ServeTCP(t, rpctcp.ServerConfig{Handler: h})
	caller, err := rpctcp.NewClient(rpctcp.ClientConfig{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { caller.Close() })
	return caller
}

// ServeTCP serves over TCP until the test ends, and returns the server's address.
func ServeTCP(t testing.TB, cfg rpctcp.ServerConfig) (address string) {
	t.Helper()
	server, err := rpctcp.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ln := nettest.Listen(t, "tcp4")
	run(t, func() { server.Serve(context.Background(), ln) }, server.Close)
	return ln.Addr().String()
}

// run runs serve until the test ends. Then it calls stop, and waits for the end of serve.
func run(t testing.TB, serve func(), stop func() error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve()
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
}
