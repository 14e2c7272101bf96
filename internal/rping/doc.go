// Package rping speaks the protocol of rping(1), the ping of rdma-core, over a
// queue pair: what `weft ping` runs, in both roles, octet for octet what the
// original puts on the wire.
//
// One ping, with the client on the left:
//
//	Send: advertisement of the source  ->
//	                                   <-  RDMA Read of the source
//	                                   <-  Send: go ahead
//	Send: advertisement of the sink    ->
//	                                   <-  RDMA Write of what was read to the sink
//	                                   <-  Send: done
//
// All four Sends carry the 16 octets of an [Info]. The client's say where its
// memory is; the server's mean only that they came, and are zero.
//
// The protocol has no farewell. A client that has had its pings closes the
// connection between two of them; an end anywhere else is a broken session,
// and both [Client.Ping] and [Server.Serve] report it as an error.
package rping
