//go:build !windows

package files

// Windows has no such modes.

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
	if err, failed := run(t, new(Copier), Local{}, Local{}, filepath.Join(dir, "link"), filepath.Join(dir, "new")); err != nil || failed != nil {
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

// The owner of a copy is another, to whose rights a file of a server must not help
// everybody.
func TestCopiesGiveNobodyTheRightsOfTheirOwner(t *testing.T) {
	src, dst := tree(t, map[string]string{"file": "data"}), tree(t, map[string]string{"old": "old"})
	give := os.ModeSetuid | os.ModeSetgid
	for _, path := range []string{filepath.Join(src, "file"), filepath.Join(dst, "old")} {
		if err := os.Chmod(path, 0o755|give); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"new", "old"} {
		to := filepath.Join(dst, name)
		if err, failed := run(t, &Copier{Preserve: name == "new"}, Local{}, Local{}, to, filepath.Join(src, "file")); err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		if info, err := os.Stat(to); err != nil || info.Mode() != 0o755 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}
