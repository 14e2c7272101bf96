// Package rpctcp carries ONC RPC over TCP, by record marking (RFC 5531 §11): a
// [Server] of an [oncrpc.Handler], which serves datagrams too, and a [Client]
// that is an [oncrpc.Caller]. Package rpcrdma does the same over RDMA.
//
// Calls go both ways over a connection: a handler calls back by
// [oncrpc.Request.Back], and what a server calls is executed by
// [ClientConfig.Reverse].
//
// [ServerConfig.TLS] and [ClientConfig.TLS] protect connections with TLS 1.3, on the same
// port (RFC 9289). Datagrams are not protected.
//
// Large payload is written from where it lies and read to where it stays; what a
// peer announces is believed only as far as it has arrived, and everything it can
// make this side keep has a limit. Everything that waits for a peer has a context
// or a bound in time.
package rpctcp
