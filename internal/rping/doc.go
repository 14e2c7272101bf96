// Package rping implements the protocol of rping(1), the ping of rdma-core, over a
// queue pair, in both roles and octet for octet. It is what `weft ping` runs.
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
// All four Sends carry the 16 octets of an [Info]. The client's advertise its memory; the
// server's are zero, and mean only that it is done.
//
// The protocol has no message for the end. A client that is done closes the connection
// between two pings; an end anywhere else is an error of [Client.Ping] and
// [Server.Serve].
package rping
