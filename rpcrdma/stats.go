// What a server reports of itself.

package rpcrdma

import (
	"slices"

	"github.com/weft-rdma/weft/oncrpc"
)

// Stats returns the counts of the server. It may be called at any time.
func (s *Server) Stats() oncrpc.ServerStats {
	refused := s.refusals.Refusals()
	stats := oncrpc.ServerStats{
		Full: refused.Full, Evicted: refused.Evicted, OutOfMemory: refused.NoMemory, OtherRefused: refused.Other,
	}
	s.mu.Lock()
	stats.Connections = len(s.conns)
	s.mu.Unlock()
	for _, r := range s.responders() {
		stats.Calls += int(r.serving.Load())
		r.mu.Lock()
		stats.Credits += int(r.grants.credits())
		r.mu.Unlock()
	}
	return stats
}

// Connections returns what each connection has done, in no order. It leaves out those in
// start-up.
func (s *Server) Connections() []oncrpc.ConnectionStats {
	responders := s.responders()
	all := make([]oncrpc.ConnectionStats, 0, len(responders))
	for _, r := range responders {
		all = append(all, r.stats())
	}
	return all
}

// responders returns those of the connections that are established.
func (s *Server) responders() (all []*responder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		all = append(all, c.r)
	}
	return slices.DeleteFunc(all, func(r *responder) bool { return r == nil })
}

func (r *responder) stats() oncrpc.ConnectionStats {
	qp := r.e.qp.Stats()
	stats := oncrpc.ConnectionStats{
		Network: "rdma", Remote: r.e.conn.RemoteAddr(), Origin: r.from.Share().String(),
		Since: r.e.began, Idle: r.e.idle(), Calls: int(r.serving.Load()),
		OctetsIn:  qp.Received.Octets + qp.Reads.Octets + qp.PeerWrites.Octets,
		OctetsOut: qp.Sends.Octets + qp.Writes.Octets + qp.PeerReads.Octets,
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	stats.Served, stats.Credits = r.served, int(r.grants.credits())
	return stats
}
