package folder

import (
	"strings"
	"testing"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// benchmark repeats one call, with memory for replies as a transport provides it.
func benchmark(b *testing.B, w *world, proc nfs.Proc, args encoder, octets int64) {
	e := oncrpc.NewEncoder(nil)
	c := oncrpc.Call{XID: 1, Prog: nfs.Program, Vers: nfs.V3, Proc: uint32(proc), Cred: w.cred}
	c.Encode(&e)
	args.Encode(&e)
	msg, err := e.Finish()
	must(b, err)
	buf := make([]byte, 2<<20)
	r := oncrpc.Request{Message: msg, Alloc: func(n int) []byte { return buf[:n] }}
	at, err := r.Call.Parse(msg)
	must(b, err)
	r.Args = msg[at:]
	b.SetBytes(octets)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.server.ServeRPC(b.Context(), &r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkServe(b *testing.B) {
	w := serve(b, Config{Async: true})
	big := strings.Repeat("x", 1<<20)
	w.put("file", big)
	fh := w.fh("file")
	for _, tc := range []struct {
		name   string
		proc   nfs.Proc
		args   encoder
		octets int64
	}{
		{"GETATTR", nfs.ProcGetattr, &nfs.GetattrArgs{Object: fh}, 0},
		{"LOOKUP", nfs.ProcLookup, &nfs.DirOpArgs{Dir: w.root(), Name: "file"}, 0},
		{"ACCESS", nfs.ProcAccess, &nfs.AccessArgs{Object: fh, Access: 0x3f}, 0},
		{"READ 4 KiB", nfs.ProcRead, &nfs.ReadArgs{File: fh, Count: 4 << 10}, 4 << 10},
		{"READ 1 MiB", nfs.ProcRead, &nfs.ReadArgs{File: fh, Count: 1 << 20}, 1 << 20},
		{"WRITE 4 KiB", nfs.ProcWrite, &nfs.WriteArgs{File: fh, Count: 4 << 10, Data: []byte(big[:4<<10])}, 4 << 10},
		{"WRITE 1 MiB", nfs.ProcWrite, &nfs.WriteArgs{File: fh, Count: 1 << 20, Data: []byte(big)}, 1 << 20},
	} {
		b.Run(tc.name, func(b *testing.B) { benchmark(b, w, tc.proc, tc.args, tc.octets) })
		if w.cred.Flavor == oncrpc.FlavorSys && tc.proc == nfs.ProcRead {
			b.Run(tc.name+" by another user", func(b *testing.B) {
				w.as(100, 100, 1, 2, 3)
				benchmark(b, w, tc.proc, tc.args, tc.octets)
				w.as(0, 0)
			})
		}
	}
}
