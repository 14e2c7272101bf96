// The Observer: what a command has to show.

package observe

import (
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weft-rdma/weft/verbs"
)

// A Config configures an Observer. The zero value is useful.
type Config struct {
	Version string       // of the command
	Access  *slog.Logger // logs each call; nil logs none
	Trace   *Tracer      // traces each call; nil traces none
}

// An Observer has the metrics of a command. Its methods may be called by any goroutine.
type Observer struct {
	cfg      Config
	registry *prometheus.Registry
	calls    *calls
	exports  *exports
	retries  prometheus.Counter

	mu     sync.Mutex
	rnics  map[*verbs.RNIC]string
	server Server
	ready  error // why it is not ready; nil if it is
}

// New makes an Observer, which is not ready.
func New(cfg Config) *Observer {
	o := &Observer{cfg: cfg, registry: prometheus.NewRegistry(), rnics: make(map[*verbs.RNIC]string), ready: errStarting}
	o.calls, o.exports = newCalls(o.registry), newExports(o.registry)
	o.retries = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "weft_rpc_retries_total", Help: "Times that a gateway had to try again to reach its server.",
	})
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weft_build_info", Help: "Always 1; the label is the version.", ConstLabels: prometheus.Labels{"version": cfg.Version},
	})
	info.Set(1)
	o.registry.MustRegister(o.retries, info, state{o},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return o
}

// Retried counts an attempt of a gateway to reach its server again.
func (o *Observer) Retried() { o.retries.Inc() }

var readyDesc = prometheus.NewDesc("weft_ready", "1 while the command serves, 0 while it starts or drains.", nil, nil)

// state collects what is counted elsewhere, at the time of a scrape.
type state struct{ *Observer }

// Describe describes nothing: which labels there are is known at a scrape.
func (state) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s state) Collect(ch chan<- prometheus.Metric) {
	ready := 0.0
	if s.Ready() == nil {
		ready = 1
	}
	ch <- prometheus.MustNewConstMetric(readyDesc, prometheus.GaugeValue, ready)
	s.collectRNICs(ch)
	s.collectServer(ch)
}
