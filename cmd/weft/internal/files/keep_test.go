//go:build unix

package files

// Owners, modes, links and special files are Unix's.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/folder"
	"github.com/weft-rdma/weft/oncrpc"
)

// write makes a file of exactly these permissions.
func write(t *testing.T, name, data string, mode fs.FileMode) {
	t.Helper()
	if err := errors.Join(os.WriteFile(name, []byte(data), 0o600), os.Chmod(name, mode)); err != nil {
		t.Fatal(err)
	}
}

func lstat(t *testing.T, name string) *Info {
	t.Helper()
	info, err := Local{}.Lstat(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestNewFilesDoNotHaveThePermissionsOfTheUmask(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		dir := filepath.Join(w.src, "d")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "open"), "1", 0o666)
		write(t, filepath.Join(dir, "run"), "2", 0o755)
		write(t, filepath.Join(dir, "lends"), "3", 0o755|fs.ModeSetuid|fs.ModeSetgid)
		if err := os.Mkdir(filepath.Join(dir, "closed"), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "closed", "in"), "3", 0o444)
		if err := errors.Join(os.Chmod(filepath.Join(dir, "closed"), 0o555), os.Chmod(dir, 0o777)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			os.Chmod(filepath.Join(dir, "closed"), 0o755)
			os.Chmod(filepath.Join(w.dst, "d", "closed"), 0o755)
		})
		w.mustCopy(t, &Copier{Recursive: true, Umask: 0o027 | Umask()}, "d")
		for name, want := range map[string]fs.FileMode{
			"d": fs.ModeDir | 0o750, "d/open": 0o640, "d/run": 0o750, "d/lends": 0o750,
			"d/closed": fs.ModeDir | 0o550, "d/closed/in": 0o440,
		} {
			if got := lstat(t, filepath.Join(w.dst, name)).Mode; got != want&^Umask() {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	})
}

// A folder that was there keeps the permissions that it has.
func TestAFolderThatIsThereKeepsItsPermissions(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		if err := errors.Join(os.Mkdir(filepath.Join(w.src, "d"), 0o500), os.Mkdir(filepath.Join(w.dst, "d"), 0o711), os.Chmod(filepath.Join(w.dst, "d"), 0o711)); err != nil {
			t.Fatal(err)
		}
		w.mustCopy(t, &Copier{Recursive: true}, "d")
		if got := lstat(t, filepath.Join(w.dst, "d")).Mode.Perm(); got != 0o711 {
			t.Errorf("%v", got)
		}
	})
}

func TestAllThatCanBeKeptIs(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		dir := filepath.Join(w.src, "d")
		when := time.Date(2001, 2, 3, 4, 5, 6, 7_000_000, time.UTC)
		before := when.Add(-time.Hour)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "file"), "1", 0o666)
		write(t, filepath.Join(dir, "lends"), "2", 0o755|fs.ModeSetuid|fs.ModeSetgid)
		if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		names := []string{"d/file", "d/lends", "d/link", "d"}
		for _, name := range names {
			path := filepath.Join(w.src, name)
			if os.Geteuid() == 0 {
				if err := os.Lchown(path, 1234, 5678); err != nil {
					t.Fatal(err)
				}
			}
			if name == "d/lends" { // which a change of owner takes
				if err := os.Chmod(path, 0o755|fs.ModeSetuid|fs.ModeSetgid); err != nil {
					t.Fatal(err)
				}
			}
			ts := []unix.Timespec{unix.NsecToTimespec(before.UnixNano()), unix.NsecToTimespec(when.UnixNano())}
			if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, ts, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, 0o777|fs.ModeSticky); err != nil {
			t.Fatal(err)
		}
		want := make(map[string]*Info)
		for _, name := range names {
			want[name] = lstat(t, filepath.Join(w.src, name))
		}
		w.mustCopy(t, &Copier{Recursive: true, Preserve: true, Umask: 0o077}, "d")
		for name, want := range want {
			got := lstat(t, filepath.Join(w.dst, name))
			if got.Mode != want.Mode || got.UID != want.UID || got.GID != want.GID || !got.Mtime.Equal(when) {
				t.Errorf("%s: %v %d:%d %v, want %v %d:%d %v", name, got.Mode, got.UID, got.GID, got.Mtime, want.Mode, want.UID, want.GID, when)
			}
			if name == "d/file" && !got.Atime.Equal(before) {
				t.Errorf("%s was read at %v, want %v", name, got.Atime, before)
			}
		}
	})
}

