// Package rpctcp carries ONC RPC over TCP, by record marking (RFC 5531 §11): a
// server of an [oncrpc.Handler], and a client that is an [oncrpc.Caller].
// Package rpcrdma does the same over RDMA.
package rpctcp
