// Package wire has the messages of RPC-over-RDMA version 1 (RFC 8166, RFC 5666)
// as they are on the wire: transport headers, chunk lists, private data, and what
// each side does about a message that is not valid. All of it is pure: no I/O, no
// goroutines, and no allocation once buffers have grown.
//
// Every message is one RDMA Send. It begins with a [Header] of four fixed words
// (XID, version, credits, message type); most types go on with three chunk
// lists and the RPC message. What is too long for a Send, and what is better
// placed without a copy, is in a chunk: memory of the requester in one or more
// [Segment] entries, which the responder reads or writes.
//
//	 0 xid   4 vers=1   8 credit   12 proc: 0 MSG, 1 NOMSG, 2 MSGP, 3 DONE, 4 ERROR
//	MSG, NOMSG  16 reads, writes, reply
//	MSGP        16 align, 20 thresh, 24 reads, writes, reply
//	DONE        nothing more
//	ERROR       16 err: 1 ERR_VERS, 20 low, 24 high; 2 ERR_CHUNK, nothing more
//
//	segment H L OO  handle, length, offset: 4, 4 and 8 octets
//	reads   { 1 P H L OO }* 0     P is the position; equal positions make one chunk
//	writes  { 1 n (H L OO)*n }* 0
//	reply   0 | 1 n (H L OO)*n
//
// All of it is big-endian. Positions count in the unreduced Payload stream, which
// is the RPC message with everything in place that was moved to chunks; it begins
// at its XID, which is position zero.
//
// A receiver parses a message ([Header.Parse]), finds out whether it is a call or
// a reply ([Header.Direction]), and checks it for its direction:
// [Header.CheckCall], or [Header.CheckReply] and [Header.CheckReturned]. [Rules]
// are the limits, and say how much of RFC 5666 is accepted that RFC 8166 removed.
// Every error is an [*Error], whose [Fault] determines the [Answer].
//
// [ConfCall] and [ConfReply] are the Connection Configuration Protocol (RFC 5666
// §6), and [PrivateData] is what peers state about themselves as they connect
// (RFC 8797).
package wire
