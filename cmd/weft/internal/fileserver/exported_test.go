package fileserver

import (
	"slices"
	"sync"
	"testing"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/folder"
	"github.com/weft-rdma/weft/oncrpc"
)

// What observes a server learns which exports there are, and of which each call is.
func TestCallsHaveTheNamesOfTheirExports(t *testing.T) {
	var mu sync.Mutex
	var names []string
	var of func(*oncrpc.Request) string
	export := func(name string) Export {
		return Export{Name: name, Files: folder.Config{Root: t.TempDir(), SingleUser: true}}
	}
	one, two := export("/one"), export("/two")
	s := start(t, func(c *Config) {
		c.Exports = []Export{one, two}
		c.Exported = func(n []string, f func(*oncrpc.Request) string) {
			mu.Lock()
			defer mu.Unlock()
			names, of = n, f
		}
	})
	told := func(fh nfs.FH, proc nfs.Proc) ([]string, string) {
		e := oncrpc.NewEncoder(nil)
		fh.Encode(&e)
		args, err := e.Finish()
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		return names, of(&oncrpc.Request{Call: oncrpc.Call{Prog: nfs.Program, Vers: nfs.V3, Proc: uint32(proc)}, Args: args})
	}
	c := overTCP(t, s.TCP().String())
	handles := make(map[string]nfs.FH)
	for _, name := range []string{"/one", "/two"} {
		res, err := mnt(c, name)
		if err != nil {
			t.Fatal(err)
		}
		handles[name] = res.FH
		all, got := told(res.FH, nfs.ProcGetattr)
		if !slices.Equal(all, []string{"/one", "/two"}) || got != name {
			t.Errorf("%s of %v, want %s", got, all, name)
		}
		if _, got := told(res.FH, nfs.ProcNull); got != "" {
			t.Errorf("NULL is of %s", got)
		}
	}
	three := export("/three")
	if err := s.Reload([]Export{two, three}); err != nil {
		t.Fatal(err)
	}
	if all, got := told(handles["/one"], nfs.ProcGetattr); !slices.Equal(all, []string{"/two", "/three"}) || got != "" {
		t.Errorf("a handle of a removed export is of %q among %v", got, all)
	}
	if _, got := told(nfs.FH("forged"), nfs.ProcGetattr); got != "" {
		t.Errorf("a forged handle is of %s", got)
	}
	if res, err := look(c, handles["/one"]); err != nil || res.Stat != nfs.ErrStale {
		t.Errorf("a removed export: %v, %v, want %v", res.Stat, err, nfs.ErrStale)
	}
	if res, err := look(c, handles["/two"]); err != nil || res.Stat != nfs.OK {
		t.Errorf("one that stays: %v, %v", res.Stat, err)
	}
}
