//go:build unix

package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/internal/rpctest"
)

func TestSymbolicLinksAtTheDestinationAreWrittenThrough(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		for name, tt := range map[string]struct {
			there     map[string]string // at the destination
			source    string
			recursive bool
			changed   string // the file that is written to
			says      string // or what goes wrong
		}{
			"a named one":                    {there: map[string]string{"file": "-> other", "other": "old"}, source: "file", changed: "other"},
			"a chain":                        {there: map[string]string{"file": "-> d/b", "d/b": "-> ../c", "c": "old"}, source: "file", changed: "c"},
			"one within":                     {there: map[string]string{"d/file": "-> e/other", "d/e/other": "old"}, source: "d", recursive: true, changed: "d/e/other"},
			"one within, from the root":      {there: map[string]string{"d/file": "-> ../other", "other": "old"}, source: "d", recursive: true, changed: "other"},
			"one to nothing":                 {there: map[string]string{"file": "-> nothing"}, source: "file", says: "leads to nothing"},
			"one within to nothing":          {there: map[string]string{"d/file": "-> nothing"}, source: "d", recursive: true, says: "leads to nothing"},
			"one to a directory":             {there: map[string]string{"file": "-> d", "d/": ""}, source: "file", says: "is a directory"},
			"one in a circle":                {there: map[string]string{"file": "-> other", "other": "-> file"}, source: "file", says: "too many"},
			"one for a directory, within it": {there: map[string]string{"d": "-> other", "other/": ""}, source: "d", recursive: true, says: "is not a directory"},
		} {
			t.Run(name, func(t *testing.T) {
				empty(t, w.dst)
				empty(t, w.src)
				if err := errors.Join(os.Mkdir(filepath.Join(w.src, "d"), 0o755), os.WriteFile(filepath.Join(w.src, "d/file"), []byte("new"), 0o644), os.WriteFile(filepath.Join(w.src, "file"), []byte("new"), 0o644)); err != nil {
					t.Fatal(err)
				}
				fill(t, w.dst, tt.there)
				failed := w.copy(t, &Copier{Recursive: tt.recursive}, tt.source)
				if tt.says != "" {
					if len(failed) != 1 || !strings.Contains(failed[0].Error(), tt.says) {
						t.Errorf("%v, want an error with %q", failed, tt.says)
					}
				} else if failed != nil {
					t.Errorf("%v", failed)
				} else {
					tt.there[tt.changed] = "new"
				}
				got := listTree(t, w.dst)
				for name, content := range tt.there {
					if got[name] != content {
						t.Errorf("%s is %q, want %q", name, got[name], content)
					}
				}
			})
		}
	})
}

// On a server, too, what a directory is copied to is not left by links.
func TestLinksOutOfTheDestinationAreNotWrittenThrough(t *testing.T) {
	src := tree(t, map[string]string{"d/file": "new", "d/up": "new", "d/root": "new"})
	there := map[string]string{
		"other": "old", "sub/d/file": "-> ../../other", "sub/d/up": "-> ../../../../../../../etc/passwd", "sub/d/root": "-> /other",
	}
	dst := tree(t, there)
	to := serve(t, dst, everything, rpctest.OverTCP, nil)
	failed, err := run(t, &Copier{Recursive: true}, Local{}, to, "/sub", filepath.Join(src, "d"))
	if err != nil || len(failed) != 3 {
		t.Errorf("%v, %v", err, failed)
	}
	for _, err := range failed {
		if !strings.Contains(err.Error(), "leads out") {
			t.Error(err)
		}
	}
	got := listTree(t, dst)
	for name, content := range there {
		if got[name] != content {
			t.Errorf("%s is %q", name, got[name])
		}
	}
}

// Where a shell stands in a directory by a symbolic link, paths say so.
func TestLinksWithinTheDestinationAreKnownByTheirRealPath(t *testing.T) {
	base := tree(t, map[string]string{"real/src/file": "new", "real/dst/file": "-> other", "real/dst/other": "old", "link": "-> real"})
	real, err := filepath.EvalSymlinks(filepath.Join(base, "real"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(base, "link"))
	t.Setenv("PWD", filepath.Join(base, "link"))
	for _, target := range []string{"other", filepath.Join(real, "dst/other"), filepath.Join(base, "link/dst/other")} {
		if err := errors.Join(os.Remove("dst/file"), os.Symlink(target, "dst/file"), os.WriteFile("dst/other", []byte("old"), 0o644)); err != nil {
			t.Fatal(err)
		}
		for _, dst := range []string{"dst", filepath.Join(real, "dst"), filepath.Join(base, "link/dst")} {
			if failed, err := run(t, &Copier{Recursive: true}, Local{}, Local{}, dst, "src/."); err != nil || failed != nil {
				t.Errorf("through %s to %s: %v, %v", target, dst, err, failed)
			}
		}
		if got := listTree(t, real)["dst/other"]; got != "new" {
			t.Errorf("through %s: %q", target, got)
		}
	}
}

func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fill is tree in a directory that there is.
func fill(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	made := tree(t, files)
	entries, err := os.ReadDir(made)
	for _, e := range entries {
		err = errors.Join(err, os.Rename(filepath.Join(made, e.Name()), filepath.Join(dir, e.Name())))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What has no path of its own, such as the pipe behind /dev/stdout, is written to, and
// the link that leads there stays.
func TestAPipeBehindALinkIsWrittenTo(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	link := fmt.Sprintf("/proc/self/fd/%d", w.Fd())
	if _, err := os.Lstat(link); err != nil {
		link = fmt.Sprintf("/dev/fd/%d", w.Fd())
	}
	if _, err := os.Stat(link); err != nil && runtime.GOOS == "linux" {
		t.Fatal(err)
	} else if err != nil {
		t.Skipf("no files that are pipes of this process: %v", err)
	}
	dir := tree(t, map[string]string{"file": "data", "link": "-> " + link})
	if failed, err := run(t, new(Copier), Local{}, Local{}, filepath.Join(dir, "link"), filepath.Join(dir, "file")); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	got := make([]byte, 10)
	n, err := r.Read(got)
	if string(got[:n]) != "data" || listTree(t, dir)["link"] != "-> "+link {
		t.Errorf("%q, %v", got[:n], err)
	}
}