// An owned tree says that all of its files are somebody's.
type owned struct {
	Local
	uid, gid uint32
}

func (o *owned) Lstat(ctx context.Context, name string) (*Info, error) {
	info, err := o.Local.Lstat(ctx, name)
	if err == nil {
		info.UID, info.GID = o.uid, o.gid
	}
	return info, err
}

// Who is not root cannot give files away, and is not told so; but nobody gets rights
// that were another owner's.
func TestRightsOfAnOwnerThatIsNotKeptAreNotKept(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	write(t, filepath.Join(src, "file"), "data", 0o755|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)
	from := &owned{uid: 4321, gid: 8765}
	user := uint32(os.Getuid())
	if user == 0 {
		user = 2000
		if err := os.Chmod(dst, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	to := map[string]Tree{"server": serve(t, dst, folder.Config{}, overTCP, &oncrpc.AuthSys{UID: user, GID: 2000})}
	if os.Getuid() != 0 {
		to["here"] = Local{}
	}
	for name, tree := range to {
		at := filepath.Join(dst, name)
		if name == "server" {
			at = name
		}
		err, failed := run(t, &Copier{Preserve: true}, from, tree, at, filepath.Join(src, "file"))
		if err != nil || failed != nil {
			t.Fatal(name, err, failed)
		}
		if got := lstat(t, filepath.Join(dst, name)); got.Mode != 0o755 || got.UID != user {
			t.Errorf("%s: %v of %d, want 0755 of %d", name, got.Mode, got.UID, user)
		}
	}
}

// An owner that is none, which systems take for no change, is not kept.
func TestAnOwnerThatIsNoneIsNotKept(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	write(t, filepath.Join(src, "file"), "data", 0o755|fs.ModeSetuid|fs.ModeSetgid)
	for name, to := range map[string]Place{"here": {Local{}, dst}, "server": {serve(t, dst, folder.Config{SingleUser: true}, overTCP, nil), "/"}} {
		for _, o := range []Owner{{nobody, nobody}, {0, nobody}, {nobody, 0}} {
			err, failed := run(t, &Copier{Preserve: true}, &owned{uid: o.UID, gid: o.GID}, to.Tree, to.Path, filepath.Join(src, "file"))
			if err != nil || failed != nil {
				t.Fatal(name, err, failed)
			}
			if got := lstat(t, filepath.Join(dst, "file")); got.Mode != 0o755 {
				t.Errorf("%s: %v of %v", name, got.Mode, o)
			}
		}
	}
}

// Root is told when a server does not let it give a file away.
func TestRootIsToldOfOwnersThatAreNotKept(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	write(t, filepath.Join(src, "file"), "data", 0o755|fs.ModeSetuid)
	if err := os.Chmod(dst, 0o777); err != nil {
		t.Fatal(err)
	}
	cfg := folder.Config{Squash: folder.SquashRoot}
	to := serve(t, dst, cfg, overTCP, &oncrpc.AuthSys{UID: 0, GID: 0})
	from := &owned{uid: 4321, gid: 8765}
	var lost []error
	c := &Copier{Preserve: true, Lost: func(err error) { lost = append(lost, err) }}
	err, failed := run(t, c, from, to, "/", filepath.Join(src, "file"))
	if err != nil || failed != nil || len(lost) != 1 || c.Losses() != 1 || !strings.Contains(lost[0].Error(), "owner 4321") {
		t.Errorf("%v, %v, %v", err, failed, lost)
	}
	if got := lstat(t, filepath.Join(dst, "file")); got.Mode != 0o755 {
		t.Errorf("%v", got.Mode)
	}
}

// What takes the place of a file of another is that owner's, where it may be.
func TestAFileThatIsReplacedKeepsItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root has files of others; with files of this user it shows little")
	}
	eachWay(t, func(t *testing.T, w way) {
		write(t, filepath.Join(w.src, "file"), "new", 0o644)
		old := filepath.Join(w.dst, "file")
		write(t, old, "old", 0o620|fs.ModeSetuid)
		if os.Geteuid() == 0 {
			if err := os.Chown(old, 1234, 5678); err != nil {
				t.Fatal(err)
			}
		}
		want := lstat(t, old)
		w.mustCopy(t, new(Copier), "file")
		got := lstat(t, old)
		if got.UID != want.UID || got.GID != want.GID || got.Mode != 0o620 || got.ID == want.ID {
			t.Errorf("%v %d:%d", got.Mode, got.UID, got.GID)
		}
	})
}

