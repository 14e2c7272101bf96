package wire_test

import (
	"errors"
	"fmt"

	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// The error of a call determines its answer.
func ExampleFault_Answer() {
	var header wire.Header
	message := []byte("\x00\x00\x00\x09\x00\x00\x00\x02\x00\x00\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	_, err := header.Parse(message, &wire.Rules{})
	fmt.Println(err)
	var e *wire.Error
	if errors.As(err, &e) && e.Fault.Answer(wire.Responder) == wire.AnswerErrVers {
		fmt.Printf("% x\n", wire.AppendErrVers(nil, header.XID, header.Version, 64))
	}
	// Output:
	// rpcrdma: unsupported version: version 2, expected 1
	// 00 00 00 09 00 00 00 02 00 00 00 40 00 00 00 04 00 00 00 01 00 00 00 01 00 00 00 01
}

// Private data is found among what else came with the connection.
func ExampleParsePrivateData() {
	own := wire.PrivateData{RemoteInvalidation: true, SendSize: 4096, ReceiveSize: 4096}
	peer, found := wire.ParsePrivateData([]byte("\x00\x01\x00\x01\xf6\xab\x0e\x18\x01\x00\x03\x01"))
	fmt.Println(found, "send up to", own.Threshold(peer), "octets, invalidate:", own.Invalidates(peer))
	// Output: true send up to 2048 octets, invalidate: false
}
