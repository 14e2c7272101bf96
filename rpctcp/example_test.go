package rpctcp_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"strings"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpctcp"
)

// shout is program 0x20000001 of the range that is for everybody's own use (RFC
// 5531 §8.3): procedure 1 returns a string in capital letters.
var shout = oncrpc.Program{Prog: 0x20000001, Low: 1, High: 1, Handler: oncrpc.HandlerFunc(
	func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
		if r.Proc != 1 {
			return nil, &oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}
		}
		d := oncrpc.NewDecoder(r.Args, "shout arguments")
		text := d.String(1024)
		if err := d.End(); err != nil {
			return nil, err // GARBAGE_ARGS
		}
		e := r.Accept(4 + 1024)
		e.String(strings.ToUpper(text), 1024)
		return e.Finish()
	})}

func Example() {
	server, err := rpctcp.NewServer(rpctcp.ServerConfig{Handler: oncrpc.Mux{shout}})
	if err != nil {
		log.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(context.Background(), ln)
	defer server.Shutdown(context.Background())

	client, err := rpctcp.NewClient(rpctcp.ClientConfig{Address: ln.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	e := oncrpc.NewEncoder(nil)
	e.String("over here", 1024)
	args, err := e.Finish()
	if err != nil {
		log.Fatal(err)
	}
	reply, err := client.Call(context.Background(), &oncrpc.ClientCall{
		Call: oncrpc.Call{Prog: 0x20000001, Vers: 1, Proc: 1}, Args: [][]byte{args},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer reply.Release()
	d := oncrpc.NewDecoder(reply.Results, "shout results")
	fmt.Println(d.String(1024))
	// Output: OVER HERE
}

// A handler calls programs of its client over the connection of the call.
func ExampleClientConfig_reverse() {
	server, err := rpctcp.NewServer(rpctcp.ServerConfig{Handler: oncrpc.HandlerFunc(
		func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
			back, err := r.Back.Call(ctx, &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 0x20000001, Vers: 1, Proc: 1}, Args: [][]byte{r.Args}})
			if err != nil {
				return nil, err
			}
			defer back.Release()
			e := r.Accept(len(back.Results))
			e.Fixed(back.Results)
			return e.Finish()
		})})
	if err != nil {
		log.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(context.Background(), ln)
	defer server.Shutdown(context.Background())

	client, err := rpctcp.NewClient(rpctcp.ClientConfig{Address: ln.Addr().String(), Reverse: oncrpc.Mux{shout}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	reply, err := client.Call(context.Background(), &oncrpc.ClientCall{Args: [][]byte{[]byte("\x00\x00\x00\x04back")}})
	if err != nil {
		log.Fatal(err)
	}
	defer reply.Release()
	d := oncrpc.NewDecoder(reply.Results, "results")
	fmt.Println(d.String(1024))
	// Output: BACK
}
