// The JSON document for programs. Tables, pictures and the page are made from
// it, so that they can be made again.

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// A Document is what --json writes and --from reads.
type Document struct {
	System  System    `json:"system"`
	Missing []Missing `json:"missing,omitempty"` // peers that are left out
	Goals   []Mark    `json:"goals"`
	Results []Row     `json:"results"`
}

// A System says where and how the figures came about.
type System struct {
	Go         string   `json:"go"`
	OS         string   `json:"os"`
	Arch       string   `json:"arch"`
	CPUs       int      `json:"cpus"`
	Processor  string   `json:"processor,omitempty"`
	Kernel     string   `json:"kernel,omitempty"`
	Congestion string   `json:"congestion_control"` // of every socket; "" where the system does not say
	Placements []string `json:"placements"`         // what the rows' placements are
	Rounds     int      `json:"rounds"`
	Sample     float64  `json:"sample_seconds"`
	Repeated   int      `json:"repeated"` // rounds of groups taken again, whose baseline was outside 0.8 to 1.25 of its median
	Restless   int      `json:"restless"` // rounds that count, although it is
}

// A Row is one workload. Figures are medians over the rounds, in Unit; ratios
// are taken inside each round. With Error set there are no figures.
type Row struct {
	Work      string `json:"work"`
	Op        Op     `json:"op"`
	Size      int    `json:"size"` // octets of a message
	CRC       bool   `json:"crc"`  // CRC32C in each FPDU
	Placement string `json:"placement"`
	Peer      Peer   `json:"peer"`
	Metric    Metric `json:"metric"`
	Unit      string `json:"unit"`
	Better    string `json:"better"` // higher or lower
	Rounds    int    `json:"rounds"`
	*Figures         // null when Error is set
	Error     string `json:"error,omitempty"`
}

