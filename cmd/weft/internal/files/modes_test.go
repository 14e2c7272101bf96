// Windows has no such modes.

//go:build !windows

package files

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAFileThatIsReplacedStaysAsOpenAsItWas(t *testing.T) {
	dir := tree(t, map[string]string{"new": "new", "old": "old", "link": "-> old"})
	if err := os.Chmod(filepath.Join(dir, "old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if failed, err := run(t, new(Copier), Local{}, Local{}, filepath.Join(dir, "link"), filepath.Join(dir, "new")); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	info, err := os.Stat(filepath.Join(dir, "old"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if got := listTree(t, dir); got["old"] != "new" || got["link"] != "-> old" {
		t.Errorf("left %q", got)
	}
}
