package folder

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/weft-rdma/weft/nfs"
)

func (w *world) rmdir(dir nfs.FH, name string) nfs.Stat {
	w.t.Helper()
	var res nfs.WccRes
	w.call(nfs.ProcRmdir, &nfs.DirOpArgs{Dir: dir, Name: name}, &res)
	return res.Stat
}

func TestRemovalsAnswerWhatLinuxDoes(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		w.put("full/file", "")
		w.put("file", "")
		must(t, os.Mkdir(w.path("empty"), 0o777))
		root := w.root()
		for _, tc := range []struct {
			f    func(nfs.FH, string) nfs.Stat
			name string
			want nfs.Stat
		}{
			{w.remove, "none", nfs.ErrNoEnt},
			{w.remove, "empty", nfs.ErrIsDir},
			{w.remove, ".", nfs.ErrAcces},
			{w.remove, "..", nfs.ErrAcces},
			{w.remove, "", nfs.ErrAcces},
			{w.rmdir, "none", nfs.ErrNoEnt},
			{w.rmdir, "file", nfs.ErrNotDir},
			{w.rmdir, "full", nfs.ErrNotEmpty},
			{w.rmdir, ".", nfs.ErrInval},
			{w.rmdir, "..", nfs.ErrExist},
			{w.remove, "file", nfs.OK},
			{w.rmdir, "empty", nfs.OK},
		} {
			got := tc.f(root, tc.name)
			if cfg.portable && tc.want == nfs.ErrNotEmpty && got == nfs.ErrExist {
				continue // which os.Root makes of it on some systems
			}
			wants(t, tc.name, got, tc.want)
		}
	})
}

func TestHandlesOfWhatWasRemovedAreStale(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		w.put("file", "data")
		w.put("two", "data")
		must(t, os.Link(w.path("two"), w.path("names")))
		must(t, os.Mkdir(w.path("dir"), 0o777))
		root := w.root()
		file, two, dir := w.fh("file"), w.fh("two"), w.fh("dir")
		w.read(file, 0, 4)
		wants(t, "REMOVE", w.remove(root, "file"), nfs.OK)
		w.server.tree.mu.Lock()
		if w.server.tree.nodes[mustParse(t, file)] != nil {
			t.Error("what was removed is remembered, and takes its room on disk")
		}
		w.server.tree.mu.Unlock()
		wants(t, "READ of it", w.read(file, 0, 4).Stat, nfs.ErrStale)
		wants(t, "RMDIR", w.rmdir(root, "dir"), nfs.OK)
		_, stat := w.getattr(dir)
		wants(t, "GETATTR of it", stat, nfs.ErrStale)
		wants(t, "LOOKUP in it", w.lookup(dir, "x").Stat, nfs.ErrStale)
		wants(t, "REMOVE of one of two names", w.remove(root, "two"), nfs.OK)
		if res := w.read(two, 0, 4); string(res.Data) != "data" {
			t.Errorf("by the other name: %v %q", res.Stat, res.Data)
		}
		if a := w.attr(two); a.NLink != 1 {
			t.Errorf("%d links", a.NLink)
		}
	})
}

func TestRenamesAnswerWhatLinuxDoes(t *testing.T) {
	w := serve(t, Config{})
	for _, tc := range []struct {
		from, to string
		want     nfs.Stat
	}{
		{"file", "new", nfs.OK},
		{"file", "other", nfs.OK},
		{"file", "link", nfs.OK}, // the same file: nothing happens
		{"dir", "empty", nfs.OK},
		{"dir", "full", nfs.ErrNotEmpty},
		{"dir", "file", nfs.ErrNotDir},
		{"file", "dir", nfs.ErrIsDir},
		{"none", "file", nfs.ErrNoEnt},
		{".", "x", nfs.ErrInval},
		{"file", "..", nfs.ErrInval},
		{"", "x", nfs.ErrAcces},
		{"file", "a/b", nfs.ErrAcces},
	} {
		must(t, os.RemoveAll(w.dir))
		must(t, os.Mkdir(w.dir, 0o777))
		w.restart()
		w.put("file", "a")
		w.put("other", "b")
		w.put("full/x", "")
		must(t, os.Link(w.path("file"), w.path("link")))
		must(t, os.Mkdir(w.path("dir"), 0o777))
		must(t, os.Mkdir(w.path("empty"), 0o777))
		before, _ := os.Lstat(w.path(tc.from))
		got := w.rename(w.root(), tc.from, w.root(), tc.to)
		wants(t, tc.from+" to "+tc.to, got, tc.want)
		if after, err := os.Lstat(w.path(tc.to)); got == nfs.OK && (err != nil || !os.SameFile(before, after)) {
			t.Errorf("%s to %s: not there (%v)", tc.from, tc.to, err)
		}
	}
}

