package folder

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// A shortVolume fails calls that need a descriptor or memory, from the nth of them on. It
// counts the objects that were made or removed nevertheless.
type shortVolume struct {
	volume
	err  error
	left int
}

func (v *shortVolume) short() error {
	if v.left--; v.left < 0 {
		return v.err
	}
	return nil
}

func (v *shortVolume) lookup(c *creds, dir object, name string) (object, info, error) {
	if err := v.short(); err != nil {
		return nil, info{}, err
	}
	return v.volume.lookup(c, dir, name)
}

func (v *shortVolume) parent(c *creds, dir object) (object, info, error) {
	if err := v.short(); err != nil {
		return nil, info{}, err
	}
	return v.volume.parent(c, dir)
}

func (v *shortVolume) inside(o object) error {
	if err := v.short(); err != nil {
		return err
	}
	return v.volume.inside(o)
}

func (v *shortVolume) open(o object, write bool) (file, error) {
	if err := v.short(); err != nil {
		return nil, err
	}
	return v.volume.open(o, write)
}

func (v *shortVolume) readDir(o object) (dirReader, error) {
	if err := v.short(); err != nil {
		return nil, err
	}
	return v.volume.readDir(o)
}

// A temporary lack of descriptors makes no handle stale: neither in a search after a restart,
// nor on the path to a file, nor in a procedure.
func TestWhatIsShortForAMomentMakesNothingStale(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EINTR, syscall.EAGAIN, syscall.ENOBUFS} {
		t.Run(errno.Error(), func(t *testing.T) {
			w := serve(t, Config{})
			w.put("a/b/file", "data")
			w.put("a/b/old", "")
			fh, dir := w.fh("a", "b", "file"), w.fh("a", "b")
			at := func(name string) nfs.DirOpArgs { return nfs.DirOpArgs{Dir: dir, Name: name} }
			for _, op := range []struct {
				proc nfs.Proc
				args encoder
			}{
				{nfs.ProcGetattr, &nfs.GetattrArgs{Object: fh}},
				{nfs.ProcLookup, &nfs.DirOpArgs{Dir: dir, Name: "file"}},
				{nfs.ProcLookup, &nfs.DirOpArgs{Dir: dir, Name: ".."}},
				{nfs.ProcRead, &nfs.ReadArgs{File: fh, Count: 9}},
				{nfs.ProcWrite, &nfs.WriteArgs{File: fh, Count: 4, Data: []byte("data")}},
				{nfs.ProcReaddir, &nfs.ReaddirArgs{Dir: dir, Count: 4096}},
				{nfs.ProcRename, &nfs.RenameArgs{From: at("old"), To: at("new")}},
				{nfs.ProcRename, &nfs.RenameArgs{From: at("new"), To: at("old")}},
				{nfs.ProcRemove, &nfs.DirOpArgs{Dir: dir, Name: "none"}},
			} {
				done := false
				for n := 0; !done; n++ {
					if n%2 == 0 {
						w.restart()
					} else {
						w.closeAll()
					}
					real := w.server.vol
					short := &shortVolume{volume: real, err: errno, left: n / 2}
					w.server.vol, w.server.tree.vol = short, short
					stat := w.status(op.proc, op.args)
					done = short.left >= 0 && n%2 == 1
					if short.left < 0 && stat != nfs.ErrJukebox {
						t.Errorf("%v without the call %d: %v", op.proc, n/2, stat)
					}
					w.server.vol, w.server.tree.vol = real, real
					if _, stat := w.getattr(fh); stat != nfs.OK {
						t.Fatalf("%v without the call %d, and later: %v", op.proc, n/2, stat)
					}
				}
			}
		})
	}
}

// status returns the status in a reply.
func (w *world) status(proc nfs.Proc, args encoder) nfs.Stat {
	w.t.Helper()
	b, err := w.try(proc, args)
	must(w.t, err)
	var reply oncrpc.Reply
	at, err := reply.Parse(b)
	must(w.t, err)
	d := oncrpc.NewDecoder(b[at:], "status")
	stat := nfs.Stat(d.Uint32())
	must(w.t, d.Err())
	return stat
}

