package promql

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// expressions returns those of the dashboard, with what Grafana replaces, and of the alerts.
func expressions(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for _, q := range p.Targets {
			all = append(all, strings.ReplaceAll(q.Expr, "$__rate_interval", "5m"))
		}
	}
	page, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^ +expr: (.*)$`).FindAllSubmatch(page, -1) {
		all = append(all, string(m[1]))
	}
	return all
}

func TestExpressionsAreOnesOfPrometheus(t *testing.T) {
	all := expressions(t)
	if len(all) < 20 {
		t.Errorf("there are %d expressions", len(all))
	}
	p := parser.NewParser(parser.Options{})
	for _, e := range all {
		if _, err := p.ParseExpr(e); err != nil {
			t.Errorf("%s: %v", e, err)
		}
	}
}
