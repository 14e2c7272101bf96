package payload_test

import (
	"fmt"

	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// A responder reads a call, an NFSv3 WRITE whose data is in a Read chunk, and
// finds what to fetch.
func ExampleAssembly() {
	call := wire.Header{XID: 7, Credits: 32, Reads: []wire.ReadSegment{
		{Position: 96, Segment: wire.Segment{Handle: 0x1100, Length: 4099, Offset: 0x10000}},
	}}
	rpc := append([]byte{0, 0, 0, 7}, make([]byte, 92)...)
	message := append(call.Append(nil), rpc...)

	var header wire.Header
	var plan payload.Assembly
	rules := &wire.Rules{} // RFC 8166 with the default limits
	inline, err := header.Parse(message, rules)
	if err == nil {
		err = header.CheckCall(rules)
	}
	if err == nil {
		err = plan.Plan(&header, len(inline), nil, rules)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range plan.Pieces {
		switch p.Kind {
		case payload.PieceInline:
			fmt.Println("inline", p.Length, "octets from", p.Offset)
		case payload.PieceRead:
			fmt.Printf("read %d octets of %#x at %#x\n", p.Length, p.Segment.Handle, p.Segment.Offset)
		case payload.PieceZeros:
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
	call := wire.Header{XID: 7, Writes: []wire.WriteChunk{{
		{Handle: 0x2200, Length: 4096, Offset: 0x30000},
		{Handle: 0x2201, Length: 1904, Offset: 0x40000},
	}}}
	var plan payload.ReplyPlan
	results := []payload.Run{{Offset: 44, Length: 5000}}
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
