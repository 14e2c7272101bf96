package confine

import (
	"os"
	"path/filepath"
	"testing"
)

func look(t *testing.T, rules ...Rule) *Rules {
	t.Helper()
	r, err := Look(rules)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mkdir(t *testing.T, path ...string) string {
	t.Helper()
	dir := filepath.Join(path...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRulesPermitWhatIsBelowAndLess(t *testing.T) {
	dir := t.TempDir()
	a, b, ab := mkdir(t, dir, "a"), mkdir(t, dir, "b"), mkdir(t, dir, "a", "b")
	like := mkdir(t, dir, "ab")
	for _, tt := range []struct {
		name      string
		have, ask []Rule
		want      bool
	}{
		{"the same", []Rule{{a, Read}}, []Rule{{a, Read}}, true},
		{"nothing", []Rule{{a, Read}}, nil, true},
		{"fewer", []Rule{{a, Read}, {b, Change}}, []Rule{{b, Change}}, true},
		{"below", []Rule{{a, Change}}, []Rule{{ab, Change}}, true},
		{"less", []Rule{{a, Change}}, []Rule{{ab, Read}}, true},
		{"more", []Rule{{a, Read}}, []Rule{{a, Change}}, false},
		{"another", []Rule{{a, Read}}, []Rule{{a, Read}, {b, Read}}, false},
		{"above", []Rule{{ab, Read}}, []Rule{{a, Read}}, false},
		{"a name that begins alike", []Rule{{a, Read}}, []Rule{{like, Read}}, false},
		{"change does not execute", []Rule{{a, Change}}, []Rule{{a, Execute}}, false},
		{"execute reads", []Rule{{a, Execute}}, []Rule{{ab, Read}}, true},
		{"execute does not change", []Rule{{a, Execute}}, []Rule{{ab, Change}}, false},
	} {
		if got := look(t, tt.have...).Permits(look(t, tt.ask...)); got != tt.want {
			t.Errorf("%s: permitted %v", tt.name, got)
		}
	}
}

func TestADirectoryThatWasReplacedIsAnotherOne(t *testing.T) {
	dir := t.TempDir()
	a, below := mkdir(t, dir, "a"), mkdir(t, dir, "a", "b")
	have := look(t, Rule{a, Read})
	if err := os.Rename(a, filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	mkdir(t, below)
	for _, path := range []string{a, below} {
		if have.Permits(look(t, Rule{path, Read})) {
			t.Errorf("%s is permitted, and was replaced", path)
		}
	}
}

func TestWhatDoesNotExistIsLeftOutUnlessNeeded(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	rules := []Rule{{gone, Read}, {t.TempDir(), Change}}
	r, err := Look(rules)
	if err != nil || len(r.places) != 1 {
		t.Errorf("%v, %v", r, err)
	}
	if _, err := Look(rules, gone); !os.IsNotExist(err) {
		t.Errorf("%v, want that it does not exist", err)
	}
}
