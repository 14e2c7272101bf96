package perf

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sampleReport has two sizes of two operations, and one of a single size.
func sampleReport() *Report {
	cfg := &Config{Address: "192.0.2.7:7471", Connections: 4, Depth: 256, Rounds: 3, CRC: []bool{true, false}}
	rep := newReport(cfg, System{Go: "go1.26", OS: "linux", Arch: "amd64", CPUs: 2, Congestion: "reno"}, 3, 2*time.Second)
	add := func(op Op, size int, crc bool, rate, tcp float64) {
		g := newGroup(op, size, []bool{crc})
		s := g.rdma[crc]
		s.rate, s.verified = []float64{rate / 2, rate, rate * 3}, 16
		s.latency = []Latency{
			{P50: 3000, P90: 4000, P99: 45e6, P999: 46e6, Max: 47e6},
			{P50: 1000, P90: 1500, P99: 4.5e6, P999: 5e6, Max: 5e6},
			{P50: 2000, P90: 2500, P99: 5e6, P999: 6e6, Max: 7e6},
		}
		g.tcp.rate, g.tcp.latency = []float64{tcp, tcp, tcp}, []Latency{{P50: 3700, P90: 3800, P99: 1e9, P999: 2e9, Max: 3e9}}
		for range 30 {
			s.trips.add(2000)
			g.tcp.trips.add(3700)
		}
		s.trips.add(47e6)
		rep.Results = append(rep.Results, newResult(cfg, g, crc))
	}
	add(Write, 64, true, 1.25e9, 25e6)
	add(Write, 1<<20, true, 7.5e9, 10e9)
	add(Write, 1<<20, false, 9e9, 10e9)
	add(Send, 64, true, 0.64e9, 25e6)
	add(FetchAdd, 8, true, 640, 3.2e6)
	return rep
}

func TestTableShowsFiguresWithThreeDigits(t *testing.T) {
	var b bytes.Buffer
	if err := sampleReport().WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	want := `go1.26, linux/amd64, 2 CPUs, congestion control reno, 4 connections, median of 3 rounds

OPERATION    SIZE  CRC     GB/s    MSG/s   TCP GB/s    MSG/s   RATIO
write        64 B   on     1.25   19.5 M     0.0250    391 k    50.0
write       1 MiB   on     7.50   7.15 k       10.0   9.54 k   0.750
write       1 MiB  off     9.00   8.58 k       10.0   9.54 k   0.900

send         64 B   on    0.640   10.0 M     0.0250    391 k    25.6

fetchadd      8 B   on   0.0000     80.0     0.0032    400 k  0.0002

GB/s: 10^9 bytes of payload a second. RATIO: GB/s of RDMA to GB/s of plain TCP.
The receiving end has verified the data of every operation.

OPERATION    SIZE  CRC      P50      P90      P99    P99.9      MAX   TCP P50      P90      P99    P99.9      MAX
write        64 B   on  2.00 us  2.50 us  5.00 ms  6.00 ms  47.0 ms   3.70 us  3.80 us   1.00 s   2.00 s   3.00 s
write       1 MiB   on  2.00 us  2.50 us  5.00 ms  6.00 ms  47.0 ms   3.70 us  3.80 us   1.00 s   2.00 s   3.00 s
write       1 MiB  off  2.00 us  2.50 us  5.00 ms  6.00 ms  47.0 ms   3.70 us  3.80 us   1.00 s   2.00 s   3.00 s

send         64 B   on  2.00 us  2.50 us  5.00 ms  6.00 ms  47.0 ms   3.70 us  3.80 us   1.00 s   2.00 s   3.00 s

fetchadd      8 B   on  2.00 us  2.50 us  5.00 ms  6.00 ms  47.0 ms   3.70 us  3.80 us   1.00 s   2.00 s   3.00 s
`
	got, _, _ := strings.Cut(b.String(), "\nLatency: ")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestRatioIsThatOfTheTwoMediansAndItsSpreadThatOfTheRounds(t *testing.T) {
	r := sampleReport().Results[1]
	if r.Ratio != 0.75 || r.RatioMin != 0.375 || r.RatioMax != 2.25 {
		t.Errorf("ratio %v, %v to %v; want 0.75, 0.375 to 2.25", r.Ratio, r.RatioMin, r.RatioMax)
	}
}

func TestJSONHasTheMembersThatProgramsCountOn(t *testing.T) {
	b, err := json.Marshal(sampleReport())
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Units    map[string]string `json:"units"`
		System   map[string]any    `json:"system"`
		Settings map[string]any    `json:"settings"`
		Results  []map[string]any  `json:"results"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for i, r := range doc.Results {
		if _, ok := r["op"].(string); !ok {
			t.Errorf("result %d: op is %v", i, r["op"])
		}
		if _, ok := r["crc"].(bool); !ok {
			t.Errorf("result %d: crc is %v", i, r["crc"])
		}
		for _, name := range []string{"size", "bytes_per_second", "messages_per_second", "latency_p50_ns", "latency_p90_ns", "latency_p99_ns", "latency_p99_9_ns", "latency_max_ns", "tcp_latency_p99_9_ns", "tcp_bytes_per_second", "ratio"} {
			if n, ok := r[name].(float64); !ok || n <= 0 || math.IsInf(n, 0) {
				t.Errorf("result %d: %s is %v", i, name, r[name])
			}
			if doc.Units[name] == "" {
				t.Errorf("the unit of %s is missing", name)
			}
		}
	}
	buckets, _ := doc.Results[0]["latency_histogram"].([]any)
	want := []any{
		map[string]any{"from_ns": 1920.0, "to_ns": 2048.0, "count": 30.0},
		map[string]any{"from_ns": 46137344.0, "to_ns": 50331648.0, "count": 1.0},
	}
	if diff := cmp.Diff(want, buckets); diff != "" {
		t.Errorf("histogram (-want +got):\n%s", diff)
	}
	for _, name := range []string{"go", "cpus", "congestion"} {
		if doc.System[name] == nil {
			t.Errorf("system lacks %s", name)
		}
	}
}
