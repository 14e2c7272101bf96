package rdmap_test

import (
	"errors"
	"fmt"

	"github.com/weft-rdma/weft/rdmap"
)

// The payload of a Terminate message becomes an error that prints in words and
// can be told apart by its code.
func ExampleNewTerminateError() {
	var err error = rdmap.NewTerminateError([]byte{0x02, 0x06, 0x00, 0x00})
	fmt.Println(err)
	fmt.Println(errors.Is(err, &rdmap.TerminateError{
		Layer: rdmap.LayerRDMA, EType: rdmap.RemoteOperation, Code: rdmap.CodeOpcode,
	}))
	// Output:
	// the peer terminated the stream: RDMA remote operation error: unexpected opcode: the receiver does not know the message, or not there (0/2/06)
	// true
}

func ExampleDescribe() {
	fmt.Println(rdmap.Describe(1, 2, 0x05))
	// Output:
	// DDP untagged buffer error: message too long for available buffer: the receive that was posted is shorter (1/2/05)
}

// Two counters of 32 bits in one word of 64 are added to without a carry from
// the lower into the upper one.
func ExampleFetchAdd() {
	fmt.Printf("0x%016x\n", rdmap.FetchAdd(0x00000005_ffffffff, 0x00000001_00000001, 0x80000000_80000000))
	// Output:
	// 0x0000000600000000
}
