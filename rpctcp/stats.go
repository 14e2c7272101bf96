// What a server reports of itself.

package rpctcp

import (
	"time"

	"github.com/weft-rdma/weft/oncrpc"
)

// tally is what a link counts of the peer's calls; its lock.
type tally struct {
	served              uint64
	octetsIn, octetsOut uint64
}

// Stats returns the counts of the server. It may be called at any time.
func (s *Server) Stats() oncrpc.ServerStats {
	refused := s.refusals.Refusals()
	stats := oncrpc.ServerStats{
		Full: refused.Full, Evicted: refused.Evicted, OutOfMemory: refused.NoMemory, OtherRefused: refused.Other,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stats.Connections = len(s.links)
	for l := range s.links {
		l.mu.Lock()
		stats.Calls += l.busy
		l.mu.Unlock()
	}
	return stats
}

// Connections returns what each connection has done, in no order.
func (s *Server) Connections() []oncrpc.ConnectionStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]oncrpc.ConnectionStats, 0, len(s.links))
	for l := range s.links {
		all = append(all, l.stats())
	}
	return all
}

func (l *link) stats() oncrpc.ConnectionStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return oncrpc.ConnectionStats{
		Network: "tcp", Remote: l.raw.RemoteAddr(), Origin: l.from.Share().String(),
		Since: l.began, Idle: time.Since(time.Unix(0, l.lastUsed.Load())),
		Calls: l.busy, Served: l.tally.served, OctetsIn: l.tally.octetsIn, OctetsOut: l.tally.octetsOut,
	}
}
