// The tests that hold the repository itself to its tables.

package conformance

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// audit draws up the account of this repository.
func audit(t *testing.T) (a *Audit, root string) {
	t.Helper()
	root, err := Root(".")
	if err != nil {
		t.Fatal(err)
	}
	if a, err = New(root); err != nil {
		t.Fatal(err)
	}
	return a, root
}

// TestEveryBindingRequirementIsClaimedOrExcluded is what its rows ask for: that
// each security requirement, those of RFC 5042 among them, has a test or a stated
// stance.
//
// Claims: R-8.1-1 P-11-5 P8166-8.1-2
func TestEveryBindingRequirementIsClaimedOrExcluded(t *testing.T) {
	a, _ := audit(t)
	if len(a.Problems) == 0 {
		return
	}
	lines := make([]string, len(a.Problems))
	for i, p := range a.Problems {
		lines[i] = p.String()
	}
	t.Errorf("%d problems in the account of the requirements. A test claims a row by a last line \"// Claims: <id>\" in its doc comment; a row that nothing here could break goes into conformance/excluded.tsv with the reason.\n%s",
		len(lines), strings.Join(lines, "\n"))
}

func TestThePageIsUpToDate(t *testing.T) {
	a, root := audit(t)
	pages := a.Pages()
	for page, want := range pages {
		got, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
		if err != nil {
			t.Error(err)
		}
		// A checkout may have changed the line ends.
		if got = bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")); !bytes.Equal(got, want) {
			t.Errorf("%s is stale: run go generate ./conformance", page)
		}
	}
	entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(PagesPath)))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, ok := pages[path.Join(PagesPath, e.Name())]; !ok {
			t.Errorf("%s has %s, which is no page of the report: run go generate ./conformance", PagesPath, e.Name())
		}
	}
}
