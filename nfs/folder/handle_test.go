package folder

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/weft-rdma/weft/nfs"
)

func TestHandlesSurviveARestart(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		w.put("a/b/c/file", "data")
		w.put("a/other", "")
		must(t, os.Symlink("x", w.path("a", "link")))
		var handles []nfs.FH
		for _, names := range [][]string{nil, {"a"}, {"a", "b", "c"}, {"a", "b", "c", "file"}, {"a", "link"}} {
			handles = append(handles, append(nfs.FH(nil), w.fh(names...)...))
		}
		w.restart()
		if res := w.read(handles[3], 0, 9); string(res.Data) != "data" {
			t.Errorf("READ: %v %q", res.Stat, res.Data)
		}
		for i, fh := range handles {
			if _, stat := w.getattr(fh); stat != nfs.OK {
				t.Errorf("handle %d: %v", i, stat)
			}
		}
		if got := w.fh("a", "b", "c", "file"); got.String() != handles[3].String() {
			t.Error("LOOKUP gives another handle than before")
		}
		w.server.Close()
		must(t, os.Rename(w.path("a", "b"), w.path("moved")))
		must(t, os.Remove(w.path("a", "link")))
		w.start()
		if res := w.read(handles[3], 0, 9); string(res.Data) != "data" {
			t.Errorf("READ of what was moved meanwhile: %v %q", res.Stat, res.Data)
		}
		_, stat := w.getattr(handles[4])
		wants(t, "what was removed meanwhile", stat, nfs.ErrStale)
	})
}

func TestHandlesOfNobodyAreRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w, other := serve(t, cfg), serveMore(t, cfg)
		w.put("file", "data")
		fh := w.fh("file")
		for _, tc := range []struct {
			what string
			fh   nfs.FH
			want nfs.Stat
		}{
			{"nothing", nil, nfs.ErrBadHandle},
			{"one octet", nfs.FH{1}, nfs.ErrBadHandle},
			{"zeros", make(nfs.FH, handleLen), nfs.ErrBadHandle},
			{"64 octets", make(nfs.FH, 64), nfs.ErrBadHandle},
			{"a part", fh[:handleLen-1], nfs.ErrBadHandle},
			{"another version", append(nfs.FH{3}, fh[1:]...), nfs.ErrBadHandle},
			{"the version of before", append(nfs.FH{1}, fh[1:40]...), nfs.ErrStale},
			{"another export", other.root(), nfs.ErrStale},
		} {
			_, stat := w.getattr(tc.fh)
			wants(t, tc.what, stat, tc.want)
		}
		for i := range fh {
			bad := append(nfs.FH(nil), fh...)
			bad[i] ^= 1
			if _, stat := w.getattr(bad); stat != nfs.ErrStale && stat != nfs.ErrBadHandle {
				t.Errorf("octet %d changed: %v", i, stat)
			}
		}
	})
}

// Ext4 and others reuse an inode number soon.
func TestAnInodeThatIsUsedAgainIsAnotherFile(t *testing.T) {
	w := serve(t, Config{})
	for i := range 50 {
		w.put("file", "first")
		old := w.fh("file")
		a := w.attr(old)
		if i%2 == 0 {
			w.restart()
		}
		must(t, os.Remove(w.path("file")))
		w.put("file", "second")
		b := w.attr(w.fh("file"))
		if res := w.read(old, 0, 10); res.Stat != nfs.ErrStale {
			t.Fatalf("inode %d, then %d: %v %q", a.FileID, b.FileID, res.Stat, res.Data)
		}
		must(t, os.Remove(w.path("file")))
	}
}

func TestWhatIsForgottenIsFoundAgain(t *testing.T) {
	for _, limits := range []Config{{MaxOpen: 3}, {MaxNames: 5}, {MaxOpen: 1, MaxNames: 4}} {
		onBoth(t, func(t *testing.T, cfg Config) {
			cfg.MaxOpen = limits.MaxOpen
			w := serve(t, cfg)
			if limits.MaxNames > 0 {
				w.server.tree.maxNames = limits.MaxNames // less than a Config allows
			}
			var handles []nfs.FH
			for i := range 20 {
				name := fmt.Sprint("file", i)
				w.put(fmt.Sprintf("d%d/e/%s", i, name), name)
				handles = append(handles, append(nfs.FH(nil), w.fh(fmt.Sprint("d", i), "e", name)...))
			}
			for range 2 {
				for i, fh := range handles {
					if res := w.read(fh, 0, 10); string(res.Data) != fmt.Sprint("file", i) {
						t.Errorf("file %d: %v %q", i, res.Stat, res.Data)
					}
				}
			}
			w.server.tree.mu.Lock()
			defer w.server.tree.mu.Unlock()
			tree := w.server.tree
			if limits.MaxOpen > 0 && tree.count > limits.MaxOpen {
				t.Errorf("%d descriptors, limit %d", tree.count, limits.MaxOpen)
			}
			if limits.MaxNames > 0 && tree.names.Len() > limits.MaxNames {
				t.Errorf("%d names, limit %d", tree.names.Len(), limits.MaxNames)
			}
			sum := 0
			for _, n := range tree.nodes {
				sum += n.opened()
			}
			if sum-1 != tree.count { // the root's own is not counted
				t.Errorf("%d descriptors are open, %d were counted", sum-1, tree.count)
			}
		})
	}
}

