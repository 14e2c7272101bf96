// Package rpcrdma is RPC-over-RDMA version 1 (RFC 5666, RFC 8166): how Remote
// Procedure Calls travel by RDMA Send, Read and Write.
//
// Every message is one RDMA Send. It begins with a [Header] of four fixed words
// (XID, version, credits, message type); most types go on with three chunk
// lists and the RPC message. What is too long for a Send, and what is better
// placed without a copy, lies in a chunk: memory of the requester in one or
// more [Segment] entries, that the responder reads or writes.
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
// All of it is big-endian. The RPC message with everything in place that was
// moved to chunks is the unreduced Payload stream; it begins at its XID, which
// is position zero, and all positions count in it.
//
// # Programs
//
// A [Server] executes calls of an [oncrpc.Handler], and a [Client] is an
// [oncrpc.Caller]. Both see whole messages: what goes in chunks is decided from
// the sizes, and from an upper-layer [Binding] if there is one for the program.
//
//	server, err := rpcrdma.NewServer(rnic, rpcrdma.ServerConfig{Handler: handler})
//	ln, err := cm.Listen(ctx, rnic, "tcp", ":20049", cm.ListenConfig{})
//	err = server.Serve(ctx, ln)
//
// A server fetches a call into one piece of registered memory, many RDMA Reads
// at a time, and sends the reply from the memory that [oncrpc.Request.Alloc] has
// given, by RDMA Writes and a Send that are posted together. Nothing of what it
// has is open to peers, other than replies of [ServerConfig.ReadReplies]. What
// a peer does, or leaves undone, costs it its own connection at most, and what
// it can make a server keep is bounded: by the credits, by [Rules], by
// [ServerConfig] and, as far as it makes nothing move, by time.
//
// # Messages
//
// The rest is pure: [Header.Parse] and [Header.Append] are the codec,
// [Header.CheckCall], [Header.CheckReply] and [Header.CheckReturned] hold a
// message against the rules, [Assembly] says from which pieces a responder puts
// a stream together, and [ReplyPlan] which octets of a reply go where. None of
// them does I/O, and none allocates once its buffers have grown. [ConfCall] and
// [ConfReply] are the Connection Configuration Protocol (RFC 5666 §6),
// [PrivateData] is what peers tell each other as they connect (RFC 8797).
//
// [Rules] says which limits hold and how much of RFC 5666 is spoken that RFC
// 8166 took away. Whatever is wrong is an [*Error], whose [Fault] knows what
// the protocol answers to it.
package rpcrdma
