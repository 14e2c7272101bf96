package observe

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

const docs = "../../../../docs/"

var update = flag.Bool("update", false, "write the table of metrics in docs/operate.md")

// stream returns an RNIC with a queue pair.
func stream(t *testing.T) (*verbs.RNIC, *verbs.QP) {
	t.Helper()
	rnic, err := verbs.Open(verbs.Config{Limits: verbs.Limits{PDs: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rnic.Close() })
	pd, err := rnic.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rnic.AllocPD(); err == nil {
		t.Fatal("the limit does not hold")
	}
	cq, err := rnic.CreateCQ(verbs.CQConfig{Entries: 4})
	if err != nil {
		t.Fatal(err)
	}
	qp, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq})
	if err != nil {
		t.Fatal(err)
	}
	return rnic, qp
}

// everything is a scrape in which every metric has a value: of two RNICs, one of which
// ended their stream by a Terminate message.
func everything(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	o := full(t)
	a, x := stream(t)
	b, y := stream(t)
	o.AddRNIC(a)
	o.AddRNIC(b)
	ours, theirs := iwarptest.Pipe()
	done := make(chan error, 1)
	go func() {
		req, err := cm.Receive(t.Context(), theirs, mpa.Config{})
		if err == nil {
			_, err = req.Accept(t.Context(), y, cm.Params{})
		}
		done <- err
	}()
	if _, err := cm.Connect(t.Context(), x, ours, cm.Params{}); err != nil {
		t.Fatal(err)
	}
	if err := nettest.Await(t, done); err != nil {
		t.Fatal(err)
	}
	if err := x.Terminate(); err != nil {
		t.Fatal(err)
	}
	for _, q := range []*verbs.QP{x, y} {
		if _, err := q.WaitState(t.Context(), verbs.Error); err != nil {
			t.Fatal(err)
		}
	}
	return scrape(t, serve(t, o, "127.0.0.1:0"))
}

// table is the table of the metrics of docs/operate.md.
func table(families map[string]*dto.MetricFamily) string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | what it is |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if !strings.HasPrefix(name, "weft_") {
			continue
		}
		f := families[name]
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp())
	}
	return b.String()
}

var tableOf = regexp.MustCompile(`(?s)\| metric \| type .*?\n\n`)

// TestThePageHasEveryMetric compares the table of docs/operate.md with a scrape. With
// -update it writes the table.
func TestThePageHasEveryMetric(t *testing.T) {
	page, err := os.ReadFile(docs + "operate.md")
	if err != nil {
		t.Fatal(err)
	}
	want := table(everything(t)) + "\n"
	if got := string(tableOf.Find(page)); got == want {
		return
	} else if !*update {
		t.Fatalf("docs/operate.md has another table: run go test -update. It should be\n%s", want)
	}
	page = tableOf.ReplaceAllLiteral(page, []byte(want))
	if err := os.WriteFile(docs+"operate.md", page, 0o644); err != nil {
		t.Fatal(err)
	}
}

var (
	metricName = regexp.MustCompile(`\bweft_[a-z_]+`)
	labelName  = regexp.MustCompile(`\b([a-z_]+)(?:=~|=)"|by \(([a-z_, ]+)\)|\{\{([a-z_]+)\}\}`)
)

// TestTheDashboardQueriesWhatThereIs looks for every metric and label of the dashboard, and of
// the alerts, in a scrape. Module tools/promql parses the expressions.
func TestTheDashboardQueriesWhatThereIs(t *testing.T) {
	families := everything(t)
	text, err := os.ReadFile(docs + "grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Title, UID    string
		SchemaVersion int
		Panels        []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr, LegendFormat, RefID string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.Title == "" || dashboard.UID == "" || dashboard.SchemaVersion == 0 || len(dashboard.Panels) < 10 {
		t.Fatalf("the dashboard is %+v", dashboard)
	}
	ids := make(map[int]bool)
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Title == "" || len(p.Targets) == 0 || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q is malformed", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, q := range p.Targets {
			checkQuery(t, families, q.Expr, q.LegendFormat)
		}
	}
	page, err := os.ReadFile(docs + "operate.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^ +expr: (.*)$`).FindAllSubmatch(page, -1) {
		checkQuery(t, families, string(m[1]), "")
	}
}

// checkQuery looks for the metrics and labels of a query.
func checkQuery(t *testing.T, families map[string]*dto.MetricFamily, expr, legend string) {
	t.Helper()
	known := map[string]bool{"job": true, "instance": true, "le": true} // of Prometheus itself
	names := metricName.FindAllString(expr, -1)
	if len(names) == 0 {
		t.Errorf("%s has no metric", expr)
	}
	for _, name := range names {
		f := families[name]
		if base, ok := strings.CutSuffix(strings.TrimSuffix(name, "_bucket"), "_count"); f == nil && (ok || base != name) {
			f = families[base]
		}
		if f == nil {
			t.Errorf("%s: no scrape has %s", expr, name)
			continue
		}
		for _, l := range f.GetMetric()[0].GetLabel() {
			known[l.GetName()] = true
		}
	}
	for _, m := range labelName.FindAllStringSubmatch(expr+" "+legend, -1) {
		for name := range strings.SplitSeq(m[1]+m[2]+m[3], ", ") {
			if !known[name] {
				t.Errorf("%s, %q: the metric has no label %s", expr, legend, name)
			}
		}
	}
}
