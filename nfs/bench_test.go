package nfs_test

import (
	"fmt"
	"testing"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// BenchmarkMessage is a message both ways: encoded by one side, decoded by the other.
func BenchmarkMessage(b *testing.B) {
	b.Run("GETATTR", func(b *testing.B) {
		in, out := nfs.GetattrRes{Attr: benchAttr}, nfs.GetattrRes{}
		bothWays(b, in.Encode, out.Decode)
	})
	b.Run("LOOKUP", func(b *testing.B) {
		attr := nfs.PostOpAttr{Follows: true, Attr: benchAttr}
		in, out := nfs.LookupRes{Object: make(nfs.FH, 32), Attr: attr, DirAttr: attr}, nfs.LookupRes{}
		bothWays(b, in.Encode, out.Decode)
	})
	b.Run("WRITE", func(b *testing.B) {
		before := nfs.Before(&benchAttr)
		wcc := nfs.WccData{Before: before, After: nfs.PostOpAttr{Follows: true, Attr: benchAttr}}
		in, out := nfs.WriteRes{Wcc: wcc, Count: 4096}, nfs.WriteRes{}
		bothWays(b, in.Encode, out.Decode)
	})
	b.Run("READDIRPLUS", func(b *testing.B) {
		entries, dir := listing(100)
		room := make([]byte, 0, 64<<10)
		var out nfs.ReaddirplusRes
		b.ReportAllocs()
		for b.Loop() {
			w := nfs.NewReaddirplus(oncrpc.NewEncoder(room), &dir, nfs.Verifier{}, 64<<10, 64<<10)
			for i := range entries {
				w.Add(&entries[i])
			}
			wire, err := w.Finish(true)
			if err != nil {
				b.Fatal(err)
			}
			d := oncrpc.NewDecoder(wire, "READDIRPLUS3res")
			if out.Decode(&d); d.End() != nil || len(out.Entries) != len(entries) {
				b.Fatal(d.Err(), len(out.Entries))
			}
		}
	})
}

func bothWays(b *testing.B, encode func(*oncrpc.Encoder), decode func(*oncrpc.Decoder)) {
	room := make([]byte, 0, 1024)
	var e oncrpc.Encoder
	var d oncrpc.Decoder
	b.ReportAllocs()
	for b.Loop() {
		e = oncrpc.NewEncoder(room)
		encode(&e)
		wire, err := e.Finish()
		if err != nil {
			b.Fatal(err)
		}
		d = oncrpc.NewDecoder(wire, "results")
		if decode(&d); d.End() != nil {
			b.Fatal(d.Err())
		}
	}
}

var benchAttr = nfs.Attributes{Type: nfs.TypeReg, Mode: 0o644, NLink: 1, Size: 1 << 20, Used: 1 << 20, FileID: 7}

// listing returns n files and their directory.
func listing(n int) (entries []nfs.Entry, dir nfs.PostOpAttr) {
	for i := range n {
		entries = append(entries, nfs.Entry{
			FileID: uint64(i), Name: fmt.Sprintf("file number %d", i), Cookie: uint64(i + 1),
			Attr:   nfs.PostOpAttr{Follows: true, Attr: benchAttr},
			Object: nfs.PostOpFH{Follows: true, FH: make(nfs.FH, 32)},
		})
	}
	return entries, nfs.PostOpAttr{Follows: true, Attr: benchAttr}
}
