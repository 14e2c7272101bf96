package folder

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
)

// cell makes an export in another directory, whose other files are outside.
func cell(t testing.TB, cfg Config) (w *world, outside string) {
	t.Helper()
	outside = t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o666))
	must(t, os.Mkdir(filepath.Join(outside, "dir"), 0o777))
	w = serve(t, cfg)
	return w, outside
}

func TestSymbolicLinksAreNotFollowed(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w, outside := cell(t, cfg)
		must(t, os.Symlink(outside, w.path("out")))
		must(t, os.Symlink(filepath.Join(outside, "secret"), w.path("secret")))
		must(t, os.Mkdir(w.path("in"), 0o777))
		must(t, os.Symlink("in", w.path("around")))
		root := w.root()
		for _, dir := range []string{"out", "around"} {
			fh := w.fh(dir)
			wants(t, "LOOKUP", w.lookup(fh, "secret").Stat, nfs.ErrNotDir)
			wants(t, "LOOKUP of ..", w.lookup(fh, "..").Stat, nfs.ErrNotDir)
			wants(t, "CREATE", w.create(fh, "made", 0o666).Stat, nfs.ErrNotDir)
			wants(t, "MKDIR", w.mkdir(fh, "made", 0o777).Stat, nfs.ErrNotDir)
			wants(t, "REMOVE", w.remove(fh, "secret"), nfs.ErrNotDir)
			wants(t, "RENAME from", w.rename(fh, "secret", root, "stolen"), nfs.ErrNotDir)
			wants(t, "RENAME to", w.rename(root, "in", fh, "in"), nfs.ErrNotDir)
			wants(t, "READDIR", w.readdir(fh, 0, nfs.Verifier{}, 4096).Stat, nfs.ErrNotDir)
			wants(t, "RMDIR", w.rmdir(root, dir), nfs.ErrNotDir)
		}
		fh := w.fh("secret")
		wants(t, "READ", w.read(fh, 0, 10).Stat, nfs.ErrInval)
		wants(t, "WRITE", w.write(fh, 0, "x", nfs.Unstable).Stat, nfs.ErrInval)
		wants(t, "SETATTR of the size", w.setattr(fh, size(0)), nfs.ErrInval)
		w.setattr(fh, withMode(0o777))
		wants(t, "REMOVE of the link", w.remove(root, "secret"), nfs.OK)
		b, err := os.ReadFile(filepath.Join(outside, "secret"))
		fi, _ := os.Stat(filepath.Join(outside, "secret"))
		if err != nil || string(b) != "secret" || fi.Mode().Perm() == 0o777 {
			t.Errorf("outside: %q, %v, %v", b, fi.Mode(), err)
		}
		if _, err := w.server.Handle(t.Context(), []string{"out"}); err != nfs.ErrNotDir {
			t.Errorf("mounting a link: %v", err)
		}
	})
}

// age makes the next use of all nodes check that they are in the export.
func (w *world) age() {
	tree := w.server.tree
	tree.mu.Lock()
	defer tree.mu.Unlock()
	for _, n := range tree.nodes {
		if !n.seen.IsZero() {
			n.seen = n.seen.Add(-insideFor)
		}
	}
}

// A directory is moved out of the export while a client has handles of it and of what is in
// it, and a file of it is open.
func TestWhatIsMovedOutIsLetGo(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w, outside := cell(t, cfg)
		w.put("dir/sub/file", "data")
		must(t, os.Symlink("file", w.path("dir", "sub", "link")))
		dir, sub, file, link := w.fh("dir"), w.fh("dir", "sub"), w.fh("dir", "sub", "file"), w.fh("dir", "sub", "link")
		w.write(file, 0, "DATA", nfs.Unstable)
		w.read(file, 0, 9)
		must(t, os.Rename(w.path("dir"), filepath.Join(outside, "moved")))
		if res := w.lookup(dir, ".."); res.Stat != nfs.ErrStale {
			t.Errorf("LOOKUP of ..: %v", res.Stat)
		}
		w.age()
		wants(t, "READ", w.read(file, 0, 9).Stat, nfs.ErrStale)
		wants(t, "WRITE", w.write(file, 0, "more", nfs.Unstable).Stat, nfs.ErrStale)
		wants(t, "SETATTR", w.setattr(file, size(0)), nfs.ErrStale)
		var res nfs.ReadlinkRes
		w.call(nfs.ProcReadlink, &nfs.ReadlinkArgs{Symlink: link}, &res)
		wants(t, "READLINK", res.Stat, nfs.ErrStale)
		wants(t, "LOOKUP", w.lookup(sub, "file").Stat, nfs.ErrStale)
		wants(t, "CREATE", w.create(dir, "made", 0o666).Stat, nfs.ErrStale)
		wants(t, "READDIR", w.readdir(sub, 0, nfs.Verifier{}, 4096).Stat, nfs.ErrStale)
		w.restart()
		for _, fh := range []nfs.FH{dir, sub, file, link} {
			_, stat := w.getattr(fh)
			wants(t, "GETATTR after a restart", stat, nfs.ErrStale)
		}
		if b, err := os.ReadFile(filepath.Join(outside, "moved", "sub", "file")); string(b) != "DATA" {
			t.Errorf("outside: %q (%v)", b, err)
		}
	})
}

