package oncrpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"

	"github.com/weft-rdma/weft/oncrpc"
)

// A call's header and arguments are encoded into one slice. A large payload would be a piece
// of its own.
func ExampleCall() {
	self := oncrpc.AuthSys{MachineName: "krypton", UID: 1000, GID: 100}
	cred, err := self.Append(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	call := oncrpc.Call{XID: 7, Prog: 100003, Vers: 3, Proc: 1, Cred: oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorSys, Body: cred}}

	e := oncrpc.NewEncoder(make([]byte, 0, 256))
	call.Encode(&e)
	e.Opaque([]byte("file handle"), 64) // the arguments of GETATTR
	message, err := e.Finish()
	if err != nil {
		fmt.Println(err)
		return
	}

	var got oncrpc.Call
	args, err := got.Parse(message)
	if err != nil {
		fmt.Println(err)
		return
	}
	d := oncrpc.NewDecoder(message[args:], "GETATTR arguments")
	handle := d.Opaque(64)
	fmt.Printf("procedure %d by %v, arguments at octet %d: %q, %v\n", got.Proc, got.Cred.Flavor, args, handle, d.End())
	// Output:
	// procedure 1 by AUTH_SYS, arguments at octet 68: "file handle", <nil>
}

// A server replies with the status of a call, which the client gets as an error.
func ExampleReplyTo() {
	arguments := oncrpc.NewDecoder([]byte{0, 0, 0, 99}, "GETATTR arguments")
	arguments.Opaque(64)
	fmt.Println(arguments.Err())

	sent := oncrpc.ReplyTo(7, arguments.Err())
	message, err := sent.Append(nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	var reply oncrpc.Reply
	if _, err := reply.Parse(message); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.Err())
	fmt.Println(errors.Is(reply.Err(), &oncrpc.AcceptError{Stat: oncrpc.GarbageArgs}))
	// Output:
	// oncrpc: GETATTR arguments, at octet 0: opaque of 99 octets, at most 64 are allowed
	// oncrpc: the server could not decode the arguments (GARBAGE_ARGS)
	// true
}

// A client asks the port mapper where a program is served.
func ExampleParsePort() {
	e := oncrpc.NewEncoder(nil)
	call := oncrpc.Call{XID: 7, Prog: oncrpc.PmapProg, Vers: oncrpc.PmapVers, Proc: oncrpc.PmapGetPort}
	call.Encode(&e)
	nfs := oncrpc.Mapping{Prog: 100003, Vers: 3, Prot: oncrpc.ProtTCP}
	nfs.Encode(&e)
	fmt.Println(e.Pos(), "octets,", e.Err())

	port, err := oncrpc.ParsePort([]byte{0, 0, 0x08, 0x01}) // the results of the reply
	fmt.Println(port, err)
	// Output:
	// 56 octets, <nil>
	// 2049 <nil>
}

// Records carry messages over a byte stream, each in one write if the stream is a TCP
// connection.
func ExampleRecordWriter() {
	var stream bytes.Buffer
	w := oncrpc.NewRecordWriter(&stream, 0)
	if err := w.WriteRecord([]byte("header, "), []byte("payload")); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%q\n", stream.Bytes())

	record, err := oncrpc.NewRecordReader(&stream, oncrpc.RecordLimits{Record: 1024}).AppendRecord(nil)
	fmt.Printf("%q %v\n", record, err)
	// Output:
	// "\x80\x00\x00\x0fheader, payload"
	// "header, payload" <nil>
}

// A port mapper says where a server's programs are, also over RDMA.
func ExamplePortMapper() {
	pmap := oncrpc.NewPortMapper([]oncrpc.Service{
		{Prog: 100003, Vers: 3, Netid: oncrpc.NetidRDMA, Addr: netip.MustParseAddrPort("192.0.2.7:20049")},
	})
	ask := oncrpc.Rpcb{Prog: 100003, Vers: 3, Netid: oncrpc.NetidRDMA}
	e := oncrpc.NewEncoder(nil)
	ask.Encode(&e)
	args, err := e.Finish()
	if err != nil {
		log.Fatal(err)
	}
	mux := oncrpc.Mux{pmap.Program()}
	reply, err := mux.ServeRPC(context.Background(), &oncrpc.Request{
		Call: oncrpc.Call{XID: 1, Prog: oncrpc.PmapProg, Vers: oncrpc.RpcbVers4, Proc: oncrpc.RpcbGetAddr}, Args: args,
	})
	if err != nil {
		log.Fatal(err)
	}
	var header oncrpc.Reply
	results, err := header.Parse(reply)
	if err != nil {
		log.Fatal(err)
	}
	d := oncrpc.NewDecoder(reply[results:], "GETADDR result")
	fmt.Println(oncrpc.ParseUaddr(d.String(255)))
	// Output: 192.0.2.7:20049 <nil>
}
