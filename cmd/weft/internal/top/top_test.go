package top

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// parse makes a sample of the text of a scrape.
func parse(t *testing.T, text string, at time.Time) *Sample {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	f, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return sampleOf(f, at)
}

const build = "# TYPE weft_build_info gauge\nweft_build_info{version=\"1\"} 1\n# TYPE weft_ready gauge\nweft_ready 1\n"

func latencies(below1ms, below10ms, all string) string {
	const l = `program="nfs",version="3",procedure="READ",transport="rdma"`
	return build + "# TYPE weft_rpc_duration_seconds histogram\n" +
		"weft_rpc_duration_seconds_bucket{" + l + `,le="0.001"} ` + below1ms + "\n" +
		"weft_rpc_duration_seconds_bucket{" + l + `,le="0.01"} ` + below10ms + "\n" +
		"weft_rpc_duration_seconds_bucket{" + l + `,le="+Inf"} ` + all + "\n" +
		"weft_rpc_duration_seconds_sum{" + l + "} 1\nweft_rpc_duration_seconds_count{" + l + "} " + all + "\n"
}

func TestRatesAndLatenciesAreThoseOfTheInterval(t *testing.T) {
	at := time.Now()
	prev := parse(t, latencies("100", "100", "100"), at)
	cur := parse(t, latencies("100", "300", "300"), at.Add(2*time.Second))
	all := procedures(prev, cur)
	if len(all) != 1 || all[0].name != "nfs3 READ" || all[0].rate != 100 || all[0].calls != 300 {
		t.Fatalf("got %+v", all)
	}
	if p := all[0]; math.Abs(p.p50-0.0055) > 1e-9 || math.Abs(p.p99-0.00991) > 1e-9 {
		t.Errorf("the quantiles are %v and %v, want 0.0055 and 0.00991", p.p50, p.p99)
	}
	restarted := parse(t, latencies("10", "10", "10"), at.Add(4*time.Second))
	if all := procedures(cur, restarted); all[0].rate != 5 {
		t.Errorf("after a restart the rate is %v, want 5", all[0].rate)
	}
}

func TestOtherMetricsAreNotTakenForOurs(t *testing.T) {
	if s := parse(t, "# TYPE up gauge\nup 1\n", time.Now()); s != nil {
		t.Errorf("got %+v", s)
	}
}

// What another process calls itself does not reach the terminal as control characters.
func TestTheScreenIsCutAndClean(t *testing.T) {
	s := parse(t, build, time.Now())
	for range 50 {
		s.Connections = append(s.Connections, Connection{Transport: "tcp", Peer: "\x1b[2J" + strings.Repeat("ü", 100)})
	}
	text := Render("x", s, s, 40, 10)
	if strings.Contains(text, "\x1b") {
		t.Error("an escape sequence passes")
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != 10 {
		t.Errorf("%d lines, want 10", len(lines))
	}
	for _, line := range lines {
		if n := len([]rune(line)); n > 40 {
			t.Errorf("a line has %d columns: %q", n, line)
		}
	}
}

func TestAddressesOfSources(t *testing.T) {
	for addr, want := range map[string]string{
		":9469": "http://127.0.0.1:9469", "h:1": "http://h:1", "http://h:1/metrics": "http://h:1",
		"unix:/run/s": "http://weft", "/run/s": "http://weft", "./s": "http://weft",
	} {
		if s := NewSource(addr); s.base != want {
			t.Errorf("%s: %s, want %s", addr, s.base, want)
		}
	}
}
