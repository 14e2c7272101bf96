// Metrics of RNICs. Their names follow those of node_exporter's infiniband collector and of
// `rdma statistic` and `rdma resource`, where these have them.

package observe

import (
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-rdma/weft/verbs"
)

// A metric is the description of one, and how its values are found.
type metric[T any] struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	values func(from T, value func(v float64, labels ...string))
}

func counter[T any](name, help string, labels []string, values func(T, func(float64, ...string))) metric[T] {
	return metric[T]{prometheus.NewDesc("weft_"+name, help, labels, nil), prometheus.CounterValue, values}
}

func gauge[T any](name, help string, labels []string, values func(T, func(float64, ...string))) metric[T] {
	return metric[T]{prometheus.NewDesc("weft_"+name, help, labels, nil), prometheus.GaugeValue, values}
}

// collect sends the values of all metrics. The first label is always the given one.
func collect[T any](ch chan<- prometheus.Metric, all []metric[T], first string, from T) {
	for _, m := range all {
		m.values(from, func(v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, v, append([]string{first}, labels...)...)
		})
	}
}

// rnicNow is an RNIC's state at a scrape.
type rnicNow struct {
	verbs.RNICStats
	usage verbs.Usage
}

// single is the value of a metric without labels of its own.
func single[T any](of func(T) uint64) func(T, func(float64, ...string)) {
	return func(from T, value func(float64, ...string)) { value(float64(of(from))) }
}

