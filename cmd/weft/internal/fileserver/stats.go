// What a file server reports of itself.

package fileserver

import (
	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/verbs"
)

// RNIC returns the RNIC of the server, until Shutdown has returned.
func (s *Server) RNIC() *verbs.RNIC { return s.rnic }

// ServerStats returns the counts of each transport, by its name. Those of tcp are of NFS,
// MOUNT and the port mapper together.
func (s *Server) ServerStats() map[string]oncrpc.ServerStats {
	all := make(map[string]oncrpc.ServerStats)
	if s.rdma != nil {
		stats := s.rdma.Stats()
		for _, ln := range append([]*cm.Listener{s.ports.rdma}, s.ports.moreRDMA...) {
			early := ln.Refusals() // before the server had the connection
			stats.Full += early.Full
			stats.EvictedEarly += early.Evicted
			stats.OtherRefused += early.Other
		}
		all["rdma"] = stats
	}
	if len(s.tcp) > 0 {
		var sum oncrpc.ServerStats
		for _, server := range s.tcp {
			sum.Add(server.Stats())
		}
		all["tcp"] = sum
	}
	return all
}

// Connections returns what each connection has done.
func (s *Server) Connections() (all []oncrpc.ConnectionStats) {
	if s.rdma != nil {
		all = s.rdma.Connections()
	}
	for _, server := range s.tcp {
		all = append(all, server.Connections()...)
	}
	return all
}
