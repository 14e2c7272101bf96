package dropin

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFolderOfOthersIsNotUsed(t *testing.T) {
	for _, c := range []struct {
		name          string
		around, inner fs.FileMode
		safe          bool
	}{
		{"the user's", 0o755, 0o700, true},
		{"anybody's, around", 0o777, 0o700, false},
		{"anybody's but sticky, around", 0o777 | fs.ModeSticky, 0o700, true},
		{"anybody's", 0o755, 0o777, false},
		{"anybody's but sticky", 0o755, 0o777 | fs.ModeSticky, false},
	} {
		around := filepath.Join(t.TempDir(), "around")
		dir := filepath.Join(around, "inner")
		if err := Private(dir); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chmod(dir, c.inner), os.Chmod(around, c.around)); err != nil {
			t.Fatal(err)
		}
		var unsafe *UnsafeError
		err := Private(dir)
		if (err == nil) != c.safe || (err != nil && !errors.As(err, &unsafe)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestAFolderThatIsMadeIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := Private(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestALibraryIsNotTakenFromACacheOfOthers(t *testing.T) {
	b := Builder{Source: t.TempDir(), Cache: t.TempDir(), Say: t.Logf}
	print, err := fingerprint(b.Source)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		write(t, filepath.Join(b.Cache, print, name), "")
	}
	if err := os.Chmod(b.Cache, 0o777); err != nil {
		t.Fatal(err)
	}
	var unsafe *UnsafeError
	if dir, err := b.Build(t.Context()); !errors.As(err, &unsafe) {
		t.Errorf("%q, %v", dir, err)
	}
}

func TestACacheThatCannotBeWrittenIsSaidWithWhatToSet(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "file"), "")
	b := Builder{Source: t.TempDir(), Cache: filepath.Join(file, "dropin"), Say: t.Logf}
	_, build := b.Build(t.Context())
	_, view := ViewFolder(file)
	for _, err := range []error{build, view, elsewhere(writable(filepath.Join(t.TempDir(), "none")))} {
		if err == nil || !strings.Contains(err.Error(), "set XDG_CACHE_HOME") {
			t.Errorf("%v", err)
		}
	}
}
