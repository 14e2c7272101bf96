package mpa_test

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/weft-rdma/weft/mpa"
)

// A stream is set up over any connection, here one in memory.
func Example() {
	ctx := context.Background()
	a, b := net.Pipe()

	go func() {
		req, err := mpa.Await(ctx, b, mpa.Config{})
		if err != nil {
			fmt.Println(err)
			return
		}
		answer := append([]byte("hello, "), req.PrivateData...)
		if _, err := req.Accept(ctx, mpa.Config{IRD: 4, ORD: 4}, answer); err != nil {
			fmt.Println(err)
		}
	}()

	conn, peer, err := mpa.Initiate(ctx, a, mpa.Config{IRD: 1, ORD: 16}, []byte("weft"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	terms := conn.Params()
	fmt.Printf("%s: %v, CRC %t, IRD %d, ORD %d\n", peer.PrivateData, terms.Revision, terms.CRC, terms.IRD, terms.ORD)
	// Output: hello, weft: revision 2 (RFC 6581), CRC true, IRD 1, ORD 4
}

// A rejected connection is open, and its owner's again.
func ExampleRequest_Reject() {
	ctx := context.Background()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()

	go func() {
		req, err := mpa.Await(ctx, b, mpa.Config{ORD: 8})
		if err == nil {
			err = req.Reject([]byte("full"))
		}
		if err != nil {
			fmt.Println(err)
		}
	}()

	_, _, err := mpa.Initiate(ctx, a, mpa.Config{}, nil)
	if reject, ok := errors.AsType[*mpa.RejectError](err); ok {
		fmt.Printf("rejected: %s, ORD %d needed\n", reject.PrivateData, reject.PeerORD)
	}
	// Output: rejected: full, ORD 8 needed
}

func ExampleParseFrame() {
	b, err := mpa.AppendFrame(nil, mpa.Frame{Revision: mpa.Revision1, CRC: true, PrivateData: []byte("hi")})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s % x\n", b[:16], b[16:])
	f, n, err := mpa.ParseFrame(b, mpa.RequestFrame)
	fmt.Println(f.Revision, n, err)
	// Output:
	// MPA ID Req Frame 40 01 00 02 68 69
	// revision 1 (RFC 5044) 22 <nil>
}
