package cm_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"net"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// exampleQP makes a queue pair, and an RNIC to go with it.
func exampleQP() (*verbs.RNIC, *verbs.QP) {
	rnic, err := verbs.Open(verbs.Config{})
	ok(err)
	pd, err := rnic.AllocPD()
	ok(err)
	cq, err := rnic.CreateCQ(verbs.CQConfig{Entries: 32})
	ok(err)
	qp, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, IRD: 8, ORD: 8})
	ok(err)
	return rnic, qp
}

func ok(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// One side listens, the other dials; each may say something with its half of
// the start-up, and they agree on how many Reads may be outstanding.
func ExampleDial() {
	ctx := context.Background()
	server, serverQP := exampleQP()
	client, clientQP := exampleQP()
	defer server.Close()
	defer client.Close()

	ln, err := cm.Listen(ctx, server, "tcp", "127.0.0.1:0", cm.ListenConfig{})
	ok(err)
	defer ln.Close()
	go func() {
		req, err := ln.Accept(ctx)
		ok(err)
		fmt.Printf("asked: %s, IRD %d, ORD %d\n", req.PrivateData(), req.IRD(), req.ORD())
		_, err = req.Accept(ctx, serverQP, cm.Params{
			PrivateData: []byte("welcome"),
			MPA:         mpa.Config{IRD: 2, ORD: 2},
		})
		ok(err)
	}()

	conn, err := cm.Dial(ctx, clientQP, "tcp", ln.Addr().String(), cm.Params{PrivateData: []byte("hello")})
	ok(err)
	fmt.Printf("answered: %s, IRD %d, ORD %d\n", conn.PrivateData(), conn.IRD(), conn.ORD())
	fmt.Println(conn.QP().State(), conn.MPA().Revision, "CRC", conn.MPA().CRC)
	ok(conn.Close())
	fmt.Println(clientQP.State())
	// Output:
	// asked: hello, IRD 8, ORD 8
	// answered: welcome, IRD 8, ORD 2
	// RTS revision 2 (RFC 6581) CRC true
	// Idle
}

// A consumer that refuses says why, in octets of its own.
func ExampleRequest_Reject() {
	ctx := context.Background()
	server, _ := exampleQP()
	client, qp := exampleQP()
	defer server.Close()
	defer client.Close()
	ln, err := cm.Listen(ctx, server, "tcp", "127.0.0.1:0", cm.ListenConfig{})
	ok(err)
	defer ln.Close()
	go func() {
		req, err := ln.Accept(ctx)
		ok(err)
		ok(req.Reject([]byte("not today")))
	}()
	_, err = cm.Dial(ctx, qp, "tcp", ln.Addr().String(), cm.Params{})
	var rejected *cm.RejectedError
	if errors.As(err, &rejected) {
		fmt.Printf("rejected: %s\n", rejected.PrivateData)
	}
	fmt.Println(qp.State())
	// Output:
	// rejected: not today
	// Idle
}

// Any connection will do, also one that exists and has carried other things; and
// in the peer-to-peer model either side may send first.
func ExampleConnect() {
	ctx := context.Background()
	one, a := exampleQP()
	two, b := exampleQP()
	defer one.Close()
	defer two.Close()
	x, y := iwarptest.Pipe()
	accepted := make(chan error)
	go func() {
		req, err := cm.Receive(ctx, y, mpa.Config{})
		ok(err)
		_, err = req.Accept(ctx, b, cm.Params{})
		accepted <- err
	}()
	conn, err := cm.Connect(ctx, a, x, cm.Params{MPA: mpa.Config{PeerToPeer: true}})
	ok(errors.Join(err, <-accepted))
	fmt.Println(conn.RemoteAddr(), conn.MPA().PeerToPeer, conn.MPA().RTR)
	// Output: b true Write
}

// A listener takes connections from any net.Listener.
func ExampleNewListener() {
	rnic, _ := exampleQP()
	defer rnic.Close()
	nl, err := net.Listen("tcp", "127.0.0.1:0")
	ok(err)
	ln, err := cm.NewListener(rnic, nl, cm.ListenConfig{Backlog: 16})
	ok(err)
	fmt.Println(ln.Addr().Network())
	ok(ln.Close())
	_, err = ln.Accept(context.Background())
	fmt.Println(errors.Is(err, cm.ErrClosed))
	// Output:
	// tcp
	// true
}

// A program that opens sockets itself gives them their options from the beginning,
// and a connection of RDMA over them needs no others.
func ExampleSocket_Control() {
	ctx := context.Background()
	options := cm.Socket{SendBuffer: 128 << 10, ReceiveBuffer: 128 << 10}
	listening := net.ListenConfig{Control: options.Control}
	ln, err := listening.Listen(ctx, "tcp", "127.0.0.1:0")
	ok(err)
	defer ln.Close()
	dialing := net.Dialer{Control: options.Control}
	nc, err := dialing.DialContext(ctx, "tcp", ln.Addr().String())
	ok(err)
	defer nc.Close()

	has, err := cm.SocketOf(nc.(*net.TCPConn))
	ok(err)
	fmt.Println(has.SendBuffer, has.ReceiveBuffer)
	// Output: 131072 131072
}

// Two programs that talk over a connection already, in words of their own, agree to
// go on as RDMA: one says so with its last message, the other begins.
func ExampleAdopt() {
	server, serverQP := exampleQP()
	client, clientQP := exampleQP()
	defer server.Close()
	defer client.Close()
	x, y := iwarptest.Pipe()

	done := make(chan struct{})
	go func() {
		defer close(done)
		line, err := bufio.NewReaderSize(y, 16).ReadString('\n') // no octet of x's follows it yet
		ok(err)
		fmt.Printf("server: %q, so iWARP it is\n", line)
		_, err = cm.Adopt(serverQP, y, cm.Adoption{Initiator: true})
		ok(err)
	}()
	conn, err := cm.Adopt(clientQP, x, cm.Adoption{StreamMessage: []byte("STARTRDMA\n")})
	ok(err)
	<-done
	fmt.Println("client:", conn.QP().State(), "with IRD", conn.IRD())
	ok(conn.Close())
	// Output:
	// server: "STARTRDMA\n", so iWARP it is
	// client: RTS with IRD 8
}
