package files

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-rdma/weft/internal/rpctest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/client"
	"github.com/weft-rdma/weft/nfs/folder"
	"github.com/weft-rdma/weft/oncrpc"
)

// everything lets all callers do what this process may.
var everything = folder.Config{SingleUser: true, Squash: folder.SquashNone}

// serve is a directory of a server, for a caller with the credential auth.
func serve(t *testing.T, dir string, cfg folder.Config, over rpctest.Over, auth *oncrpc.AuthSys) *Remote {
	t.Helper()
	cfg.Root = dir
	server, err := folder.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	root, err := server.Handle(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	mux := oncrpc.Mux{{Prog: nfs.Program, Low: nfs.V3, High: nfs.V3, Handler: server}}
	f, err := client.Dial(t.Context(), client.Config{NFS: over(t, mux), Root: root, Auth: auth})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &Remote{FS: f, Name: "nfs://server"}
}

// eachWay tests a copy from a directory of this machine to another, to one of a server,
// and from one, over RDMA and TCP.
func eachWay(t *testing.T, test func(t *testing.T, w way)) {
	base := func(t *testing.T) (string, string) {
		dir := t.TempDir()
		src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
		for _, d := range []string{src, dst} {
			if err := os.Mkdir(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return src, dst
	}
	t.Run("here", func(t *testing.T) {
		src, dst := base(t)
		test(t, way{src: src, dst: dst, from: Place{Local{}, src}, to: Place{Local{}, dst}})
	})
	for name, over := range rpctest.Transports {
		t.Run("to a server over "+name, func(t *testing.T) {
			src, dst := base(t)
			to := serve(t, dst, everything, over, nil)
			test(t, way{src: src, dst: dst, from: Place{Local{}, src}, to: Place{to, "/"}})
		})
		t.Run("from a server over "+name, func(t *testing.T) {
			src, dst := base(t)
			from := serve(t, src, everything, over, nil)
			test(t, way{src: src, dst: dst, from: Place{from, "/"}, to: Place{Local{}, dst}})
		})
	}
}

// A way is one that copies go.
type way struct {
	src, dst string // on this machine
	from, to Place  // the same as the copier has them
}

// source is a file of the source, or with "." all of it without its name.
func (w way) source(t *testing.T, name string) Place {
	if name == "." {
		if _, ok := w.from.Tree.(Local); ok {
			return Place{w.from.Tree, w.from.Path + string(filepath.Separator) + "."}
		}
		return w.from
	}
	p, err := w.from.in(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// copy copies files of the source into the destination and returns what went wrong.
func (w way) copy(t *testing.T, c *Copier, names ...string) (failed []error) {
	t.Helper()
	c.Failed = func(err error) { failed = append(failed, err) }
	c.Lost = c.Failed
	var sources []Place
	for _, n := range names {
		sources = append(sources, w.source(t, n))
	}
	plan, err := c.Plan(t.Context(), sources, w.to)
	if err == nil {
		var done int64
		c.Progress = func(n int64) { done += n }
		if err = c.Run(t.Context(), plan); err == nil && failed == nil && done != c.Work(plan) {
			t.Errorf("progress reports %d bytes of %d", done, c.Work(plan))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return failed
}

// mustCopy is copy of what has to succeed.
func (w way) mustCopy(t *testing.T, c *Copier, names ...string) {
	t.Helper()
	if failed := w.copy(t, c, names...); failed != nil {
		t.Fatal(failed)
	}
}
