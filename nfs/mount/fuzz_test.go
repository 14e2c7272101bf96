package mount

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// FuzzMount makes a call of MOUNT with fuzzed arguments. The server replies or returns an
// error, asks for single names only, and keeps its list within the limit.
func FuzzMount(f *testing.F) {
	path := func(p string) []byte {
		e := oncrpc.NewEncoder(nil)
		(&nfs.MountPath{Path: p}).Encode(&e)
		b, err := e.Finish()
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	for proc := range uint32(7) {
		for _, p := range []string{"", "/", "/srv/data", "/srv/data/a/b", "../../etc", "//a//./b/..", "/srv/database", "a\x00b", strings.Repeat("a/", 500), strings.Repeat("n", 256)} {
			f.Add(uint32(3), proc, path(p))
		}
		f.Add(uint32(1), proc, path("/"))
		f.Add(uint32(3), proc, []byte(nil))
		f.Add(uint32(3), proc, []byte{0xff, 0xff, 0xff, 0xff, 1})
	}
	s, err := New(Export{Path: "/srv/data", Handle: func(_ context.Context, names []string) (nfs.FH, error) {
		for _, name := range names {
			if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || len(name) > nfs.MaxMountName {
				f.Errorf("asked for %q", names)
			}
		}
		return nfs.FH("handle"), nil
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, vers, proc uint32, args []byte) {
		before := slices.Clone(args)
		r := &oncrpc.Request{
			Call: oncrpc.Call{XID: 7, Prog: nfs.MountProgram, Vers: 1 + vers%3, Proc: proc}, Args: args,
			Remote: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 700},
		}
		b, err := s.ServeRPC(t.Context(), r)
		if (b == nil) == (err == nil) {
			t.Fatalf("reply % x, error %v", b, err)
		}
		if !slices.Equal(args, before) {
			t.Error("the arguments were written to")
		}
		if err == nil {
			var reply oncrpc.Reply
			if _, err := reply.Parse(b); err != nil || reply.XID != 7 {
				t.Errorf("reply % x: %v", b, err)
			}
		}
		if n := len(s.mounts.list()); n > maxRemembered {
			t.Errorf("%d mounts are remembered", n)
		}
	})
}