func TestHardLinksStayThat(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		if err := errors.Join(os.MkdirAll(filepath.Join(w.src, "d", "e"), 0o755), os.Mkdir(filepath.Join(w.src, "f"), 0o755)); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(w.src, "d", "one"), "data", 0o644)
		write(t, filepath.Join(w.src, "d", "other"), "data", 0o644)
		for _, name := range []string{"d/e/two", "f/three"} {
			if err := os.Link(filepath.Join(w.src, "d/one"), filepath.Join(w.src, name)); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []*Copier{
			{Recursive: true, Preserve: true, HardLinks: true},
			{Recursive: true, Preserve: true, HardLinks: true}, // over the links of the first
			{Recursive: true, Preserve: true, HardLinks: true, Resume: true},
			{Recursive: true, HardLinks: true, Resume: true, Checksum: true},
		} {
			w.mustCopy(t, c, "d", "f")
			one, two, three, other := lstat(t, filepath.Join(w.dst, "d/one")), lstat(t, filepath.Join(w.dst, "d/e/two")), lstat(t, filepath.Join(w.dst, "f/three")), lstat(t, filepath.Join(w.dst, "d/other"))
			if !one.is(two) || !one.is(three) || one.is(other) || one.Links != 3 {
				t.Errorf("%v %v %v %v", one, two, three, other)
			}
			if c.Resume && c.Skipped() != 4 {
				t.Errorf("%d of 4 were skipped", c.Skipped())
			}
			if len(c.links.files) != 0 || c.links.octets != 0 {
				t.Errorf("%d files are remembered that have no more names", len(c.links.files))
			}
			if left := parts(t, w.dst); len(left) > 0 {
				t.Errorf("left %q", left)
			}
		}
		if err := os.RemoveAll(filepath.Join(w.dst, "d")); err != nil {
			t.Fatal(err)
		}
		w.mustCopy(t, &Copier{Recursive: true}, "d")
		if one := lstat(t, filepath.Join(w.dst, "d/one")); one.Links != 1 {
			t.Errorf("%d links without being asked for", one.Links)
		}
	})
}

// parts are the files of a folder that were not finished.
func parts(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".part") {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A name whose first copy was replaced by a file of another source is no link to
// that.
func TestALinkIsNeverOneToAnotherFile(t *testing.T) {
	base, dst := t.TempDir(), t.TempDir()
	for _, dir := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(base, "a/x"), "right", 0o644)
	write(t, filepath.Join(base, "b/x"), "wrong", 0o644)
	if err := os.Link(filepath.Join(base, "a/x"), filepath.Join(base, "b/y")); err != nil {
		t.Fatal(err)
	}
	c := &Copier{Recursive: true, HardLinks: true}
	err, failed := run(t, c, Local{}, Local{}, dst, filepath.Join(base, "a")+"/.", filepath.Join(base, "b")+"/.")
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if got := listTree(t, dst); got["x"] != "wrong" || got["y"] != "right" {
		t.Errorf("%q", got)
	}
}

// A linkless tree has no hard links, as some file systems.
type linkless struct{ Local }

func (linkless) Link(context.Context, string, string) error { return nfs.ErrNotSupp }

