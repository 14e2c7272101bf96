package files

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// die ends an account as the end of its process does.
func (l *Leftovers) die() {
	l.own.list.Close()
	l.own.lock.Close()
}

// left is a part that a copy into dir has left, of whose account l is.
func left(t *testing.T, l *Leftovers, dir string) Place {
	t.Helper()
	c := &Copier{Leftovers: l}
	part, err := c.newPart(Place{Local{}, filepath.Join(dir, "file")})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(part.Path, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	return part
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestWhatAKilledCopyHasLeftGoesWithTheNext(t *testing.T) {
	account, dir := filepath.Join(t.TempDir(), "account"), t.TempDir()
	killed := OpenLeftovers(account)
	part := left(t, killed, dir)
	killed.die()

	next := OpenLeftovers(account)
	if got := next.Sweep(t.Context()); !slices.Equal(got, []Place{part}) {
		t.Errorf("removed %v, want %v", got, part)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("left %q", got)
	}
	if got := names(t, account); !slices.Equal(got, []string{dirLockName}) {
		t.Errorf("the account still has %q", got)
	}
}

func TestWhatACopyUnderWayWritesIsItsOwn(t *testing.T) {
	account, dir := filepath.Join(t.TempDir(), "account"), t.TempDir()
	other := OpenLeftovers(account)
	part := left(t, other, dir)
	one := OpenLeftovers(account)
	left(t, one, dir)
	if got := one.Sweep(t.Context()); len(got) != 0 || len(names(t, dir)) != 2 {
		t.Errorf("removed %v", got)
	}
	// It was given up by its copy, and is still of its account.
	if err := other.Close(); err != nil || !slices.Equal(other.Left(), []Place{part}) {
		t.Errorf("%v, left %v", err, other.Left())
	}
	if got := one.Sweep(t.Context()); !slices.Equal(got, []Place{part}) {
		t.Errorf("removed %v, want %v", got, part)
	}
}

func TestAFinishedCopyLeavesNoAccount(t *testing.T) {
	account := filepath.Join(t.TempDir(), "account")
	src, dst := tree(t, map[string]string{"a": "data", "b": "more"}), t.TempDir()
	if err := os.Symlink("a", filepath.Join(src, "link")); err != nil {
		t.Fatal(err)
	}
	l := OpenLeftovers(account)
	if failed, err := run(t, &Copier{Recursive: true, Leftovers: l}, Local{}, Local{}, dst, src); err != nil || len(failed) > 0 {
		t.Fatal(err, failed)
	}
	if !l.Kept() || len(l.Left()) > 0 {
		t.Errorf("kept %v, left %v", l.Kept(), l.Left())
	}
	if err := l.Close(); err != nil || !slices.Equal(names(t, account), []string{dirLockName}) {
		t.Errorf("%v, and the account has %q", err, names(t, account))
	}
}

// A refused copy leaves nothing, and leftovers that cannot be removed are reported at the end.
func TestWhatMayBeLeftIsKnown(t *testing.T) {
	for name, tt := range map[string]struct {
		to   *flawed
		left int
	}{
		"a file that was refused": {&flawed{refuses: true}, 0},
		"a part that was removed": {&flawed{fail: failing("rename", os.ErrPermission)}, 0},
		"a part that cannot be removed": {&flawed{fail: func(op, _ string) error {
			if op == "rename" || op == "remove" {
				return os.ErrPermission
			}
			return nil
		}}, 1},
	} {
		src, dst := tree(t, map[string]string{"file": "data"}), t.TempDir()
		l := OpenLeftovers(filepath.Join(t.TempDir(), "account"))
		if failed, err := run(t, &Copier{Leftovers: l}, Local{}, tt.to, dst, filepath.Join(src, "file")); err != nil || len(failed) != 1 {
			t.Errorf("%s: %v, %v", name, err, failed)
		}
		if got := l.Left(); len(got) != tt.left {
			t.Errorf("%s: left %v", name, got)
		}
		l.Close()
	}
}

func TestOnlyPartsAreRemovedWhateverAnAccountSays(t *testing.T) {
	account, dir := filepath.Join(t.TempDir(), "account"), t.TempDir()
	treasure := filepath.Join(dir, "treasure")
	directory := filepath.Join(dir, ".weft-0123456789ab.part")
	link := filepath.Join(dir, ".weft-ba9876543210.part")
	if err := os.WriteFile(treasure, []byte("gold"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(treasure, link); err != nil {
		t.Fatal(err)
	}
	killed := OpenLeftovers(account)
	for _, path := range []string{treasure, directory, link, filepath.Join(dir, ".weft-000000000000.part")} {
		killed.add(Place{Local{}, path})
	}
	killed.die()
	removed := OpenLeftovers(account).Sweep(t.Context())
	if want := []Place{{Local{}, link}}; !slices.Equal(removed, want) {
		t.Errorf("removed %v, want %v", removed, want)
	}
	if got, want := names(t, dir), []string{filepath.Base(directory), "treasure"}; !slices.Equal(got, want) {
		t.Errorf("there are %q, want %q", got, want)
	}
}

func TestWhatIsOnAServerWaitsForACopyThere(t *testing.T) {
	account := filepath.Join(t.TempDir(), "account")
	killed := OpenLeftovers(account)
	left(t, killed, t.TempDir())
	elsewhere := entry{Server: []byte("nfs://192.0.2.1/srv"), Export: []byte("/srv"), Path: []byte("/\xff/.weft-0123456789ab.part")}
	if err := killed.own.add(elsewhere); err != nil {
		t.Fatal(err)
	}
	killed.die()
	if got := OpenLeftovers(account).Sweep(t.Context()); len(got) != 1 {
		t.Errorf("removed %v", got)
	}
	kept := abandoned(account)
	if len(kept) != 1 {
		t.Fatalf("there are %d accounts", len(kept))
	}
	if got := kept[0].read(); len(got) != 1 || string(got[0].Path) != string(elsewhere.Path) {
		t.Errorf("kept %v", got)
	}
	kept[0].close(true)
}

func TestAnAccountIsKeptInAFolderOfOnesOwnAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("directories have no permissions there")
	}
	open, private := t.TempDir(), filepath.Join(t.TempDir(), "private")
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(private, link); err != nil {
		t.Fatal(err)
	}
	for dir, kept := range map[string]bool{open: false, link: false, private: true} {
		l := OpenLeftovers(dir)
		part := left(t, l, t.TempDir())
		if l.Kept() != kept || !slices.Equal(l.Left(), []Place{part}) {
			t.Errorf("%s: kept %v, want %v; left %v", dir, l.Kept(), kept, l.Left())
		}
		l.Close()
	}
}
