package folder

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// FuzzServe makes calls with fuzzed arguments. It replaces the octets of a placeholder by a
// valid handle.
func FuzzServe(f *testing.F) {
	outside := f.TempDir()
	must(f, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o666))
	w := serve(f, Config{Async: true, MaxOpen: 8})
	must(f, os.Symlink(outside, w.path("out")))
	must(f, os.Symlink(filepath.Join(outside, "secret"), w.path("link")))
	w.put("dir/file", "data")

	marks := map[string][]string{"@ROOT": nil, "@DIR_": {"dir"}, "@FILE": {"dir", "file"}, "@OUT_": {"out"}, "@LINK": {"link"}}
	mark := func(m string) nfs.FH { return append(nfs.FH(m), make([]byte, handleLen-len(m))...) }
	seed := func(proc nfs.Proc, args encoder) {
		e := oncrpc.NewEncoder(nil)
		args.Encode(&e)
		b, err := e.Finish()
		must(f, err)
		f.Add(uint32(proc), b)
	}
	for m := range marks {
		fh := mark(m)
		at := nfs.DirOpArgs{Dir: fh, Name: "secret"}
		seed(nfs.ProcGetattr, &nfs.GetattrArgs{Object: fh})
		seed(nfs.ProcSetattr, &nfs.SetattrArgs{Object: fh, New: size(3)})
		seed(nfs.ProcLookup, &at)
		seed(nfs.ProcLookup, &nfs.DirOpArgs{Dir: fh, Name: ".."})
		seed(nfs.ProcAccess, &nfs.AccessArgs{Object: fh, Access: 0x3f})
		seed(nfs.ProcRead, &nfs.ReadArgs{File: fh, Count: 10})
		seed(nfs.ProcWrite, &nfs.WriteArgs{File: fh, Count: 2, Data: []byte("xy")})
		seed(nfs.ProcCreate, &nfs.CreateArgs{Where: at, Mode: nfs.Exclusive})
		seed(nfs.ProcMkdir, &nfs.MkdirArgs{Where: at, Attr: withMode(0o777)})
		seed(nfs.ProcSymlink, &nfs.SymlinkArgs{Where: at, Path: outside})
		seed(nfs.ProcMknod, &nfs.MknodArgs{Where: at, Type: nfs.TypeFifo})
		seed(nfs.ProcRemove, &at)
		seed(nfs.ProcRename, &nfs.RenameArgs{From: at, To: nfs.DirOpArgs{Dir: mark("@ROOT"), Name: "x"}})
		seed(nfs.ProcLink, &nfs.LinkArgs{File: fh, Link: nfs.DirOpArgs{Dir: mark("@DIR_"), Name: "x"}})
		seed(nfs.ProcReaddir, &nfs.ReaddirArgs{Dir: fh, Count: 1000})
		seed(nfs.ProcReaddirplus, &nfs.ReaddirplusArgs{Dir: fh, DirCount: 1000, MaxCount: 1000})
		seed(nfs.ProcCommit, &nfs.CommitArgs{File: fh})
	}
	handles := make(map[string]nfs.FH)
	for m, names := range marks {
		handles[m] = w.fh(names...)
	}

	f.Fuzz(func(t *testing.T, proc uint32, args []byte) {
		w.t = t
		w.put("dir/file", "data")
		for m, fh := range handles {
			args = bytes.ReplaceAll(args, mark(m), fh)
		}
		r := oncrpc.Request{Call: oncrpc.Call{Prog: nfs.Program, Vers: nfs.V3, Proc: proc % 23, Cred: w.cred}, Message: args, Args: args}
		reply, err := w.server.ServeRPC(t.Context(), &r)
		if (reply == nil) == (err == nil) {
			t.Errorf("reply % x, error %v", reply, err)
		}
		b, err := os.ReadFile(filepath.Join(outside, "secret"))
		entries, _ := os.ReadDir(outside)
		if err != nil || string(b) != "secret" || len(entries) != 1 {
			t.Fatalf("outside: %q (%v), %v", b, err, entries)
		}
	})
}