// Figures are a Row's numbers.
type Figures struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`

	// Ratios to RatioTo, which is plain TCP; absent where it does nothing like it.
	RatioTo  Peer    `json:"ratio_to,omitempty"`
	Ratio    float64 `json:"ratio,omitempty"`
	RatioMin float64 `json:"ratio_min,omitempty"`
	RatioMax float64 `json:"ratio_max,omitempty"`

	// Of a baseline: the second sample of a round to its first, which is how
	// far the machine alone moves a ratio.
	NoiseMin float64 `json:"noise_min,omitempty"`
	NoiseMax float64 `json:"noise_max,omitempty"`

	// Of latencies: percentiles of each sample, in Unit, medians over the rounds.
	P50  float64 `json:"p50,omitempty"`
	P90  float64 `json:"p90,omitempty"`
	P99  float64 `json:"p99,omitempty"`
	P999 float64 `json:"p999,omitempty"`

	CPU float64 `json:"cpu_ns_per_message,omitempty"` // processor time, both ends together
}

// A Mark is a target and its result: a ratio of Weft's row to another's, inside each
// round; or the figure itself, in Unit.
type Mark struct {
	Peer      Peer    `json:"peer"`
	Work      string  `json:"work"`
	Metric    Metric  `json:"metric"`
	Size      int     `json:"size"`
	CRC       bool    `json:"crc"`
	Placement string  `json:"placement"`
	Against   string  `json:"against,omitempty"`
	Unit      string  `json:"unit"` // ratio, or the metric's
	Better    string  `json:"better"`
	Median    float64 `json:"median"`
	Min       float64 `json:"min"`
	Max       float64 `json:"max"`
	Rounds    int     `json:"rounds"`
	Goal      float64 `json:"goal"`
	Aim       float64 `json:"aim,omitempty"`
	Verdict   Verdict `json:"verdict"`
	Short     float64 `json:"short,omitempty"` // what is missing of the goal, as a share of it
}

// newDocument puts what came out of a run into its document.
func newDocument(r *Run, allowed []int, congestion string, s *Samples) Document {
	d := Document{
		System: System{
			Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
			Processor: processor(), Kernel: kernel(), Congestion: congestion,
			Placements: placements(allowed, r.Pin), Rounds: r.Rounds, Sample: r.Sample.Seconds(),
			Repeated: s.Repeated, Restless: s.Restless,
		},
		Missing: r.Peers.Missing,
		Goals:   []Mark{},
		Results: []Row{},
	}
	where := func(w Workload) string { return place(w, allowed, r.Pin).Name }
	for _, x := range results(r.Groups, s) {
		row := newRow(x, where(x.Workload))
		row.Rounds = r.Rounds
		d.Results = append(d.Results, row)
	}
	for _, a := range attempts(r.Groups, s) {
		m := newMark(a, where(a.Of))
		m.Rounds = r.Rounds
		d.Goals = append(d.Goals, m)
	}
	return d
}

func newRow(x Result, placement string) Row {
	w := x.Workload
	row := Row{
		Work: w.work(), Op: w.Op, Size: w.Size, CRC: w.CRC, Placement: placement, Peer: w.Peer,
		Metric: x.Metric, Unit: x.Metric.unit(), Better: better(x.Metric),
	}
	if x.Err != nil {
		row.Error = x.Err.Error()
		return row
	}
	f := &Figures{
		Median: x.Figure.Median, Min: x.Figure.Min, Max: x.Figure.Max, CPU: x.CPU,
		NoiseMin: x.Noise.Min, NoiseMax: x.Noise.Max,
	}
	if x.Baseline != (Workload{}) {
		f.RatioTo, f.Ratio, f.RatioMin, f.RatioMax = x.Baseline.Peer, x.Ratio.Median, x.Ratio.Min, x.Ratio.Max
	}
	if x.Metric.latency() {
		for i, p := range []*float64{&f.P50, &f.P90, &f.P99, &f.P999} {
			*p = x.Metric.trip(x.Trips[i].Nanoseconds())
		}
	}
	row.Figures = f
	return row
}

func newMark(a Attempt, placement string) Mark {
	m := Mark{
		Peer: a.Of.Peer, Work: a.Of.work(), Metric: a.Metric, Size: a.Of.Size, CRC: a.Of.CRC, Placement: placement,
		Unit: "ratio", Better: better(a.Metric),
		Median: a.Figure.Median, Min: a.Figure.Min, Max: a.Figure.Max,
		Goal: a.Least, Aim: a.Aim, Verdict: a.Verdict, Short: a.Short,
	}
	if a.Against == (Workload{}) {
		m.Unit = a.Metric.unit()
	} else {
		m.Against = string(a.Against.Peer)
		if a.Against.Peer == a.Of.Peer {
			m.Against = a.Against.String()
		}
	}
	return m
}

func better(m Metric) string {
	if m.higherIsBetter() {
		return "higher"
	}
	return "lower"
}

// placements says what the names of placements mean on these processors.
func placements(allowed []int, pin bool) []string {
	polls, waits := Workload{Shape: PingPong, Polling: true}, Workload{Shape: PingPong}
	several := Workload{Shape: Stream, Connections: 2}
	var all []string
	for _, w := range []Workload{polls, waits, several} {
		p := place(w, allowed, pin)
		if p.Name == unplaced {
			return []string{"the scheduler's choice"}
		}
		all = append(all, fmt.Sprintf("%s: initiator on %v, target on %v", p.Name, p.Initiator, p.Target))
	}
	return all
}

// processor names the processor, if the system reports it.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// kernel is its release, if the system reports it.
func kernel() string {
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(release))
}

// failed says that a workload did.
func (d Document) failed() bool {
	for _, r := range d.Results {
		if r.Error != "" {
			return true
		}
	}
	return false
}

// write writes the document, indented.
func (d Document) write(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}

// readDocument reads what write has written.
func readDocument(name string) (d Document, err error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return d, fmt.Errorf("%s: %w", name, err)
	}
	return d, nil
}
