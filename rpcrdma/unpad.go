// This file takes the pads out of a reply by RDMA_MSGP (RFC 5666 §3.9).

package rpcrdma

import "github.com/weft-rdma/weft/oncrpc"

// unpad returns the RPC message of a reply by RDMA_MSGP, whose payload may have
// pads before long items of the results. Only the binding knows where those are;
// "at or above" the threshold is tried first.
func (x *rpc) unpad(payload []byte) ([]byte, error) {
	padding := x.header.Padding()
	if padding.Align <= 1 {
		return payload, nil
	}
	var reply oncrpc.Reply
	at, err := reply.Parse(payload)
	if err != nil || reply.Err() != nil {
		return payload, nil // is found out again
	}
	t := &x.taker
	if t.binding == nil {
		return nil, faultf(FaultStream, "reply to XID %#x by RDMA_MSGP, of whose results nobody knows where pads are", x.call.XID)
	}
	pads, err := FindPads(&t.cursor, padding, payload, at, func(cursor *Cursor) error {
		return WalkReply(t.binding, t.proc, cursor)
	})
	if err != nil {
		return nil, faultf(FaultStream, "pads in the reply to XID %#x: %v", x.call.XID, err)
	}
	return x.strip(payload, pads), nil
}

// strip copies payload without its pads.
func (x *rpc) strip(payload []byte, pads []Run) []byte {
	x.plain = x.plain[:0]
	at := 0
	for _, pad := range pads {
		x.plain = append(x.plain, payload[at:pad.Offset]...)
		at = pad.Offset + pad.Length
	}
	x.plain = append(x.plain, payload[at:]...)
	return x.plain
}
