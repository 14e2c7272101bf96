package rpcrdma_test

import (
	"errors"
	"fmt"

	"github.com/weft-rdma/weft/rpcrdma"
)

// A responder reads a call, an NFSv3 WRITE whose data is in a Read chunk, and
// finds what to fetch.
func ExampleAssembly() {
	call := rpcrdma.Header{XID: 7, Credits: 32, Reads: []rpcrdma.ReadSegment{
		{Position: 96, Segment: rpcrdma.Segment{Handle: 0x1100, Length: 4099, Offset: 0x10000}},
	}}
	rpc := append([]byte{0, 0, 0, 7}, make([]byte, 92)...)
	message := append(call.Append(nil), rpc...)

	var header rpcrdma.Header
	var plan rpcrdma.Assembly
	rules := &rpcrdma.Rules{} // RFC 8166 with the default limits
	payload, err := header.Parse(message, rules)
	if err == nil {
		err = header.CheckCall(rules)
	}
	if err == nil {
		err = plan.Plan(&header, len(payload), nil, rules)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range plan.Pieces {
		switch p.Kind {
		case rpcrdma.PieceInline:
			fmt.Println("inline", p.Length, "octets from", p.Offset)
		case rpcrdma.PieceRead:
			fmt.Printf("read %d octets of %#x at %#x\n", p.Length, p.Segment.Handle, p.Segment.Offset)
		case rpcrdma.PieceZeros:
			fmt.Println("zeros", p.Length)
		}
	}
	// Output:
	// inline 96 octets from 0
	// read 4099 octets of 0x1100 at 0x10000
	// zeros 1
}

// A responder places the 5,000 octets of an NFSv3 READ in the Write chunk that
// the call offers.
func ExampleReplyPlan() {
	call := rpcrdma.Header{XID: 7, Writes: []rpcrdma.WriteChunk{{
		{Handle: 0x2200, Length: 4096, Offset: 0x30000},
		{Handle: 0x2201, Length: 1904, Offset: 0x40000},
	}}}
	var plan rpcrdma.ReplyPlan
	results := []rpcrdma.Run{{Offset: 44, Length: 5000}}
	if err := plan.Plan(&call, 5044, results, 1024); err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range plan.Writes {
		fmt.Printf("write %d octets from %d to %#x\n", w.Segment.Length, w.From, w.Segment.Handle)
	}
	fmt.Println(plan.Header.Proc, "with", plan.Inline[0].Length, "octets inline")
	// Output:
	// write 4096 octets from 44 to 0x2200
	// write 904 octets from 4140 to 0x2201
	// RDMA_MSG with 44 octets inline
}

// What is wrong with a call tells its answer.
func ExampleFault_Answer() {
	var header rpcrdma.Header
	message := []byte("\x00\x00\x00\x09\x00\x00\x00\x02\x00\x00\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	_, err := header.Parse(message, &rpcrdma.Rules{})
	fmt.Println(err)
	var e *rpcrdma.Error
	if errors.As(err, &e) && e.Fault.Answer(rpcrdma.Responder) == rpcrdma.AnswerErrVers {
		fmt.Printf("% x\n", rpcrdma.AppendErrVers(nil, header.XID, header.Version, 64))
	}
	// Output:
	// rpcrdma: unsupported version: version 2, want 1
	// 00 00 00 09 00 00 00 02 00 00 00 40 00 00 00 04 00 00 00 01 00 00 00 01 00 00 00 01
}

// Private data is found among what else came with the connection.
func ExampleParsePrivateData() {
	own := rpcrdma.PrivateData{RemoteInvalidation: true, SendSize: 4096, ReceiveSize: 4096}
	peer, found := rpcrdma.ParsePrivateData([]byte("\x00\x01\x00\x01\xf6\xab\x0e\x18\x01\x00\x03\x01"))
	fmt.Println(found, "send up to", own.Threshold(peer), "octets, invalidate:", own.Invalidates(peer))
	// Output: true send up to 2048 octets, invalidate: false
}