var rnicMetrics = []metric[*rnicNow]{
	gauge("queue_pairs", "Queue pairs that exist, by state.", []string{"device", "state"}, func(s *rnicNow, value func(float64, ...string)) {
		for _, state := range []verbs.State{verbs.Idle, verbs.RTS, verbs.Closing, verbs.Terminate, verbs.Error} {
			value(float64(s.States[state]), state.String())
		}
	}),
	gauge("resources", "Objects that exist, by type as `rdma resource` names it.", []string{"device", "type"}, func(s *rnicNow, value func(float64, ...string)) {
		u := &s.usage
		value(float64(u.PDs), "pd")
		value(float64(u.CQs), "cq")
		value(float64(u.QPs), "qp")
		value(float64(u.SRQs), "srq")
		value(float64(u.Regions), "mr")
		value(float64(u.Windows), "mw")
		value(float64(u.Listeners), "listener")
		value(float64(u.PendingConnections), "pending_connection")
	}),
	gauge("registered_bytes", "Octets of valid memory regions.", []string{"device"}, single(func(s *rnicNow) uint64 { return s.usage.RegionsOctets })),
	counter("port_data_received_bytes_total", "Octets received by streams, framing included.", []string{"device"}, single(func(s *rnicNow) uint64 { return s.Wire.OctetsIn })),
	counter("port_data_transmitted_bytes_total", "Octets sent by streams, framing included, retransmissions of TCP left out.", []string{"device"}, single(func(s *rnicNow) uint64 { return s.Wire.OctetsOut })),
	counter("port_packets_received_total", "FPDUs received.", []string{"device"}, single(func(s *rnicNow) uint64 { return s.Wire.SegmentsIn })),
	counter("port_packets_transmitted_total", "FPDUs sent.", []string{"device"}, single(func(s *rnicNow) uint64 { return s.Wire.SegmentsOut })),
	counter("tx_requests_total", "Work requests of send queues that succeeded, by operation.", []string{"device", "operation"}, func(s *rnicNow, value func(float64, ...string)) {
		q := &s.QPs
		value(float64(q.Sends.Messages), "send")
		value(float64(q.Writes.Messages), "write")
		value(float64(q.Reads.Messages), "read")
		value(float64(q.Atomics.Messages), "atomic")
	}),
	counter("tx_request_bytes_total", "Octets of payload that succeeded work requests moved, by operation.", []string{"device", "operation"}, func(s *rnicNow, value func(float64, ...string)) {
		q := &s.QPs
		value(float64(q.Sends.Octets), "send")
		value(float64(q.Writes.Octets), "write")
		value(float64(q.Reads.Octets), "read")
		value(float64(q.Atomics.Octets), "atomic")
	}),
	counter("rx_requests_total", "Messages of peers that were received or answered, by operation.", []string{"device", "operation"}, func(s *rnicNow, value func(float64, ...string)) {
		q := &s.QPs
		value(float64(q.Received.Messages), "send")
		value(float64(q.PeerWrites.Messages), "write")
		value(float64(q.PeerReads.Messages), "read")
		value(float64(q.PeerAtomics), "atomic")
	}),
	counter("rx_request_bytes_total", "Octets of payload that peers moved, by operation.", []string{"device", "operation"}, func(s *rnicNow, value func(float64, ...string)) {
		q := &s.QPs
		value(float64(q.Received.Octets), "send")
		value(float64(q.PeerWrites.Octets), "write")
		value(float64(q.PeerReads.Octets), "read")
	}),
	counter("failed_requests_total", "Work requests that completed without success, by status.", []string{"device", "status"}, func(s *rnicNow, value func(float64, ...string)) {
		value(float64(s.QPs.Flushed), "flushed")
		value(float64(s.QPs.Failed), "error")
	}),
	counter("streams_total", "Streams that have begun.", []string{"device"}, single(func(s *rnicNow) uint64 { return s.QPs.Streams })),
	counter("streams_ended_total", "Streams that have ended, by how.", []string{"device", "how"}, func(s *rnicNow, value func(float64, ...string)) {
		q := &s.QPs
		value(float64(q.Closed), "closed")
		value(float64(q.Terminated), "terminated")
		value(float64(q.TerminatedByPeer), "terminated_by_peer")
		value(float64(q.Aborted), "aborted")
		value(float64(q.Lost), "lost")
	}),
	counter("terminates_sent_total", "Terminate messages sent on streams that have ended, by the code of RFC 5040.", []string{"device", "layer", "type", "code"}, func(s *rnicNow, value func(float64, ...string)) {
		codes(s.TerminatesSent, value)
	}),
	counter("terminates_received_total", "Terminate messages received on streams that have ended, by the code of RFC 5040.", []string{"device", "layer", "type", "code"}, func(s *rnicNow, value func(float64, ...string)) {
		codes(s.TerminatesReceived, value)
	}),
	counter("crc_errors_total", "Streams ended by the wrong CRC of an FPDU.", []string{"device"}, single(func(s *rnicNow) uint64 { return s.Events[verbs.EventCRC] })),
	counter("events_total", "Asynchronous events, by name.", []string{"device", "event"}, func(s *rnicNow, value func(float64, ...string)) {
		for id, n := range s.Events {
			value(float64(n), id.String())
		}
	}),
	counter("completion_queue_overflows_total", "Overflows of completion queues.", []string{"device"}, single(func(s *rnicNow) uint64 { return s.CQs.Overflows })),
	counter("limits_reached_total", "Verbs that failed at a limit of the RNIC, by limit.", []string{"device", "limit"}, func(s *rnicNow, value func(float64, ...string)) {
		for name, n := range s.Limits {
			value(float64(n), name)
		}
	}),
}

// codes gives the values of Terminate messages: one of each kind that has occurred.
func codes(all map[verbs.TerminateCode]uint64, value func(float64, ...string)) {
	for c, n := range all {
		if c == verbs.OtherTerminates {
			value(float64(n), other, other, other)
			continue
		}
		value(float64(n), fmt.Sprint(c.Layer), fmt.Sprint(c.EType), fmt.Sprintf("0x%02x", c.Code))
	}
}

// AddRNIC adds the metrics of an RNIC, until it is removed. A command has few.
func (o *Observer) AddRNIC(r *verbs.RNIC) (remove func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rnics[r] = r.Name()
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.rnics, r)
	}
}

// collectRNICs sends the metrics of all RNICs.
func (o *Observer) collectRNICs(ch chan<- prometheus.Metric) {
	o.mu.Lock()
	rnics := maps.Clone(o.rnics)
	o.mu.Unlock()
	names := slices.Sorted(maps.Values(rnics))
	for r, name := range rnics {
		if n, _ := slices.BinarySearch(names, name); names[n] == name {
			collect(ch, rnicMetrics, name, &rnicNow{r.Stats(), r.Usage()})
		}
	}
}
