// Calls by export. Metrics of procedures do not have the name of the export, too: that would be
// some thousand series for each export.

package observe

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-rdma/weft/oncrpc"
)

// exports has the metrics of calls by export. Those of a call are found without a lock: a set
// is replaced as a whole.
type exports struct {
	duration        *prometheus.HistogramVec
	errors, in, out *prometheus.CounterVec

	mu  sync.Mutex // of SetExports
	set atomic.Pointer[exportSet]
}

// An exportSet is the exports of the moment.
type exportSet struct {
	of     func(*oncrpc.Request) string
	series map[string]*exportMetrics
}

type exportMetrics struct {
	duration        prometheus.Observer
	errors, in, out prometheus.Counter
}

func newExports(r prometheus.Registerer) *exports {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"export"})
	}
	x := &exports{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weft_export_duration_seconds", Help: "Time from the arrival of a call to its reply being ready, by export.", Buckets: latencies,
		}, []string{"export"}),
		errors: counter("weft_export_errors_total", "Calls with another status than success, by export."),
		in:     counter("weft_export_received_bytes_total", "Octets of calls, header included, by export."),
		out:    counter("weft_export_transmitted_bytes_total", "Octets of replies, header included, by export."),
	}
	x.set.Store(&exportSet{of: func(*oncrpc.Request) string { return "" }})
	r.MustRegister(x.duration, x.errors, x.in, x.out)
	return x
}

// SetExports says which exports there are, and which one a call is for: of returns a name, or ""
// for none. It may look at handles that nobody has authenticated, and is called once a call.
// Metrics of exports that were there before and are not any more are removed.
func (o *Observer) SetExports(names []string, of func(*oncrpc.Request) string) {
	x := o.exports
	x.mu.Lock()
	defer x.mu.Unlock()
	old := maps.Clone(x.set.Load().series)
	next := &exportSet{of: of, series: make(map[string]*exportMetrics)}
	for _, name := range names {
		next.series[name] = &exportMetrics{x.duration.WithLabelValues(name), x.errors.WithLabelValues(name), x.in.WithLabelValues(name), x.out.WithLabelValues(name)}
		delete(old, name)
	}
	x.set.Store(next)
	for name := range old {
		x.duration.DeleteLabelValues(name)
		for _, c := range []*prometheus.CounterVec{x.errors, x.in, x.out} {
			c.DeleteLabelValues(name)
		}
	}
}

// find returns the export of a call and its metrics; nil if it has none.
func (x *exports) find(r *oncrpc.Request) (string, *exportMetrics) {
	set := x.set.Load()
	name := set.of(r)
	return name, set.series[name]
}

// observe counts a call that was executed.
func (m *exportMetrics) observe(s *served) {
	m.duration.Observe(s.took.Seconds())
	m.in.Add(float64(len(s.Message)))
	m.out.Add(float64(s.replied))
	if s.status != "OK" {
		m.errors.Inc()
	}
}