// A client that looks up name after name is stopped after a second.
func TestWhatIsMovedOutIsLetGoOnTheWayDown(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w, outside := cell(t, cfg)
		cfg = w.cfg
		w.server.Close()
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, dir: w.dir, cfg: cfg, session: new(int), cred: w.cred}
			w.start()
			defer func() { w.server.Close() }()
			w.put("dir/0/1/2/3/4/5/6/7/8/9/file", "data")
			fh := w.fh("dir")
			must(t, os.Rename(w.path("dir"), filepath.Join(outside, "moved")))
			moved := time.Now()
			for i := range 10 {
				res := w.lookup(fh, fmt.Sprint(i))
				if res.Stat != nfs.OK {
					wants(t, "LOOKUP", res.Stat, nfs.ErrStale)
					break
				}
				if out := time.Since(moved); out >= insideFor {
					t.Fatalf("%d names down, %v after it was moved out", i+1, out)
				}
				fh = res.Object
				time.Sleep(insideFor * 4 / 10)
			}
		})
	})
}

// A file with another hard link in the export is still in it.
func TestAFileWithAnotherNameIsNotLetGo(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w, outside := cell(t, cfg)
		w.put("dir/file", "data")
		fh := w.fh("dir", "file")
		must(t, os.Mkdir(w.path("other"), 0o777))
		must(t, os.Link(w.path("dir", "file"), w.path("other", "name")))
		w.read(fh, 0, 9)
		must(t, os.Rename(w.path("dir"), filepath.Join(outside, "moved")))
		for range 3 {
			w.age()
			if res := w.read(fh, 0, 9); string(res.Data) != "data" {
				t.Errorf("READ: %v %q", res.Stat, res.Data)
			}
		}
		must(t, os.Remove(w.path("other", "name")))
		w.age()
		wants(t, "READ without it", w.read(fh, 0, 9).Stat, nfs.ErrStale)
	})
}

// An object that a user of this machine moves within the export needs no search while it is
// open, and one that was removed never does.
func TestAnOpenFileIsFollowedWithoutASearch(t *testing.T) {
	w := serve(t, Config{})
	if runtime.GOOS != "linux" {
		t.Skip("objects go by their names here")
	}
	w.put("dir/file", "data")
	w.put("dir/gone (deleted)", "data")
	fh, gone := w.fh("dir", "file"), w.fh("dir", "gone (deleted)")
	w.age()
	if res := w.read(gone, 0, 9); string(res.Data) != "data" {
		t.Errorf("READ: %v %q", res.Stat, res.Data)
	}
	slow := &slowVolume{volume: w.server.vol, listed: make(chan struct{})}
	close(slow.listed)
	w.server.tree.vol = slow
	must(t, os.Mkdir(w.path("other"), 0o777))
	must(t, os.Rename(w.path("dir", "file"), w.path("other", "new name")))
	must(t, os.Remove(w.path("dir", "gone (deleted)")))
	w.age()
	if res := w.read(fh, 0, 9); string(res.Data) != "data" {
		t.Errorf("READ: %v %q", res.Stat, res.Data)
	}
	wants(t, "READ of what was removed", w.read(gone, 0, 9).Stat, nfs.ErrStale)
	if slow.lists != 0 {
		t.Errorf("%d directories were listed", slow.lists)
	}
}

// A user of this machine replaces directories by links to the outside and moves them, while a
// client works in them.
func TestTheJailHoldsAgainstRaces(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		cfg.Async = true
		w, outside := cell(t, cfg)
		w.put("a/dir/file", "inside")
		must(t, os.Mkdir(w.path("b"), 0o777))
		must(t, os.Symlink(outside, w.path("evil")))
		stop := make(chan struct{})
		var swapping sync.WaitGroup
		swapping.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				os.Rename(w.path("a", "dir"), w.path("b", "dir"))
				os.Rename(w.path("evil"), w.path("a", "dir"))
				os.Rename(w.path("a", "dir"), w.path("evil"))
				os.Rename(w.path("b", "dir"), filepath.Join(outside, "away"))
				os.Rename(filepath.Join(outside, "away"), w.path("a", "dir"))
			}
		})
		var names []string
		for i := range 500 {
			fh := w.root()
			for _, name := range []string{"a", "dir", "..", "dir"} {
				if res := w.lookup(fh, name); res.Stat == nfs.OK {
					fh = res.Object
				}
			}
			for _, up := range []string{"..", "secret", "dir"} {
				if res := w.lookup(fh, up); res.Stat == nfs.OK && up == "secret" {
					t.Fatal("found the secret")
				}
			}
			if res := w.lookup(fh, "file"); res.Stat == nfs.OK {
				if res := w.read(res.Object, 0, 10); res.Stat == nfs.OK && string(res.Data) != "inside" {
					t.Fatalf("read %q", res.Data)
				}
			}
			name := fmt.Sprint("made", i)
			if w.create(fh, name, 0o666).Stat == nfs.OK {
				names = append(names, name)
			}
			for _, e := range w.readdir(fh, 0, nfs.Verifier{}, 64<<10).Entries {
				if e.Name == "secret" {
					t.Fatal("listed the secret")
				}
			}
			w.remove(fh, "secret")
			w.rename(fh, "secret", w.root(), "secret")
		}
		close(stop)
		nettest.AwaitGroup(t, &swapping)
		entries, err := os.ReadDir(outside)
		must(t, err)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "made") {
				t.Errorf("%s was made outside", e.Name())
			}
		}
		if b, err := os.ReadFile(filepath.Join(outside, "secret")); string(b) != "secret" {
			t.Errorf("the secret: %q (%v)", b, err)
		}
		if len(names) == 0 {
			t.Error("nothing was made at all")
		}
	})
}
