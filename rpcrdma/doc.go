// Package rpcrdma carries ONC RPC over RDMA, by RPC-over-RDMA version 1 (RFC
// 8166, RFC 5666): a [Server] of an [oncrpc.Handler], and a [Client] that is an
// [oncrpc.Caller]. Package rpctcp does the same over TCP.
//
//	server, err := rpcrdma.NewServer(rnic, rpcrdma.ServerConfig{Handler: handler})
//	ln, err := cm.Listen(ctx, rnic, "tcp", ":20049", cm.ListenConfig{})
//	err = server.Serve(ctx, ln)
//
// Handlers and callers see whole messages. What travels in chunks is decided from
// the sizes, and from an upper-layer binding if there is one for the program
// ([payload.Binding]); nfs/binding has those of NFS. Without a binding a program
// works all the same, by long messages.
//
// A server fetches a call into one piece of registered memory, with many RDMA
// Reads at a time. It sends the reply from the memory that [oncrpc.Request.Alloc]
// has returned, by RDMA Writes and a Send that are posted together. It exposes no
// memory to peers, except for replies of [ServerConfig.ReadReplies]. What a peer
// does, or leaves undone, costs it at most its own connection. What a peer can
// make a server keep is bounded by the credits, by [wire.Rules], by [ServerConfig],
// and where nothing moves, by time.
//
// Errors about messages are a [*wire.Error], and RDMA_ERROR from a peer is a
// [*wire.RemoteError]. The packages below this one are pure: wire has the headers
// and their checks, payload plans which octets go into which chunk.
package rpcrdma