func TestWhereThereAreNoHardLinksFilesAreCopied(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	write(t, filepath.Join(src, "a"), "data", 0o644)
	if err := os.Link(filepath.Join(src, "a"), filepath.Join(src, "b")); err != nil {
		t.Fatal(err)
	}
	var lost []error
	c := &Copier{Recursive: true, HardLinks: true, Lost: func(err error) { lost = append(lost, err) }}
	err, failed := run(t, c, Local{}, linkless{}, dst, src+"/.")
	if err != nil || failed != nil || len(lost) != 1 || !strings.Contains(lost[0].Error(), "no hard link") {
		t.Errorf("%v, %v, %v", err, failed, lost)
	}
	if got := listTree(t, dst); got["a"] != "data" || got["b"] != "data" || len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// A server may say that every file has more names.
func TestWhatIsKeptOfHardLinksIsBounded(t *testing.T) {
	at := filepath.Join(t.TempDir(), "file")
	write(t, at, "", 0o644)
	var lost []error
	c := &Copier{HardLinks: true, Lost: func(err error) { lost = append(lost, err) }}
	const room = 100
	c.links.octets = maxLinks - room*(linkSize+len(at))
	for i := range uint64(2 * room) {
		s := &step{from: Place{Local{}, at}, info: &Info{Links: 2, ID: ID{File: i}}}
		c.remember(t.Context(), s, Place{Local{}, at})
	}
	if len(c.links.files) != room || len(lost) != 1 {
		t.Errorf("%d files in room for %d, %v", len(c.links.files), room, lost)
	}
	for key := range c.links.files {
		c.links.forget(key)
	}
	if left := maxLinks - room*(linkSize+len(at)); c.links.octets != left {
		t.Errorf("%d octets are in use of none, want %d", c.links.octets, left)
	}
}

// holey makes a file of 8 MiB with data in two places, and says whether the file
// system has holes at all.
func holey(t *testing.T, name string, end bool) (content []byte, ok bool) {
	t.Helper()
	content = make([]byte, 8<<20+777)
	copy(content[1<<20+5:], "data")
	copy(content[5<<20:], bytes.Repeat([]byte("more"), 30_000))
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err1 := f.WriteAt([]byte("data"), 1<<20+5)
	_, err2 := f.WriteAt(bytes.Repeat([]byte("more"), 30_000), 5<<20)
	if end {
		copy(content[len(content)-3:], "end")
		_, err = f.WriteAt([]byte("end"), int64(len(content)-3))
	} else {
		err = f.Truncate(int64(len(content)))
	}
	if err := errors.Join(err1, err2, err, f.Sync()); err != nil {
		t.Fatal(err)
	}
	return content, lstat(t, name).Used < 1<<20
}

func TestHolesStayThat(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		for _, end := range []bool{false, true} {
			content, ok := holey(t, filepath.Join(w.src, "file"), end)
			w.mustCopy(t, &Copier{Verify: true}, "file")
			got, err := os.ReadFile(filepath.Join(w.dst, "file"))
			if err != nil || !bytes.Equal(got, content) {
				t.Fatalf("%d octets, want %d: %v", len(got), len(content), err)
			}
			if used := lstat(t, filepath.Join(w.dst, "file")).Used; ok && used > 1<<20 {
				t.Errorf("the copy takes %d octets", used)
			}
		}
		// Nothing but a hole, and what has none.
		for _, size := range []int64{1 << 20, 1, 0} {
			name := fmt.Sprint("empty", size)
			write(t, filepath.Join(w.src, name), "", 0o644)
			if err := os.Truncate(filepath.Join(w.src, name), size); err != nil {
				t.Fatal(err)
			}
			w.mustCopy(t, new(Copier), name)
			if got := lstat(t, filepath.Join(w.dst, name)); got.Size != size || got.Used > 8192 {
				t.Errorf("%d octets on %d, want %d on 0", got.Size, got.Used, size)
			}
		}
	})
}

