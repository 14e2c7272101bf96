package rpcrdma_test

import (
	"context"
	"fmt"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/verbs"
)

// A program that returns its arguments, served and called.
func ExampleServer() {
	const echo = 0x20000001
	ctx := context.Background()
	rnic, err := verbs.Open(verbs.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rnic.Close()
	server, err := rpcrdma.NewServer(rnic, rpcrdma.ServerConfig{
		Handler: oncrpc.Mux{{Prog: echo, Low: 1, High: 1, Handler: oncrpc.HandlerFunc(
			func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
				e := r.Accept(len(r.Args))
				e.Fixed(r.Args)
				return e.Finish()
			})}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ln, err := cm.Listen(ctx, rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error)
	go func() { served <- server.Serve(ctx, ln) }()

	client, err := rpcrdma.NewClient(rpcrdma.ClientConfig{Address: ln.Addr().String()})
	if err != nil {
		fmt.Println(err)
		return
	}
	reply, err := client.Call(ctx, &oncrpc.ClientCall{
		Call: oncrpc.Call{Prog: echo, Vers: 1, Proc: 1},
		Args: [][]byte{[]byte("twelve bytes")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", reply.Results)
	reply.Release()

	_ = client.Close()
	fmt.Println(server.Shutdown(ctx), <-served)
	// Output:
	// twelve bytes
	// <nil> rpcrdma: the server is closed
}
