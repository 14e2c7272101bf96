// The JSON document for programs.

package main

import (
	"encoding/json"
	"io"
	"runtime"
)

// A Document is what --json writes.
type Document struct {
	System  System  `json:"system"`
	Results []Entry `json:"results"`
}

// A System says where and how the figures came about.
type System struct {
	Go         string  `json:"go"`
	OS         string  `json:"os"`
	Arch       string  `json:"arch"`
	CPUs       int     `json:"cpus"`
	Congestion string  `json:"congestion_control"` // of every socket; "" where the system does not tell
	Placed     bool    `json:"placed"`             // each sample's ends were bound to processors
	Rounds     int     `json:"rounds"`
	Sample     float64 `json:"sample_seconds"`
}

// An Entry is one comparison. The figures weft and tcp are medians over the
// rounds, in Unit; ratio is the median of weft/tcp taken inside each round.
// With Error set there are no figures.
type Entry struct {
	Metric   Metric `json:"metric"`    // bandwidth, message_rate, latency
	Op       Op     `json:"op"`        // write, read, send
	Size     int    `json:"size"`      // octets of a message
	CRC      bool   `json:"crc"`       // CRC32C in each FPDU
	WeftDoes string `json:"weft_does"` // how Weft's messages were driven
	TCPDoes  string `json:"tcp_does"`  // how the baseline's were
	Unit     string `json:"unit"`      // of weft and tcp
	Better   string `json:"better"`    // which way the ratio should go: higher or lower
	Rounds   int    `json:"rounds"`    // samples behind each median
	*Figures        // null fields are left out when Error is set
	Error    string `json:"error,omitempty"`
}

// Figures are an Entry's numbers.
type Figures struct {
	Weft     float64 `json:"weft"`
	WeftMin  float64 `json:"weft_min"`
	WeftMax  float64 `json:"weft_max"`
	TCP      float64 `json:"tcp"`
	TCPMin   float64 `json:"tcp_min"`
	TCPMax   float64 `json:"tcp_max"`
	Ratio    float64 `json:"ratio"`
	RatioMin float64 `json:"ratio_min"`
	RatioMax float64 `json:"ratio_max"`
	Spread   float64 `json:"spread"` // (ratio_max - ratio_min) / ratio

	// The baseline's second sample of a round to its first: how far the
	// machine alone moves a ratio.
	NoiseMin float64 `json:"noise_min"`
	NoiseMax float64 `json:"noise_max"`

	WeftP99 float64 `json:"weft_p99_ns,omitempty"` // of latency
	TCPP99  float64 `json:"tcp_p99_ns,omitempty"`
	WeftCPU float64 `json:"weft_cpu_ns_per_message,omitempty"` // both ends together
	TCPCPU  float64 `json:"tcp_cpu_ns_per_message,omitempty"`
}

// newDocument puts the results into their document.
func newDocument(r *Run, congestion string, all []Result) Document {
	d := Document{
		System: System{
			Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
			Congestion: congestion, Placed: r.Pin && len(allowedCPUs()) > 0,
			Rounds: r.Rounds, Sample: r.Sample.Seconds(),
		},
		Results: make([]Entry, 0, len(all)),
	}
	for _, x := range all {
		e := Entry{
			Metric: x.Metric, Op: x.Weft.Op, Size: x.Weft.Size, CRC: x.Weft.CRC,
			WeftDoes: x.Weft.how(), TCPDoes: x.TCP.how(),
			Unit: x.Metric.unit(), Better: x.Metric.better(), Rounds: r.Rounds,
		}
		if x.Err != nil {
			e.Error = x.Err.Error()
		} else {
			e.Figures = x.figures()
		}
		d.Results = append(d.Results, e)
	}
	return d
}

func (x Result) figures() *Figures {
	return &Figures{
		Weft: x.WeftFigure.Median, WeftMin: x.WeftFigure.Min, WeftMax: x.WeftFigure.Max,
		TCP: x.TCPFigure.Median, TCPMin: x.TCPFigure.Min, TCPMax: x.TCPFigure.Max,
		Ratio: x.Ratio.Median, RatioMin: x.Ratio.Min, RatioMax: x.Ratio.Max, Spread: x.Ratio.spread(),
		NoiseMin: x.Noise.Min, NoiseMax: x.Noise.Max,
		WeftP99: x.WeftP99, TCPP99: x.TCPP99, WeftCPU: x.WeftCPU, TCPCPU: x.TCPCPU,
	}
}

// write writes the document, indented.
func (d Document) write(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}
