package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/client"
)

// A flawed tree is this machine's files, with what goes wrong to order.
type flawed struct {
	Local
	fail func(op, name string) error // before each
	data func(name string) io.Reader // what is read in place of the file; nil: it
	list func(name string) []string  // names in place of a directory's; nil: them

	refuses bool // makes and removes nothing, as what is read-only
}

func (f *flawed) check(op, name string) error {
	if f.fail == nil {
		return nil
	}
	return f.fail(op, filepath.Base(name))
}

func (f *flawed) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := f.check("open", name); err != nil {
		return nil, err
	}
	if f.data != nil {
		if r := f.data(filepath.Base(name)); r != nil {
			return io.NopCloser(r), nil
		}
	}
	return f.Local.Open(ctx, name)
}

func (f *flawed) Create(ctx context.Context, name string, perm fs.FileMode) (Output, error) {
	if f.refuses {
		return nil, nfs.ErrROFS
	}
	out, err := f.Local.Create(ctx, name, perm)
	if err := f.check("create", name); err != nil {
		return nil, err
	}
	return out, err
}

func (f *flawed) Rename(ctx context.Context, from, to string) error {
	if err := f.check("rename", to); err != nil {
		return err
	}
	return f.Local.Rename(ctx, from, to)
}

func (f *flawed) Remove(ctx context.Context, name string) error {
	if err := errors.Join(ctx.Err(), f.check("remove", name)); err != nil { // a server is not asked after the end
		return err
	}
	if f.refuses {
		return nfs.ErrROFS
	}
	return f.Local.Remove(ctx, name)
}

func (f *flawed) Mkdir(ctx context.Context, name string, perm fs.FileMode) error {
	if err := f.check("mkdir", name); err != nil {
		return err
	}
	return f.Local.Mkdir(ctx, name, perm)
}

func (f *flawed) ReadDir(ctx context.Context, name string) ([]*Info, error) {
	if f.list == nil {
		return f.Local.ReadDir(ctx, name)
	}
	var infos []*Info
	for _, n := range f.list(name) {
		infos = append(infos, &Info{Name: n})
	}
	return infos, nil
}

