package folder

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weft-rdma/weft/nfs"
)

// cell makes a folder in another one: what is beside it is outside.
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

// A directory that is moved out of the folder while a client has its handle.
func TestWhatIsMovedOutIsLetGo(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w, outside := cell(t, cfg)
		w.put("dir/sub/file", "data")
		dir, sub := w.fh("dir"), w.fh("dir", "sub")
		must(t, os.Rename(w.path("dir"), filepath.Join(outside, "moved")))
		if res := w.lookup(dir, ".."); res.Stat != nfs.ErrStale {
			t.Errorf("LOOKUP of ..: %v", res.Stat)
		}
		// What is believed for a second is looked at after that.
		tree := w.server.tree
		tree.mu.Lock()
		for _, n := range tree.nodes {
			if !n.seen.IsZero() {
				n.seen = n.seen.Add(-believed)
			}
		}
		tree.mu.Unlock()
		wants(t, "LOOKUP", w.lookup(sub, "file").Stat, nfs.ErrStale)
		wants(t, "CREATE", w.create(dir, "made", 0o666).Stat, nfs.ErrStale)
		wants(t, "READDIR", w.readdir(sub, 0, nfs.Verifier{}, 4096).Stat, nfs.ErrStale)
		w.restart()
		_, stat := w.getattr(dir)
		wants(t, "GETATTR after a restart", stat, nfs.ErrStale)
	})
}

// Somebody on the server's machine swaps directories for links to the outside and
// moves them about, while a client works in them.
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
		swapping.Wait()
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
