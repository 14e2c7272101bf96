// This file takes the pads out of a reply by RDMA_MSGP (RFC 5666 §3.9).

package rpcrdma

import (
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// unpad returns the RPC message of a reply by RDMA_MSGP, whose padded may have
// pads before long items of the results. Only the binding knows where those are;
// "at or above" the threshold is tried first.
func (x *rpc) unpad(padded []byte) ([]byte, error) {
	padding := x.header.Padding()
	if padding.Align <= 1 {
		return padded, nil
	}
	var reply oncrpc.Reply
	at, err := reply.Parse(padded)
	if err != nil || reply.Err() != nil {
		return padded, nil // is found out again
	}
	t := &x.reader
	if t.Binding == nil {
		return nil, wire.Errorf(wire.FaultStream, "reply to XID %#x by RDMA_MSGP, of whose results nobody knows where pads are", x.call.XID)
	}
	pads, err := payload.FindPads(&t.Cursor, padding, padded, at, func(cursor *payload.Cursor) error {
		return payload.WalkReply(t.Binding, t.Proc, cursor)
	})
	if err != nil {
		return nil, wire.Errorf(wire.FaultStream, "pads in the reply to XID %#x: %v", x.call.XID, err)
	}
	return x.strip(padded, pads), nil
}

// strip copies padded without its pads.
func (x *rpc) strip(padded []byte, pads []payload.Run) []byte {
	x.plain = x.plain[:0]
	at := 0
	for _, pad := range pads {
		x.plain = append(x.plain, padded[at:pad.Offset]...)
		at = pad.Offset + pad.Length
	}
	x.plain = append(x.plain, padded[at:]...)
	return x.plain
}