// tree makes files of a map from paths to contents; a path with a slash at its
// end is a directory, contents with an arrow are a symbolic link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			switch target, link := strings.CutPrefix(content, "-> "); {
			case strings.HasSuffix(name, "/"):
				err = os.MkdirAll(path, 0o755)
			case link:
				err = os.Symlink(target, path)
			default:
				err = os.WriteFile(path, []byte(content), 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// listTree is the reverse of tree.
func listTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator)))
		switch {
		case d.IsDir():
			if entries, _ := os.ReadDir(path); len(entries) == 0 {
				files[name+"/"] = ""
			}
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			files[name] = "-> " + target
			return err
		default:
			content, err := os.ReadFile(path)
			files[name] = string(content)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// run copies and returns what went wrong.
func run(t *testing.T, c *Copier, from, to Tree, dst string, sources ...string) (failed []error, err error) {
	t.Helper()
	c.Failed = func(err error) { failed = append(failed, err) }
	var places []Place
	for _, s := range sources {
		places = append(places, Place{from, s})
	}
	plan, err := c.Plan(t.Context(), places, Place{to, dst})
	if err == nil {
		err = c.Run(t.Context(), plan)
	}
	if c.Failures() != len(failed) {
		t.Errorf("%d failures were counted, %d reported", c.Failures(), len(failed))
	}
	return failed, err
}

func TestFoldersAreCopiedWithAllThatIsInThem(t *testing.T) {
	want := map[string]string{"a": "1", "d/e/f": "2", "d/empty/": "", "d/link": "-> ../a", "dangling": "-> nowhere", ".h": "3"}
	src := tree(t, want)
	into := t.TempDir()
	for _, tt := range []struct{ src, dst, at string }{
		{src, into, filepath.Join(into, filepath.Base(src))},
		{src, filepath.Join(into, "new"), filepath.Join(into, "new")},
		{src, filepath.Join(into, "newer") + "/", filepath.Join(into, "newer")},
	} {
		for range 2 { // over itself, the second time
			c := &Copier{Recursive: true, Verify: true}
			if tt.at == tt.dst || tt.at+"/" == tt.dst {
				os.RemoveAll(tt.at)
			}
			if failed, err := run(t, c, Local{}, Local{}, tt.dst, tt.src); err != nil || failed != nil {
				t.Fatal(err, failed)
			}
			got := listTree(t, tt.at)
			if len(got) != len(want) {
				t.Errorf("%s: got %q", tt.dst, got)
			}
			for name, content := range want {
				if got[name] != content {
					t.Errorf("%s: %s is %q, want %q", tt.dst, name, got[name], content)
				}
			}
		}
	}
}

func TestModesAndTimesAreKeptIfAskedTo(t *testing.T) {
	src := tree(t, map[string]string{"d/file": "1"})
	when := time.Date(2001, 2, 3, 4, 5, 6, 7_000_000, time.UTC)
	for _, name := range []string{"d/file", "d"} {
		path := filepath.Join(src, name)
		if err := errors.Join(os.Chmod(path, 0o700), os.Chtimes(path, when, when)); err != nil {
			t.Fatal(err)
		}
	}
	dst := t.TempDir()
	if failed, err := run(t, &Copier{Recursive: true, Preserve: true}, Local{}, Local{}, dst, filepath.Join(src, "d")); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	for _, name := range []string{"d/file", "d"} {
		info, err := os.Stat(filepath.Join(dst, name))
		if err != nil || !info.ModTime().Equal(when) || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// A file in part never has its name, and goes when the copy fails.
func TestWhatFailsLeavesTheOldFileAndNoPart(t *testing.T) {
	broken := errors.New("broken")
	for name, flaw := range map[string]struct {
		from, to *flawed
		left     string // of the part
	}{
		"create": {to: &flawed{fail: failing("create", broken)}},
		"create, where nothing may be removed either": {to: &flawed{refuses: true}},
		"open": {from: &flawed{fail: failing("open", broken)}},
		"read": {from: &flawed{data: func(string) io.Reader {
			return io.MultiReader(strings.NewReader("half"), &brokenReader{broken})
		}}},
		"rename": {to: &flawed{fail: failing("rename", broken)}},
		"rename, and removal": {to: &flawed{fail: func(op, _ string) error {
			if op == "rename" || op == "remove" {
				return broken
			}
			return nil
		}}, left: ".part may be left behind"},
		"other data, verified": {to: &flawed{data: func(name string) io.Reader {
			if strings.HasSuffix(name, ".part") {
				return strings.NewReader("fresh data, but not the same")
			}
			return nil
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			src := tree(t, map[string]string{"file": "fresh data"})
			dst := tree(t, map[string]string{"file": "old"})
			from, to := Tree(Local{}), Tree(Local{})
			if flaw.from != nil {
				from = flaw.from
			}
			if flaw.to != nil {
				to = flaw.to
			}
			failed, err := run(t, &Copier{Verify: true}, from, to, dst, filepath.Join(src, "file"))
			if err != nil || len(failed) != 1 || !strings.Contains(failed[0].Error(), flaw.left) {
				t.Fatalf("%v, %v", err, failed)
			}
			// The error names the file, which the user knows, and not the name of its part.
			if text := failed[0].Error(); !strings.Contains(text, filepath.Join(src, "file")) || flaw.left == "" && strings.Contains(text, "left behind") {
				t.Error(text)
			}
			got := listTree(t, dst)
			if got["file"] != "old" || flaw.left == "" && len(got) != 1 {
				t.Errorf("left %q", got)
			}
		})
	}
}

func failing(op string, err error) func(string, string) error {
	return func(o, _ string) error {
		if o == op {
			return err
		}
		return nil
	}
}

type brokenReader struct{ err error }

func (r *brokenReader) Read([]byte) (int, error) { return 0, r.err }

func TestAnInterruptLeavesNoPart(t *testing.T) {
	src := tree(t, map[string]string{"file": "data"})
	dst := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	from := &flawed{data: func(string) io.Reader {
		cancel()
		return bytes.NewReader(make([]byte, 1<<20))
	}}
	c := new(Copier)
	plan, err := c.Plan(ctx, []Place{{from, filepath.Join(src, "file")}}, Place{new(flawed), dst})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(ctx, plan); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if got := listTree(t, dst); len(got) != 0 {
		t.Errorf("left %q", got)
	}
}

func TestWhatCannotBeCopiedIsToldAndTheRestCopied(t *testing.T) {
	src := tree(t, map[string]string{"d/a": "1", "d/bad/x": "2", "d/bad/deep/y": "3", "d/c": "4", "d/file": "5"})
	dst := tree(t, map[string]string{"d/file/": ""})
	to := &flawed{fail: func(op, name string) error {
		if op == "mkdir" && name == "bad" {
			return fs.ErrPermission
		}
		return nil
	}}
	failed, err := run(t, &Copier{Recursive: true}, Local{}, to, dst, filepath.Join(src, "d"))
	if err != nil || len(failed) != 2 || !errors.Is(failed[0], fs.ErrPermission) || !strings.Contains(failed[1].Error(), "is a directory") {
		t.Errorf("%v, %v", err, failed)
	}
	if got := listTree(t, dst); got["d/a"] != "1" || got["d/c"] != "4" || len(got) != 3 {
		t.Errorf("copied %q", got)
	}
}

// A server that is gone fails the copy, not each file of it.
func TestAServerThatIsLostEndsTheCopy(t *testing.T) {
	src := tree(t, map[string]string{"d/a": "1", "d/b": "2"})
	gone := &client.Error{Proc: "READ", Path: "/a", Err: errors.New("connection lost")}
	from := &flawed{fail: failing("open", gone)}
	if failed, err := run(t, &Copier{Recursive: true}, from, Local{}, t.TempDir(), filepath.Join(src, "d")); !errors.Is(err, gone) || failed != nil {
		t.Errorf("%v, %v", err, failed)
	}
	for _, err := range []error{nfs.ErrAcces, client.ErrLost, client.ErrOutside} {
		from.fail = failing("open", &client.Error{Err: err})
		if failed, err := run(t, &Copier{Recursive: true}, from, Local{}, t.TempDir(), filepath.Join(src, "d")); err != nil || len(failed) != 2 {
			t.Errorf("%v, %v", err, failed)
		}
	}
}

// What a server lists cannot lead out of the directory that is written to.
func TestNamesThatAreNoNamesAreNotWritten(t *testing.T) {
	src := tree(t, map[string]string{"d/": ""})
	outside := t.TempDir()
	from := &flawed{list: func(string) []string { return []string{"../x", "/x", "..", "", ".", "a/../../x"} }}
	failed, err := run(t, &Copier{Recursive: true}, from, Local{}, filepath.Join(outside, "in"), filepath.Join(src, "d"))
	if err != nil || len(failed) != 6 {
		t.Errorf("%v, %v", err, failed)
	}
	if got := listTree(t, outside); len(got) != 1 || got["in/"] != "" {
		t.Errorf("written %q", got)
	}
	for _, name := range []string{"", ".", "..", "a/b", "a\x00b"} {
		if path, err := new(Remote).Join("/d", name); err == nil {
			t.Errorf("%q is taken for a name on a server: %s", name, path)
		}
	}
}

func TestAFolderIsNotCopiedIntoItself(t *testing.T) {
	dir := tree(t, map[string]string{"d/e/f": "1", "other": "-> d/e"})
	d := filepath.Join(dir, "d")
	for _, dst := range []string{d, filepath.Join(d, "e"), filepath.Join(d, "new"), filepath.Join(dir, "other")} {
		failed, err := run(t, &Copier{Recursive: true}, Local{}, Local{}, dst, d)
		if err != nil || len(failed) != 1 || !strings.Contains(failed[0].Error(), "into itself") {
			t.Errorf("to %s: %v, %v", dst, err, failed)
		}
	}
	if got := listTree(t, dir); len(got) != 2 {
		t.Errorf("left %q", got)
	}
}

func TestProgressAddsUpToTheWork(t *testing.T) {
	src := tree(t, map[string]string{"d/a": strings.Repeat("x", 100_000), "d/b": "y"})
	for _, verify := range []bool{false, true} {
		c := &Copier{Recursive: true, Verify: verify}
		var done int64
		c.Progress = func(n int64) { done += n }
		plan, err := c.Plan(t.Context(), []Place{{Local{}, filepath.Join(src, "d")}}, Place{Local{}, t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		if done != c.Work(plan) || plan.Files != 2 || plan.Bytes != 100_001 {
			t.Errorf("verify %v: %d bytes of %d, in %d files", verify, done, c.Work(plan), plan.Files)
		}
	}
}
