// Metrics of servers, by their transport.

package observe

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-rdma/weft/oncrpc"
)

// A Server is what serves clients. Its methods may be called at any time.
type Server interface {
	// ServerStats returns the counts of each transport, by its name.
	ServerStats() map[string]oncrpc.ServerStats
	Connections() []oncrpc.ConnectionStats
}

var serverMetrics = []metric[oncrpc.ServerStats]{
	gauge("connections", "Connections of clients.", []string{"transport"}, single(func(s oncrpc.ServerStats) uint64 { return uint64(s.Connections) })),
	gauge("calls_in_progress", "Calls that are being executed.", []string{"transport"}, single(func(s oncrpc.ServerStats) uint64 { return uint64(s.Calls) })),
	gauge("credits_granted", "Credits of RPC-over-RDMA that all clients together have.", []string{"transport"}, single(func(s oncrpc.ServerStats) uint64 { return uint64(s.Credits) })),
	counter("connections_refused_total", "Connections that were refused, by reason: full, or another such as an address that is not allowed or a failed start-up.", []string{"transport", "reason"}, func(s oncrpc.ServerStats, value func(float64, ...string)) {
		value(float64(s.Full), "full")
		value(float64(s.OtherRefused), other)
	}),
	counter("connections_evicted_total", "Connections that were closed for the sake of others, by reason: full, start-up if that was not over, or memory.", []string{"transport", "reason"}, func(s oncrpc.ServerStats, value func(float64, ...string)) {
		value(float64(s.Evicted), "full")
		value(float64(s.EvictedEarly), "start-up")
		value(float64(s.OutOfMemory), "memory")
	}),
}

var clientsDesc = prometheus.NewDesc("weft_clients", "Origins of connections: hosts, and users of this machine.", nil, nil)

// SetServer adds the metrics of a server.
func (o *Observer) SetServer(s Server) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.server = s
}

// collectServer sends the metrics of the server.
func (o *Observer) collectServer(ch chan<- prometheus.Metric) {
	o.mu.Lock()
	s := o.server
	o.mu.Unlock()
	if s == nil {
		return
	}
	for transport, stats := range s.ServerStats() {
		collect(ch, serverMetrics, transport, stats)
	}
	clients := make(map[string]bool)
	for _, c := range s.Connections() {
		clients[c.Origin] = true
	}
	ch <- prometheus.MustNewConstMetric(clientsDesc, prometheus.GaugeValue, float64(len(clients)))
}
