// A sample, and the difference of two.

package top

import (
	"cmp"
	"math"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// A Sample is the state of a command at a moment.
type Sample struct {
	At          time.Time
	Version     string
	Ready       bool
	Connections []Connection

	clients, calls, credits, registered float64
	queuePairs                          map[string]float64 // by state
	in, out, fpdusIn, fpdusOut          float64
	refused, evicted, terminates, crc   float64
	failures                            map[string]float64 // of calls, by status
	latency                             map[string]*histogram
}

// A histogram of the latency of a procedure, with cumulative counts.
type histogram struct {
	bounds []float64 // seconds
	counts []float64
	count  float64
}

// sampleOf reads a scrape; nil if it is not of a weft command.
func sampleOf(f map[string]*dto.MetricFamily, at time.Time) *Sample {
	build := f["weft_build_info"].GetMetric()
	if len(build) == 0 {
		return nil
	}
	s := &Sample{
		At: at, Ready: sum(f["weft_ready"]) > 0,
		clients: sum(f["weft_clients"]), calls: sum(f["weft_calls_in_progress"]), credits: sum(f["weft_credits_granted"]),
		registered: sum(f["weft_registered_bytes"]), queuePairs: by(f["weft_queue_pairs"], "state"),
		in: sum(f["weft_port_data_received_bytes_total"]), out: sum(f["weft_port_data_transmitted_bytes_total"]),
		fpdusIn: sum(f["weft_port_packets_received_total"]), fpdusOut: sum(f["weft_port_packets_transmitted_total"]),
		refused: sum(f["weft_connections_refused_total"]), evicted: sum(f["weft_connections_evicted_total"]),
		terminates: sum(f["weft_terminates_sent_total"]) + sum(f["weft_terminates_received_total"]),
		crc:        sum(f["weft_crc_errors_total"]), failures: by(f["weft_rpc_errors_total"], "status"),
		latency: make(map[string]*histogram),
	}
	s.Version = label(build[0], "version")
	for _, m := range f["weft_rpc_duration_seconds"].GetMetric() {
		name := label(m, "program") + label(m, "version") + " " + label(m, "procedure")
		if s.latency[name] == nil {
			s.latency[name] = new(histogram)
		}
		s.latency[name].add(m.GetHistogram())
	}
	return s
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func value(m *dto.Metric) float64 { return m.GetCounter().GetValue() + m.GetGauge().GetValue() }

func sum(f *dto.MetricFamily) (n float64) {
	for _, m := range f.GetMetric() {
		n += value(m)
	}
	return n
}

func by(f *dto.MetricFamily, name string) map[string]float64 {
	all := make(map[string]float64)
	for _, m := range f.GetMetric() {
		all[label(m, name)] += value(m)
	}
	return all
}

// add adds the histogram of another transport, which has the same bounds.
func (h *histogram) add(d *dto.Histogram) {
	h.count += float64(d.GetSampleCount())
	for i, b := range d.GetBucket() {
		if math.IsInf(b.GetUpperBound(), 1) {
			continue
		}
		if i >= len(h.bounds) {
			h.bounds, h.counts = append(h.bounds, b.GetUpperBound()), append(h.counts, 0)
		}
		h.counts[i] += float64(b.GetCumulativeCount())
	}
}

// since returns what has been added since an earlier histogram; nil is an empty one. A
// command that was started again counts from zero.
func (h *histogram) since(old *histogram) *histogram {
	if old == nil || old.count > h.count || len(old.counts) != len(h.counts) {
		return h
	}
	d := &histogram{bounds: h.bounds, counts: slices.Clone(h.counts), count: h.count - old.count}
	for i := range d.counts {
		d.counts[i] -= old.counts[i]
	}
	return d
}

// quantile estimates a quantile in seconds, linearly between two bounds, as Prometheus does.
func (h *histogram) quantile(q float64) float64 {
	rank, below, low := q*h.count, 0.0, 0.0
	for i, n := range h.counts {
		if n >= rank && n > below {
			return low + (h.bounds[i]-low)*(rank-below)/(n-below)
		}
		below, low = n, h.bounds[i]
	}
	return low
}

// A procedure is a line of the table of calls.
type procedure struct {
	name     string
	rate     float64 // calls a second
	p50, p99 float64 // seconds
	calls    float64 // since the command began
}

// procedures returns the procedures with calls, those with most calls a second first.
func procedures(prev, cur *Sample) (all []procedure) {
	dt := elapsed(prev, cur)
	for name, h := range cur.latency {
		d := h.since(prev.latency[name])
		p := procedure{name: name, rate: d.count / dt, calls: h.count}
		if prev == cur {
			p.rate = 0
		}
		if d.count == 0 {
			d = h
		}
		p.p50, p.p99 = d.quantile(0.5), d.quantile(0.99)
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b procedure) int {
		return cmp.Or(cmp.Compare(b.rate, a.rate), cmp.Compare(b.calls, a.calls), cmp.Compare(a.name, b.name))
	})
	return all
}

// elapsed is the time between two samples in seconds, never 0.
func elapsed(prev, cur *Sample) float64 { return max(cur.At.Sub(prev.At).Seconds(), 1e-3) }

// rate is the growth of a count in a second. A count that is lower began anew.
func rate(prev, cur *Sample, of func(*Sample) float64) float64 {
	from, to := of(prev), of(cur)
	if to < from {
		from = 0
	}
	return (to - from) / elapsed(prev, cur)
}
