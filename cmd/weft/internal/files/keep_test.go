// Owners, modes and special files are Unix's.

//go:build unix

package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/internal/rpctest"
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

func TestNewFoldersKeepTheStickyBit(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		dir := filepath.Join(w.src, "tmp")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777|fs.ModeSticky|fs.ModeSetgid)); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "file"), "1", 0o644)
		w.mustCopy(t, &Copier{Recursive: true, Umask: 0o022 | Umask()}, "tmp")
		if got, want := lstat(t, filepath.Join(w.dst, "tmp")).Mode, fs.ModeDir|fs.ModeSticky|0o755&^Umask(); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// NFS has no times before 1970 and after 2106: what is not kept is reported.
func TestTimesThatAServerCannotHoldAreReported(t *testing.T) {
	for when, lost := range map[time.Time]int{
		time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC): 1,
		time.Date(2106, 2, 7, 6, 28, 16, 0, time.UTC):    1,
		time.Unix(0, 1): 0,
		time.Date(2106, 2, 7, 6, 28, 15, 0, time.UTC): 0,
	} {
		w := way{src: t.TempDir(), dst: t.TempDir()}
		w.from, w.to = Place{Local{}, w.src}, Place{serve(t, w.dst, everything, rpctest.OverTCP, nil), "/"}
		name := filepath.Join(w.src, "file")
		write(t, name, "data", 0o644)
		if err := os.Chtimes(name, time.Time{}, when); err != nil {
			t.Fatal(err)
		}
		if got := lstat(t, name).Mtime; !got.Equal(when) {
			t.Skipf("files in %s cannot have the time %v", w.src, when)
		}
		c := &Copier{Preserve: true}
		told := w.copy(t, c, "file")
		if c.Failures() != 0 || c.Losses() != lost || len(told) != lost {
			t.Errorf("%v: %d failures and %d losses, expected 0 and %d: %v", when, c.Failures(), c.Losses(), lost, told)
		}
		if len(told) > 0 && !strings.Contains(told[0].Error(), when.Format(time.RFC3339)) {
			t.Errorf("%v: %v", when, told[0])
		}
		// There is no other time to be had: the copy is up to date.
		again := &Copier{Resume: true}
		if told := w.copy(t, again, "file"); told != nil || again.Skipped() != 1 {
			t.Errorf("%v: the copy was made again: %v", when, told)
		}
	}
}

// A directory that was there keeps the permissions that it has.
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

// An owned tree reports the same owner for all of its files.
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

// A user other than root cannot give files away, which is no error. But permissions for
// another owner are not kept without that owner.
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
	to := map[string]Tree{"server": serve(t, dst, folder.Config{}, rpctest.OverTCP, &oncrpc.AuthSys{UID: user, GID: 2000})}
	if os.Getuid() != 0 {
		to["here"] = Local{}
	}
	for name, tree := range to {
		at := filepath.Join(dst, name)
		if name == "server" {
			at = name
		}
		failed, err := run(t, &Copier{Preserve: true}, from, tree, at, filepath.Join(src, "file"))
		if err != nil || failed != nil {
			t.Fatal(name, err, failed)
		}
		if got := lstat(t, filepath.Join(dst, name)); got.Mode != 0o755 || got.UID == from.uid {
			t.Errorf("%s: %v of %d, want 0755 of somebody else", name, got.Mode, got.UID)
		}
	}
}

// An owner that is none, which systems take for no change, is not kept.
func TestAnOwnerThatIsNoneIsNotKept(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	write(t, filepath.Join(src, "file"), "data", 0o755|fs.ModeSetuid|fs.ModeSetgid)
	for name, to := range map[string]Place{"here": {Local{}, dst}, "server": {serve(t, dst, everything, rpctest.OverTCP, nil), "/"}} {
		for _, o := range []Owner{{nobody, nobody}, {0, nobody}, {nobody, 0}} {
			failed, err := run(t, &Copier{Preserve: true}, &owned{uid: o.UID, gid: o.GID}, to.Tree, to.Path, filepath.Join(src, "file"))
			if err != nil || failed != nil {
				t.Fatal(name, err, failed)
			}
			if got := lstat(t, filepath.Join(dst, "file")); got.Mode != 0o755 {
				t.Errorf("%s: %v of %v", name, got.Mode, o)
			}
		}
	}
}

// Root gets an error if a server does not let it give a file away.
func TestRootIsToldOfOwnersThatAreNotKept(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	write(t, filepath.Join(src, "file"), "data", 0o755|fs.ModeSetuid)
	if err := os.Chmod(dst, 0o777); err != nil {
		t.Fatal(err)
	}
	cfg := folder.Config{Squash: folder.SquashRoot}
	to := serve(t, dst, cfg, rpctest.OverTCP, &oncrpc.AuthSys{UID: 0, GID: 0})
	from := &owned{uid: 4321, gid: 8765}
	var lost []error
	c := &Copier{Preserve: true, Lost: func(err error) { lost = append(lost, err) }}
	failed, err := run(t, c, from, to, "/", filepath.Join(src, "file"))
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

// Permissions, owners and times may change though the data do not.
func TestWhatIsSkippedGetsWhatIsKept(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		names := []string{"d/file", "d/fifo", "d/link"}
		in := func(name string) string { return filepath.Join(w.src, name) }
		if err := errors.Join(os.Mkdir(in("d"), 0o755), os.Symlink("file", in("d/link")), syscall.Mkfifo(in("d/fifo"), 0o600)); err != nil {
			t.Fatal(err)
		}
		write(t, in("d/file"), "data", 0o644)
		resume := func(preserve, checksum bool) *Copier {
			return &Copier{Recursive: true, Preserve: preserve, Special: true, Resume: true, Checksum: checksum}
		}
		w.mustCopy(t, resume(true, false), "d")
		id := lstat(t, filepath.Join(w.dst, "d/file")).ID

		when := time.Date(2011, 2, 3, 4, 5, 6, 123456000, time.UTC)
		for _, name := range names[:2] {
			if err := errors.Join(os.Chmod(in(name), 0o400), os.Chtimes(in(name), when, when)); err != nil {
				t.Fatal(err)
			}
		}
		if os.Geteuid() == 0 {
			for _, name := range names {
				if err := os.Lchown(in(name), 1234, 5678); err != nil {
					t.Fatal(err)
				}
			}
		}
		c := resume(true, true)
		w.mustCopy(t, c, "d")
		for _, name := range names {
			want, got := lstat(t, in(name)), lstat(t, filepath.Join(w.dst, name))
			if got.Mode != want.Mode || !got.Mtime.Equal(want.Mtime) || got.UID != want.UID || got.GID != want.GID {
				t.Errorf("%s: %v %v %d:%d, want %v %v %d:%d", name, got.Mode, got.Mtime, got.UID, got.GID, want.Mode, want.Mtime, want.UID, want.GID)
			}
		}
		if got := lstat(t, filepath.Join(w.dst, "d/file")); got.ID != id || c.Skipped() != len(names) {
			t.Errorf("%d were skipped, and file %v is %v", c.Skipped(), id, got.ID)
		}

		if err := os.Chmod(in("d/file"), 0o644); err != nil {
			t.Fatal(err)
		}
		w.mustCopy(t, resume(false, false), "d")
		if got := lstat(t, filepath.Join(w.dst, "d/file")); got.Mode != 0o400 {
			t.Errorf("%v without -p", got.Mode)
		}
	})
}