func TestHandlesSurviveRenames(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		w.put("a/b/file", "data")
		w.put("c/old", "old")
		root, file, b, old := w.root(), w.fh("a", "b", "file"), w.fh("a", "b"), w.fh("c", "old")
		wants(t, "RENAME of a directory", w.rename(root, "a", w.fh("c"), "z"), nfs.OK)
		if res := w.read(file, 0, 9); string(res.Data) != "data" {
			t.Errorf("READ: %v %q", res.Stat, res.Data)
		}
		wants(t, "RENAME over a file", w.rename(b, "file", w.fh("c"), "old"), nfs.OK)
		if got := w.fh("c", "old"); got.String() != file.String() {
			t.Error("LOOKUP by the new name gives another handle")
		}
		w.server.tree.mu.Lock()
		if w.server.tree.nodes[mustParse(t, old)] != nil {
			t.Error("what was renamed over is remembered, and takes its room on disk")
		}
		w.server.tree.mu.Unlock()
		_, stat := w.getattr(old)
		wants(t, "what was there before", stat, nfs.ErrStale)
		if res := w.read(file, 0, 9); string(res.Data) != "data" {
			t.Errorf("READ: %v %q", res.Stat, res.Data)
		}
		wants(t, "LOOKUP of ..", w.lookup(b, "..").Stat, nfs.OK)
		wants(t, "into itself", w.rename(root, "c", b, "loop"), nfs.ErrInval)
	})
}

func TestLinksCount(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		w.put("file", "data")
		must(t, os.Mkdir(w.path("dir"), 0o777))
		fh, dir := w.fh("file"), w.fh("dir")
		var res nfs.LinkRes
		w.call(nfs.ProcLink, &nfs.LinkArgs{File: fh, Link: nfs.DirOpArgs{Dir: dir, Name: "two"}}, &res)
		if res.Stat != nfs.OK || res.Attr.Attr.NLink != 2 || !res.DirWcc.Before.Follows || !res.DirWcc.After.Follows {
			t.Errorf("LINK: %+v", res)
		}
		if got := w.fh("dir", "two"); got.String() != fh.String() {
			t.Error("the link has another handle")
		}
		w.call(nfs.ProcLink, &nfs.LinkArgs{File: dir, Link: nfs.DirOpArgs{Dir: w.root(), Name: "d"}}, &res)
		wants(t, "LINK of a directory", res.Stat, nfs.ErrInval)
	})
}

// CREATE of an existing file locks the directory and then the file. No call may lock them in
// the other order.
func TestARenameFromAFileWaitsForNothing(t *testing.T) {
	w := serve(t, Config{})
	w.put("file", "")
	must(t, os.Mkdir(w.path("dir"), 0o777))
	file, dir := w.fh("file"), w.fh("dir")
	n := w.node("dir")
	n.change.Lock()
	defer n.change.Unlock()
	for _, tc := range []struct{ from, to nfs.FH }{{file, dir}, {dir, file}} {
		got := make(chan nfs.Stat, 1)
		go func() { got <- w.rename(tc.from, "file", tc.to, "new") }()
		select {
		case stat := <-got:
			wants(t, "RENAME with a file for a directory", stat, nfs.ErrNotDir)
		case <-time.After(10 * time.Second):
			t.Fatal("RENAME with a file for a directory waits for a lock")
		}
	}
}

// A file may get a hard link while it loses a name.
func TestAFileThatIsLinkedMeanwhileKeepsItsHandle(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("objects go by their names here")
	}
	w := serve(t, Config{Async: true})
	w.put("a/file", "data")
	must(t, os.Mkdir(w.path("b"), 0o777))
	b, fh := w.fh("b"), w.fh("a", "file")
	before, err := w.server.targetOf(w.server.tree.object(w.node("a")), "file")
	must(t, err)
	defer before.close()
	var res nfs.LinkRes
	w.call(nfs.ProcLink, &nfs.LinkArgs{File: fh, Link: nfs.DirOpArgs{Dir: b, Name: "file"}}, &res)
	wants(t, "LINK", res.Stat, nfs.OK)
	must(t, os.Remove(w.path("a", "file")))
	w.server.forgetUnnamed(before)
	_, stat := w.getattr(fh)
	wants(t, "GETATTR by its other name", stat, nfs.OK)
	wants(t, "REMOVE of that", w.remove(b, "file"), nfs.OK)
	_, stat = w.getattr(fh)
	wants(t, "GETATTR without a name", stat, nfs.ErrStale)
}

// node returns the node at a path of names, and releases it when the test ends.
func (w *world) node(names ...string) *node {
	w.t.Helper()
	n, _, err := w.server.resolve(new(call), w.fh(names...))
	must(w.t, err)
	w.t.Cleanup(func() { w.server.tree.release(n) })
	return n
}
