// The Connection Configuration Protocol: the RPC program by which a client and a server
// exchange their limits at the beginning of a connection (RFC 5666 §6). RFC 8166 removed
// it.

package wire

import "encoding/binary"

// The program "rdmaconfig" (RFC 5666 §6.2).
const (
	ConfProgram = 100417
	ConfVersion = 1
	ConfNull    = 0 // procedure NULL
	ConfRDMA    = 1 // procedure CONF_RDMA

	// ConfLen is the length of the arguments of CONF_RDMA, and of its results.
	ConfLen = 12
)

// MinThreshold is the message size in octets that every peer takes, and what
// holds while nothing else was agreed (RFC 8166 §3.3.3).
const MinThreshold = 1024

// ConfCall is the arguments of CONF_RDMA. In octets: 0-3 maxcall_sendsize, 4-7
// maxreply_sendsize, 8-11 maxrdmaread.
type ConfCall struct {
	MaxCallSendSize  uint32 // octets of the longest inline call that the client would send
	MaxReplySendSize uint32 // octets of the longest inline message that it takes
	MaxRDMARead      uint32 // RDMA Reads that it serves at a time; 0: none
}

// Append appends the 12 octets of the arguments to dst.
func (c ConfCall) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, c.MaxCallSendSize)
	dst = binary.BigEndian.AppendUint32(dst, c.MaxReplySendSize)
	return binary.BigEndian.AppendUint32(dst, c.MaxRDMARead)
}

// Parse reads the arguments, which b is all of. Any length but 12 octets is a
// [FaultStream], with c unchanged.
func (c *ConfCall) Parse(b []byte) error {
	if len(b) != ConfLen {
		return Errorf(FaultStream, "arguments of CONF_RDMA have %d octets, expected %d", len(b), ConfLen)
	}
	c.MaxCallSendSize = binary.BigEndian.Uint32(b)
	c.MaxReplySendSize = binary.BigEndian.Uint32(b[4:])
	c.MaxRDMARead = binary.BigEndian.Uint32(b[8:])
	return nil
}

// ConfReply is the results of CONF_RDMA. In octets: 0-3 maxcall_sendsize, 4-7
// align, 8-11 maxrdmaread.
type ConfReply struct {
	MaxCallSendSize uint32 // octets of the longest inline call that the server takes; may be more than asked for
	Align           uint32 // recommended for RDMA_MSGP; 0 and 1: no padding
	MaxRDMARead     uint32 // RDMA Reads that it serves at a time; 0: none
}

// Append appends the 12 octets of the results to dst.
func (c ConfReply) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, c.MaxCallSendSize)
	dst = binary.BigEndian.AppendUint32(dst, c.Align)
	return binary.BigEndian.AppendUint32(dst, c.MaxRDMARead)
}

// Parse reads the results, which b is all of. Any length but 12 octets is a
// [FaultStream], with c unchanged.
func (c *ConfReply) Parse(b []byte) error {
	if len(b) != ConfLen {
		return Errorf(FaultStream, "results of CONF_RDMA have %d octets, expected %d", len(b), ConfLen)
	}
	c.MaxCallSendSize = binary.BigEndian.Uint32(b)
	c.Align = binary.BigEndian.Uint32(b[4:])
	c.MaxRDMARead = binary.BigEndian.Uint32(b[8:])
	return nil
}

// CallThreshold returns the octets of the longest inline call after the
// exchange: what the client sends and the server takes, each at least
// [MinThreshold].
func (c ConfReply) CallThreshold(call ConfCall) uint32 {
	return threshold(call.MaxCallSendSize, c.MaxCallSendSize)
}

// ReplyThreshold returns the octets of the longest inline reply after the
// exchange, from a server that sends up to sendSize.
func (c ConfCall) ReplyThreshold(sendSize uint32) uint32 {
	return threshold(sendSize, c.MaxReplySendSize)
}

// threshold is the longest message from a peer that sends up to send octets to
// one that takes up to receive (RFC 8166 §3.3.2).
func threshold(send, receive uint32) uint32 {
	return max(MinThreshold, min(send, receive))
}
