// Calls: their number, latency, size and status.

package observe

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/weft-rdma/weft/oncrpc"
)

// latencies are the buckets of histograms, in seconds: from 50 µs, as calls over RDMA take
// that little, by steps of some 2.5 to 10 s.
var latencies = []float64{50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 10}

// calls has the metrics of calls. Metrics of one procedure are found without a lock: index
// only grows, and is replaced as a whole.
type calls struct {
	duration *prometheus.HistogramVec
	errors   *prometheus.CounterVec
	in, out  *prometheus.CounterVec

	mu    sync.Mutex
	index atomic.Pointer[map[callKey]*callMetrics]
}

// A callKey has a small number of values: see key.
type callKey struct {
	network          string
	prog, vers, proc uint32
}

type callMetrics struct {
	procedure procedure
	duration  prometheus.Observer
	in, out   prometheus.Counter
}

func newCalls(r prometheus.Registerer) *calls {
	labels := []string{"transport", "program", "version", "procedure"}
	c := &calls{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weft_rpc_duration_seconds", Help: "Time from the arrival of a call to its reply being ready, by procedure.", Buckets: latencies,
		}, labels),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weft_rpc_errors_total", Help: "Calls with another status than success: of NFS, of MOUNT, or of RPC itself.",
		}, append(labels, "status")),
		in: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weft_rpc_received_bytes_total", Help: "Octets of calls, header included.",
		}, labels),
		out: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weft_rpc_transmitted_bytes_total", Help: "Octets of replies, header included.",
		}, labels),
	}
	c.index.Store(&map[callKey]*callMetrics{})
	r.MustRegister(c.duration, c.errors, c.in, c.out)
	return c
}

// key returns the key of a call. All calls of unknown programs, versions and procedures have
// one key for each program, so that peers cannot make many.
func key(r *oncrpc.Request) callKey {
	p := procedureOf(r.Prog, r.Vers, r.Proc)
	switch {
	case p.program == other:
		return callKey{network: r.Network}
	case p.name == other:
		return callKey{r.Network, r.Prog, r.Vers, ^uint32(0)}
	}
	return callKey{r.Network, r.Prog, r.Vers, r.Proc}
}

// of returns the metrics of a call's procedure.
func (c *calls) of(r *oncrpc.Request) *callMetrics {
	k := callKey{r.Network, r.Prog, r.Vers, r.Proc}
	if m := (*c.index.Load())[k]; m != nil {
		return m
	}
	return c.add(key(r))
}

func (c *calls) add(k callKey) *callMetrics {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := *c.index.Load()
	if m := old[k]; m != nil {
		return m
	}
	p := procedureOf(k.prog, k.vers, k.proc)
	labels := []string{k.network, p.program, p.version, p.name}
	m := &callMetrics{p, c.duration.WithLabelValues(labels...), c.in.WithLabelValues(labels...), c.out.WithLabelValues(labels...)}
	index := maps.Clone(old)
	index[k] = m
	c.index.Store(&index)
	return m
}

// A served call, as the access log and traces have it.
type served struct {
	*oncrpc.Request
	procedure
	export  string // "" is none
	status  string
	began   time.Time
	took    time.Duration
	replied int // octets
}

// observe counts a call that was executed.
func (c *calls) observe(m *callMetrics, s *served) {
	m.duration.Observe(s.took.Seconds())
	m.in.Add(float64(len(s.Message)))
	m.out.Add(float64(s.replied))
	if s.status != "OK" {
		p := m.procedure
		c.errors.WithLabelValues(s.Network, p.program, p.version, p.name, s.status).Inc()
	}
}

// Handler returns a handler that counts the calls of h, and logs and traces them if the
// Observer does.
func (o *Observer) Handler(h oncrpc.Handler) oncrpc.Handler {
	return oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		m := o.calls.of(r)
		s := served{Request: r, procedure: m.procedure, began: time.Now()}
		var export *exportMetrics
		s.export, export = o.exports.find(r)
		var span trace.Span
		if o.cfg.Trace != nil {
			ctx, span = o.cfg.Trace.begin(ctx, &s)
		}
		reply, err := h.ServeRPC(ctx, r)
		s.took, s.status, s.replied = time.Since(s.began), statusOf(&r.Call, reply, err), len(reply)
		o.calls.observe(m, &s)
		if export != nil {
			export.observe(&s)
		}
		if span != nil {
			o.cfg.Trace.end(span, &s)
		}
		if o.cfg.Access != nil {
			o.cfg.Access.LogAttrs(ctx, slog.LevelInfo, "call", s.attrs()...)
		}
		return reply, err
	})
}
