// What servers report of themselves and of their connections, whatever the transport.

package oncrpc

import (
	"net"
	"time"
)

// ServerStats are the counts of a server at one moment. Those of type uint64 only grow.
type ServerStats struct {
	Connections int // those being served, and over RDMA those in start-up
	Calls       int // calls being executed
	Credits     int // over RDMA, granted to all clients together

	Full         uint64 // refused: no place, and none could be taken from another
	Evicted      uint64 // closed in favour of a connection of another origin
	EvictedEarly uint64 // the same, before the server has accepted them, over RDMA
	OutOfMemory  uint64 // closed, as others waited for memory that it held
	OtherRefused uint64 // refused for another reason, mostly by address
}

// Add adds the counts of another server.
func (s *ServerStats) Add(o ServerStats) {
	s.Connections += o.Connections
	s.Calls += o.Calls
	s.Credits += o.Credits
	s.Full += o.Full
	s.Evicted += o.Evicted
	s.EvictedEarly += o.EvictedEarly
	s.OutOfMemory += o.OutOfMemory
	s.OtherRefused += o.OtherRefused
}

// ConnectionStats are the counts of one connection of a server.
type ConnectionStats struct {
	Network string   // the transport: "tcp" or "rdma"
	Remote  net.Addr // the peer
	Origin  string   // what limits are divided by: see origin.Share

	Since time.Time     // when it was accepted
	Idle  time.Duration // since its peer's last message

	Calls   int    // being executed
	Served  uint64 // calls answered
	Credits int    // granted, over RDMA

	// Octets of messages, over RDMA those of RDMA Reads and Writes, too.
	OctetsIn, OctetsOut uint64
}