func TestPipesAndSocketsAreMadeAnew(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		fifo, socket := filepath.Join(w.src, "d/fifo"), filepath.Join(w.src, "d/socket")
		if err := errors.Join(os.Mkdir(filepath.Join(w.src, "d"), 0o755), syscall.Mkfifo(fifo, 0o600), os.Chmod(fifo, 0o640), unix.Mknod(socket, unix.S_IFSOCK|0o600, 0)); err != nil {
			t.Fatal(err)
		}
		names := map[string]fs.FileMode{"d/fifo": fs.ModeNamedPipe | 0o640, "d/socket": fs.ModeSocket | 0o600}
		if os.Geteuid() == 0 {
			device := filepath.Join(w.src, "d/device")
			if err := unix.Mknod(device, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err == nil { // a container may not let it
				names["d/device"] = fs.ModeDevice | fs.ModeCharDevice | 0o600
			}
		}
		if failed := w.copy(t, &Copier{Recursive: true}, "d"); len(failed) != len(names) || !strings.Contains(failed[0].Error(), "-a") {
			t.Errorf("without -a: %v", failed)
		}
		for _, resume := range []bool{false, false, true} {
			c := &Copier{Recursive: true, Preserve: true, Special: true, Umask: 0o077, Resume: resume}
			w.mustCopy(t, c, "d")
			for name, mode := range names {
				want, got := lstat(t, filepath.Join(w.src, name)), lstat(t, filepath.Join(w.dst, name))
				if got.Mode != mode || got.Device != want.Device || !got.Mtime.Equal(want.Mtime) {
					t.Errorf("%s: %v %v %v, want %v", name, got.Mode, got.Device, got.Mtime, mode)
				}
			}
			if resume && c.Skipped() != len(names) {
				t.Errorf("%d of %d skipped", c.Skipped(), len(names))
			}
		}
		if left := parts(t, w.dst); len(left) > 0 {
			t.Errorf("left %q", left)
		}
	})
}

func TestSymbolicLinksAtTheDestinationAreWrittenThrough(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		for name, tt := range map[string]struct {
			there     map[string]string // at the destination
			source    string
			recursive bool
			changed   string // the file that is written to
			says      string // or what goes wrong
		}{
			"a named one":                 {there: map[string]string{"file": "-> other", "other": "old"}, source: "file", changed: "other"},
			"a chain":                     {there: map[string]string{"file": "-> d/b", "d/b": "-> ../c", "c": "old"}, source: "file", changed: "c"},
			"one within":                  {there: map[string]string{"d/file": "-> e/other", "d/e/other": "old"}, source: "d", recursive: true, changed: "d/e/other"},
			"one within, from the root":   {there: map[string]string{"d/file": "-> ../other", "other": "old"}, source: "d", recursive: true, changed: "other"},
			"one to nothing":              {there: map[string]string{"file": "-> nothing"}, source: "file", says: "leads to nothing"},
			"one within to nothing":       {there: map[string]string{"d/file": "-> nothing"}, source: "d", recursive: true, says: "leads to nothing"},
			"one to a folder":             {there: map[string]string{"file": "-> d", "d/": ""}, source: "file", says: "is a folder"},
			"one in a circle":             {there: map[string]string{"file": "-> other", "other": "-> file"}, source: "file", says: "too many"},
			"one for a folder, within it": {there: map[string]string{"d": "-> other", "other/": ""}, source: "d", recursive: true, says: "is no folder"},
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

// On a server, too, what a folder is copied to is not left by links.
func TestLinksOutOfTheDestinationAreNotWrittenThrough(t *testing.T) {
	src := tree(t, map[string]string{"d/file": "new", "d/up": "new", "d/root": "new"})
	there := map[string]string{
		"other": "old", "sub/d/file": "-> ../../other", "sub/d/up": "-> ../../../../../../../etc/passwd", "sub/d/root": "-> /other",
	}
	dst := tree(t, there)
	to := serve(t, dst, folder.Config{SingleUser: true}, overTCP, nil)
	err, failed := run(t, &Copier{Recursive: true}, Local{}, to, "/sub", filepath.Join(src, "d"))
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

// Where a shell stands in a folder by a symbolic link, paths say so.
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
			if err, failed := run(t, &Copier{Recursive: true}, Local{}, Local{}, dst, "src/."); err != nil || failed != nil {
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

// fill is tree in a folder that there is.
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
	if _, err := os.Stat(link); err != nil {
		t.Skipf("no files that are pipes of this process: %v", err)
	}
	dir := tree(t, map[string]string{"file": "data", "link": "-> " + link})
	if err, failed := run(t, new(Copier), Local{}, Local{}, filepath.Join(dir, "link"), filepath.Join(dir, "file")); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	got := make([]byte, 10)
	n, err := r.Read(got)
	if string(got[:n]) != "data" || listTree(t, dir)["link"] != "-> "+link {
		t.Errorf("%q, %v", got[:n], err)
	}
}