// When descriptors run out, those of unused files are closed.
func TestWithoutDescriptorsTheServerHelpsItself(t *testing.T) {
	w := serve(t, Config{})
	for i := range 20 {
		w.put(fmt.Sprint("file", i), "data")
		w.read(w.fh(fmt.Sprint("file", i)), 0, 1)
	}
	w.put("dir/file", "data")
	fh := w.fh("dir", "file")
	w.closeAll()
	for i := range 20 {
		w.read(w.fh(fmt.Sprint("file", i)), 0, 1)
	}
	tree := w.server.tree
	before := tree.count
	real := w.server.vol
	full := &fullVolume{volume: real, tree: tree, limit: before}
	w.server.vol, tree.vol = full, full
	if res := w.read(fh, 0, 9); string(res.Data) != "data" {
		t.Errorf("READ: %v %q", res.Stat, res.Data)
	}
	w.server.vol, tree.vol = real, real
	for _, name := range []string{"file1", "file2"} {
		w.read(w.fh(name), 0, 1)
	}
	full.limit = tree.count
	w.server.vol, tree.vol = full, full
	if _, err := w.server.Handle(t.Context(), []string{"dir"}); err != nil {
		t.Errorf("a directory for MOUNT: %v", err)
	}
	w.server.vol, tree.vol = real, real
	if tree.count >= before {
		t.Errorf("%d descriptors are open, %d were", tree.count, before)
	}
}

// A fullVolume has a limited number of descriptors.
type fullVolume struct {
	volume
	tree  *tree
	limit int
}

func (v *fullVolume) lookup(c *creds, dir object, name string) (object, info, error) {
	v.tree.mu.Lock()
	full := v.tree.count >= v.limit
	v.tree.mu.Unlock()
	if full {
		return nil, info{}, syscall.EMFILE
	}
	return v.volume.lookup(c, dir, name)
}

// A host that asks for objects that do not exist does not keep others from being searched
// for.
func TestASearchIsSharedAmongHosts(t *testing.T) {
	w := serve(t, Config{})
	w.put("file", "data")
	fh := mustParse(t, w.fh("file"))
	w.restart()
	slow := &slowVolume{volume: w.server.vol, listed: make(chan struct{})}
	w.server.tree.vol = slow
	s := &w.server.tree.search
	var waiting atomic.Int32
	for i := range 2 * maxWanted {
		if _, err := s.begin(key{ino: 1 << 40, gen: uint64(i)}, elsewhere.Share()); err == nil {
			waiting.Add(1)
		}
	}
	if waiting.Load() != maxPerShare {
		t.Errorf("one host has %d of %d", waiting.Load(), maxWanted)
	}
	q, err := s.begin(fh, somebody.Share())
	must(t, err)
	close(slow.listed)
	select {
	case <-q.end:
	case <-time.After(time.Minute):
		t.Fatal("the search does not end")
	}
	if !q.found {
		t.Error("not found")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) > 1 {
		t.Errorf("asked by %v", s.asked)
	}
}

// The whole process runs out of descriptors for a while.
func TestAProcessWithoutDescriptorsKeepsItsHandles(t *testing.T) {
	w := serve(t, Config{})
	w.put("a/b/file", "data")
	fh := append(nfs.FH(nil), w.fh("a", "b", "file")...)
	w.restart()
	var taken []*os.File
	defer func() {
		for _, f := range taken {
			f.Close()
		}
	}()
	exhaust(t, &taken)
	for range 3 {
		if res := w.read(fh, 0, 9); res.Stat != nfs.ErrJukebox {
			t.Errorf("READ without descriptors: %v", res.Stat)
		}
	}
	for _, f := range taken {
		f.Close()
	}
	taken = nil
	if res := w.read(fh, 0, 9); string(res.Data) != "data" {
		t.Errorf("READ: %v %q", res.Stat, res.Data)
	}
}