func TestWhatIsNotUsedIsClosed(t *testing.T) {
	w := serve(t, Config{})
	w.put("dir/file", "data")
	fh := w.fh("dir", "file")
	w.write(fh, 0, "DATA", nfs.Unstable)
	w.list(w.fh("dir"), 4096, true, nil)
	tree := w.server.tree
	tree.mu.Lock()
	n := tree.nodes[mustParse(t, fh)]
	tree.mu.Unlock()
	tree.sweep(n.used.Add(dataIdle))
	if n.files[forWriting] != nil || n.object == nil {
		t.Error("after some seconds, a file is open for writing, or its object is not open")
	}
	tree.sweep(n.used.Add(2 * idle))
	if tree.count != 0 || tree.opened.Len() != 0 {
		t.Errorf("after a minute, %d descriptors are open, of %d objects", tree.count, tree.opened.Len())
	}
	if res := w.read(fh, 0, 9); string(res.Data) != "DATA" {
		t.Errorf("READ: %v %q", res.Stat, res.Data)
	}
}

// closeAll closes all that is unused, as sweep does after a minute.
func (w *world) closeAll() { w.server.tree.sweep(time.Now().Add(2 * idle)) }

func TestAFileIsNotTakenForWhatHasItsName(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		w.put("dir/file", "first")
		fh := w.fh("dir", "file")
		w.closeAll()
		must(t, os.Rename(w.path("dir", "file"), w.path("elsewhere")))
		w.put("dir/file", "second")
		if res := w.read(fh, 0, 9); string(res.Data) != "first" {
			t.Errorf("READ: %v %q", res.Stat, res.Data)
		}
		must(t, os.Rename(w.path("dir"), w.path("old")))
		w.put("dir/file", "third")
		w.closeAll()
		if res := w.read(fh, 0, 9); string(res.Data) != "first" {
			t.Errorf("READ: %v %q", res.Stat, res.Data)
		}
	})
}

func TestWhatTheServerHasRenamedIsNotSearchedFor(t *testing.T) {
	w := serve(t, Config{})
	w.put("a/file", "data")
	w.put("b/other", "")
	fh := w.fh("a", "file")
	wants(t, "RENAME", w.rename(w.fh("a"), "file", w.fh("b"), "new"), nfs.OK)
	w.closeAll()
	slow := &slowVolume{volume: w.server.vol, listed: make(chan struct{})}
	close(slow.listed)
	w.server.tree.vol = slow
	if res := w.read(fh, 0, 9); string(res.Data) != "data" || slow.lists != 0 {
		t.Errorf("READ: %v %q, after listing %d directories", res.Stat, res.Data, slow.lists)
	}
}

func mustParse(t *testing.T, fh nfs.FH) key {
	t.Helper()
	k, err := sealer{}.parse(fh)
	must(t, err)
	return k
}

func TestCloseLeavesNothingOpen(t *testing.T) {
	const fds = "/proc/self/fd"
	count := func() int {
		entries, err := os.ReadDir(fds)
		if err != nil {
			t.Skip("this system does not list open files")
		}
		return len(entries)
	}
	onBoth(t, func(t *testing.T, cfg Config) {
		before := count()
		w := serve(t, cfg)
		for i := range 10 {
			w.put(fmt.Sprintf("dir%d/file", i), "data")
			fh := w.fh(fmt.Sprint("dir", i), "file")
			w.read(fh, 0, 1)
			w.write(fh, 0, "x", nfs.Unstable)
			w.list(w.fh(fmt.Sprint("dir", i)), 4096, true, nil)
			w.create(w.root(), fmt.Sprint("new", i), 0o666)
		}
		w.remove(w.root(), "new0")
		w.restart()
		w.server.Close()
		if after := count(); after != before {
			t.Errorf("%d descriptors are open, %d were before", after, before)
		}
	})
}
