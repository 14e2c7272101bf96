package rpcrdma_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/verbs"
)

// The program echo: procedure 1 returns the opaque item that it is given.
const (
	echoProgram = 0x20000ec0
	echoVersion = 1
	echo        = 1
	echoMost    = 1 << 20 // octets of an item
)

// echoServer executes it. It knows nothing of RDMA: the whole call is in the
// request, and the reply is put together in memory of the transport's.
func echoServer(_ context.Context, r *oncrpc.Request) ([]byte, error) {
	d := oncrpc.NewDecoder(r.Args, "ECHO arguments")
	item := d.Opaque(echoMost)
	if err := d.End(); err != nil {
		return nil, err // GARBAGE_ARGS
	}
	e := r.Accept(4 + oncrpc.RoundUp(len(item)))
	e.Opaque(item, echoMost)
	return e.Finish()
}

// echoBinding is the upper-layer binding: the item may travel in a chunk of its
// own, both ways. Without a binding the program works, too, with long messages.
type echoBinding struct{}

func (echoBinding) WalkCall(_ uint32, c *payload.Cursor) error {
	c.Eligible(echoMost)
	return nil
}

func (b echoBinding) WalkReply(proc uint32, c *payload.Cursor) error { return b.WalkCall(proc, c) }

func (echoBinding) MaxReply(_ uint32, c *payload.Cursor) payload.ReplyBound {
	return payload.ReplyBound{Fixed: 24 + 4, Items: []int{int(c.Eligible(echoMost))}}
}

func (echoBinding) ReadRead(uint32) bool { return true }

var echoBindings = payload.Bindings{{Prog: echoProgram, Vers: echoVersion}: echoBinding{}}

// serveEcho serves the program on a port of its own choice, until stop is called.
func serveEcho() (addr string, stop func(), err error) {
	rnic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return "", nil, err
	}
	server, err := rpcrdma.NewServer(rnic, rpcrdma.ServerConfig{
		Handler:  oncrpc.Mux{{Prog: echoProgram, Low: echoVersion, High: echoVersion, Handler: oncrpc.HandlerFunc(echoServer)}},
		Bindings: echoBindings,
	})
	if err != nil {
		return "", nil, err
	}
	ln, err := cm.Listen(context.Background(), rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{})
	if err != nil {
		return "", nil, err
	}
	go server.Serve(context.Background(), ln)
	return ln.Addr().String(), func() {
		server.Close()
		rnic.Close()
	}, nil
}

// A program is served, and called, over RDMA. A mebibyte is read from where it
// lies in the client's memory, and written to where it is wanted.
func Example() {
	addr, stop, err := serveEcho()
	if err != nil {
		log.Fatal(err)
	}
	defer stop()

	client, err := rpcrdma.NewClient(rpcrdma.ClientConfig{Address: addr, Bindings: echoBindings})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	item := bytes.Repeat([]byte("weft"), 1<<18)
	back := make([]byte, len(item))
	reply, err := client.Call(context.Background(), &oncrpc.ClientCall{
		Call:  oncrpc.Call{Prog: echoProgram, Vers: echoVersion, Proc: echo},
		Args:  [][]byte{{0, 0x10, 0, 0}, item}, // its count word, and the item
		Sinks: [][]byte{back},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer reply.Release()
	fmt.Println(len(reply.Message), "octets inline,", reply.Placed[0].Length, "placed:", bytes.Equal(item, back))
	// Output: 28 octets inline, 1048576 placed: true
}

// What the server says in place of results is an error of the call.
func ExampleClient_Call() {
	addr, stop, err := serveEcho()
	if err != nil {
		log.Fatal(err)
	}
	defer stop()
	client, err := rpcrdma.NewClient(rpcrdma.ClientConfig{Address: addr})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	_, err = client.Call(context.Background(), &oncrpc.ClientCall{
		Call:     oncrpc.Call{Prog: echoProgram, Vers: 2, Proc: echo},
		MaxReply: 32,
	})
	fmt.Println(err)
	// Output: oncrpc: the server has version 1 of this program (PROG_MISMATCH)
}
