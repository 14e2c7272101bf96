// This file is the report, and its JSON form.

package perf

import (
	"runtime"
	"slices"
	"time"

	"github.com/weft-rdma/weft/internal/stats"
)

// A Report is what a measurement found. Its JSON form is the command's.
type Report struct {
	Units    map[string]string `json:"units"`
	System   System            `json:"system"`
	Settings Settings          `json:"settings"`
	Results  []Result          `json:"results"`
}

// System describes the driver's end.
type System struct {
	Go         string `json:"go"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	CPUs       int    `json:"cpus"`
	Congestion string `json:"congestion"` // control of all connections; empty where it cannot be known
}

// Settings are those of the measurement.
type Settings struct {
	Peer            string  `json:"peer"`
	Connections     int     `json:"connections"`
	Consumers       int     `json:"consumers,omitempty"` // at each end
	Depth           int     `json:"depth"`               // of each connection
	Rounds          int     `json:"rounds"`              // as many as there were
	DurationSeconds float64 `json:"duration_seconds"`    // as long as it took
	Tuning
}

// A Result is one operation, size and setting of the CRC, beside plain TCP.
type Result struct {
	Op   Op   `json:"op"`
	Size int  `json:"size"`
	CRC  bool `json:"crc"`

	Depth  int `json:"depth"`
	Batch  int `json:"batch"`
	Signal int `json:"signal"`

	BytesPerSecond    float64 `json:"bytes_per_second"`
	MessagesPerSecond float64 `json:"messages_per_second"`
	LatencyIs         string  `json:"latency_is"` // "half round trip" or "round trip"
	Latency

	TCPBytesPerSecond    float64 `json:"tcp_bytes_per_second"`
	TCPMessagesPerSecond float64 `json:"tcp_messages_per_second"`
	TCPLatency

	// Ratio is BytesPerSecond to TCPBytesPerSecond; the least and the greatest
	// are of single rounds.
	Ratio    float64 `json:"ratio"`
	RatioMin float64 `json:"ratio_min"`
	RatioMax float64 `json:"ratio_max"`

	// Figures of each round: what bandwidth was over time, and how far rounds differ.
	OverTime    []Moment  `json:"over_time,omitempty"`
	TCPOverTime []Moment  `json:"tcp_over_time,omitempty"`
	Medians     []float64 `json:"round_latency_p50_ns,omitempty"`

	Timed    int `json:"timed_messages"`
	Verified int `json:"verified_messages"`
}

// A Moment is the bandwidth of one round.
type Moment struct {
	Seconds        float64 `json:"seconds"` // since the measurement began
	BytesPerSecond float64 `json:"bytes_per_second"`
}

// overTime are the rounds of s.
func (s *series) overTime() (all []Moment) {
	for i, at := range s.at {
		all = append(all, Moment{at, s.rate[i]})
	}
	return all
}

// Latency sums up round trips, or halves of them, in ns.
type Latency struct {
	P50       float64  `json:"latency_p50_ns"` // percentiles: medians of the rounds
	P90       float64  `json:"latency_p90_ns"`
	P99       float64  `json:"latency_p99_ns"`
	P999      float64  `json:"latency_p99_9_ns"`
	Max       float64  `json:"latency_max_ns"` // of all rounds
	Histogram []Bucket `json:"latency_histogram"`
}

// TCPLatency is Latency by its names for plain TCP.
type TCPLatency struct {
	P50       float64  `json:"tcp_latency_p50_ns"`
	P90       float64  `json:"tcp_latency_p90_ns"`
	P99       float64  `json:"tcp_latency_p99_ns"`
	P999      float64  `json:"tcp_latency_p99_9_ns"`
	Max       float64  `json:"tcp_latency_max_ns"`
	Histogram []Bucket `json:"tcp_latency_histogram"`
}

// reportUnits explains the members of a Result in the JSON.
var reportUnits = map[string]string{
	"size":                    "bytes of payload a message",
	"crc":                     "whether MPA's CRC32C is on",
	"depth":                   "most messages under way at a time, on each connection",
	"batch":                   "messages posted at once",
	"signal":                  "every which message is signaled",
	"bytes_per_second":        "bytes of payload a second over all connections together, median of the rounds",
	"messages_per_second":     "messages a second over all connections together, median of the rounds",
	"latency_p50_ns":          "nanoseconds, median of the rounds' medians; of what, latency_is says",
	"latency_p90_ns":          "nanoseconds, median of the rounds' 90th percentiles",
	"latency_p99_ns":          "nanoseconds, median of the rounds' 99th percentiles",
	"latency_p99_9_ns":        "nanoseconds, median of the rounds' 99.9th percentiles",
	"latency_max_ns":          "nanoseconds, the longest of all rounds",
	"latency_histogram":       "how many took at least from_ns and less than to_ns nanoseconds, all rounds together; buckets that are empty are left out",
	"tcp_bytes_per_second":    "the same of plain TCP: a write a message, read in bulk",
	"tcp_messages_per_second": "the same of plain TCP",
	"tcp_latency_p50_ns":      "the same of plain TCP: ping-pong of the same size; for reads and atomics a 16-byte request and its answer",
	"tcp_latency_p90_ns":      "the same of plain TCP",
	"tcp_latency_p99_ns":      "the same of plain TCP",
	"tcp_latency_p99_9_ns":    "the same of plain TCP",
	"tcp_latency_max_ns":      "the same of plain TCP",
	"tcp_latency_histogram":   "the same of plain TCP",
	"ratio":                   "bytes_per_second to tcp_bytes_per_second",
	"ratio_min":               "the least ratio in one round",
	"ratio_max":               "the greatest ratio in one round",
	"over_time":               "bytes_per_second of each round, and seconds since the measurement began",
	"tcp_over_time":           "the same of plain TCP",
	"round_latency_p50_ns":    "nanoseconds, the median of each round",
	"timed_messages":          "messages that the figures come from",
	"verified_messages":       "messages, each at a place of its own, that the receiving end compared byte by byte",
	"connections":             "RDMA connections, and as many of plain TCP, that are in use at the same time, also when latency is measured",
	"consumers":               "completion queues, each with a goroutine, at each end, among which the RDMA connections are divided; without it each connection has its own",
	"duration_seconds":        "seconds that the measurement took",
	"send_buffer":             "bytes, of the sockets of both ends; without it as the system tunes it",
	"receive_buffer":          "the same",
	"spin_ns":                 "nanoseconds that an RDMA connection polls before it sleeps",
}

func thisSystem() System {
	return System{Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU()}
}

func newReport(cfg *Config, system System, rounds int, took time.Duration) *Report {
	return &Report{
		Units:  reportUnits,
		System: system,
		Settings: Settings{
			Peer:            cfg.Address,
			Connections:     cfg.Connections,
			Consumers:       cfg.Consumers,
			Depth:           cfg.Depth,
			Rounds:          rounds,
			DurationSeconds: took.Seconds(),
			Tuning:          cfg.Tuning,
		},
		Results: []Result{},
	}
}

// newResult sums up a group's rounds at one setting of the CRC.
func newResult(cfg *Config, g *group, crc bool) Result {
	s, tcp := g.rdma[crc], g.tcp
	res := Result{
		Op: g.op, Size: g.size, CRC: crc,
		BytesPerSecond:    stats.Median(s.rate),
		Latency:           s.latencies(),
		LatencyIs:         "half round trip",
		TCPBytesPerSecond: stats.Median(tcp.rate),
		TCPLatency:        TCPLatency(tcp.latencies()),
		Timed:             s.messages,
		Verified:          s.verified,
		OverTime:          s.overTime(),
		TCPOverTime:       tcp.overTime(),
	}
	for i := range s.latency {
		res.Medians = append(res.Medians, s.latency[i].P50)
	}
	res.Depth = depthFor(g.size, cfg.Depth)
	res.Batch, res.Signal = portion(cfg.Batch, res.Depth), portion(cfg.Signal, res.Depth)
	if g.op.tripParts() == 1 {
		res.LatencyIs = "round trip"
	}
	res.MessagesPerSecond = res.BytesPerSecond / float64(g.size)
	res.TCPMessagesPerSecond = res.TCPBytesPerSecond / float64(g.size)
	if res.TCPBytesPerSecond > 0 {
		res.Ratio = res.BytesPerSecond / res.TCPBytesPerSecond
	}
	ratios := make([]float64, len(s.rate))
	for i, rate := range s.rate {
		ratios[i] = rate / tcp.rate[i]
	}
	if len(ratios) > 0 {
		res.RatioMin, res.RatioMax = slices.Min(ratios), slices.Max(ratios)
	}
	return res
}
