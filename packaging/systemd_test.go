package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// analyze returns the path of systemd-analyze.
func analyze(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze judges the units, and is not here: apt-get install systemd")
	}
	return path
}

// units are copies of the units whose programs exist on this machine.
func units(t *testing.T, pattern string) (copies []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("systemd", pattern))
	if err != nil || len(all) == 0 {
		t.Fatalf("there are no units: %v", err)
	}
	dir := t.TempDir()
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(b), "ExecStart=/usr/bin/weft ", "ExecStart=/bin/true ")
		copied := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(copied, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, copied)
	}
	return copies
}

func TestUnitsHaveNoErrors(t *testing.T) {
	tool := analyze(t)
	out, err := exec.Command(tool, append([]string{"verify", "--man=no"}, units(t, "*.*")...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

func TestUnitsExposeLittle(t *testing.T) {
	tool := analyze(t)
	limits := map[string]float64{"weft-serve.service": 1.5, "weft-serve-root.service": 2.8, "weft-gateway.service": 1.6}
	overall := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+) `)
	for _, unit := range units(t, "*.service") {
		name := filepath.Base(unit)
		out, err := exec.Command(tool, "security", "--offline=true", "--no-pager", unit).CombinedOutput()
		found := overall.FindSubmatch(out)
		if err != nil || found == nil {
			t.Errorf("%s: %v\n%s", name, err, out)
			continue
		}
		level, err := strconv.ParseFloat(string(found[1]), 64)
		if limit := limits[name]; err != nil || level >= limit {
			t.Errorf("%s: exposure %s, want less than %v\n%s", name, found[1], limit, out)
		}
	}
}

// The file is in the packages, so the unit can start as it is.
func TestTheServerStartsWithTheFileThatIsInstalled(t *testing.T) {
	unit, err := os.ReadFile(filepath.Join("systemd", "weft-serve.service"))
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`(?m)^Environment="WEFT_SERVE=--config /etc/weft/(\S+)"$`).FindSubmatch(unit)
	if name == nil {
		t.Fatal("the unit names no configuration file")
	}
	if _, err := os.Stat(filepath.Join("etc", string(name[1]))); err != nil {
		t.Error(err)
	}
}
