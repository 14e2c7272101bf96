package gateway_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/binding"
	"github.com/weft-rdma/weft/nfs/gateway"
	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/rpctcp"
	"github.com/weft-rdma/weft/verbs"
)

// nas starts an NFS server over TCP that answers every call with the same words.
func nas() (address string, stop func()) {
	server, err := rpctcp.NewServer(rpctcp.ServerConfig{Handler: oncrpc.HandlerFunc(
		func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
			e := r.Accept(64)
			e.String("served over TCP", 64)
			return e.Finish()
		},
	)})
	if err != nil {
		log.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(context.Background(), ln)
	return ln.Addr().String(), func() { server.Close() }
}

// A gateway makes a server that supports TCP only reachable over RDMA.
func Example() {
	behind, stop := nas()
	defer stop()

	// The gateway, behind a server of RPC-over-RDMA.
	g, err := gateway.New(gateway.Config{Backend: gateway.TCP(gateway.TCPConfig{Address: behind})})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	rnic, err := verbs.Open(verbs.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer rnic.Close()
	access := &mount.Access{Personal: mount.Personal(), AllowOthers: true} // all of this machine
	front, err := rpcrdma.NewServer(rnic, rpcrdma.ServerConfig{Handler: access.Guard(g), Bindings: binding.NFS(), ReverseCalls: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer front.Close()
	ln, err := cm.Listen(context.Background(), rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{Admit: access.Admit})
	if err != nil {
		log.Fatal(err)
	}
	go front.Serve(context.Background(), ln)

	// A client over RDMA.
	client, err := rpcrdma.NewClient(rpcrdma.ClientConfig{Address: ln.Addr().String(), Bindings: binding.NFS()})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	reply, err := client.Call(context.Background(), &oncrpc.ClientCall{
		Call:     oncrpc.Call{Prog: nfs.Program, Vers: nfs.V3},
		MaxReply: 128, // of NULL, nobody expects results
	})
	if err != nil {
		log.Fatal(err)
	}
	defer reply.Release()
	d := oncrpc.NewDecoder(reply.Results, "results")
	fmt.Println(d.String(64))
	// Output: served over TCP
}
