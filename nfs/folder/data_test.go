package folder

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// Claims: P5667-4-7
func TestReadsReturnWhatTheFileHas(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		w.put("file", "0123456789")
		w.put("empty", "")
		w.put("big", strings.Repeat("x", 1<<20+5))
		for _, tc := range []struct {
			file  string
			off   uint64
			count uint32
			want  string
			eof   bool
		}{
			{"file", 0, 10, "0123456789", true},
			{"file", 0, 9, "012345678", false},
			{"file", 3, 4, "3456", false},
			{"file", 8, 100, "89", true},
			{"file", 10, 1, "", true},
			{"file", 11, 1, "", true},
			{"file", math.MaxUint64, 1, "", true},
			{"file", math.MaxInt64, math.MaxUint32, "", true},
			{"file", 0, 0, "", false},
			{"empty", 0, 10, "", true},
			{"empty", 0, 0, "", true},
			{"big", 0, 2 << 20, strings.Repeat("x", 1<<20), false},
			{"big", 1 << 20, 2 << 20, "xxxxx", true},
		} {
			res := w.read(w.fh(tc.file), tc.off, tc.count)
			if res.Stat != nfs.OK || string(res.Data) != tc.want || res.EOF != tc.eof || !res.Attr.Follows {
				t.Errorf("%+v: %v, %d octets, eof %v, attributes %v", tc, res.Stat, len(res.Data), res.EOF, res.Attr.Follows)
			}
		}
		wants(t, "READ of a directory", w.read(w.root(), 0, 1).Stat, nfs.ErrInval)
	})
}

func TestReadsGoIntoTheMemoryOfTheTransport(t *testing.T) {
	w := serve(t, Config{})
	w.put("file", "0123456789")
	args := nfs.ReadArgs{File: w.fh("file"), Count: 8}
	e := oncrpc.NewEncoder(nil)
	args.Encode(&e)
	msg, err := e.Finish()
	must(t, err)
	var buf []byte
	r := oncrpc.Request{Call: oncrpc.Call{XID: 1, Prog: nfs.Program, Vers: nfs.V3, Proc: uint32(nfs.ProcRead), Cred: w.cred}, Args: msg,
		Alloc: func(n int) []byte { buf = make([]byte, n); return buf }}
	reply, err := w.server.ServeRPC(t.Context(), &r)
	must(t, err)
	if &reply[0] != &buf[0] || !bytes.Contains(buf, []byte("01234567")) {
		t.Error("the data are elsewhere")
	}
}

func TestWritesAreThereAndSaySo(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		w.put("file", "0123456789")
		fh := w.fh("file")
		for _, how := range []nfs.StableHow{nfs.Unstable, nfs.DataSync, nfs.FileSync} {
			res := w.write(fh, 3, "abc", how)
			if res.Stat != nfs.OK || res.Count != 3 || res.Committed < how {
				t.Errorf("WRITE %v: %+v", how, res)
			}
			if !res.Wcc.Before.Follows || res.Wcc.Before.Size != 10 || res.Wcc.After.Attr.Size != 10 {
				t.Errorf("WRITE %v: before %+v, after %+v", how, res.Wcc.Before, res.Wcc.After)
			}
		}
		w.has("file", "012abc6789")
		before := w.attr(fh)
		if res := w.write(fh, 3, "", nfs.FileSync); res.Stat != nfs.OK || res.Count != 0 {
			t.Errorf("WRITE of nothing: %+v", res)
		}
		if after := w.attr(fh); after.Mtime != before.Mtime {
			t.Error("a WRITE of nothing has changed mtime")
		}
		wants(t, "WRITE beyond all files", w.write(fh, math.MaxInt64, "x", nfs.Unstable).Stat, nfs.ErrFBig)
		wants(t, "WRITE beyond all numbers", w.write(fh, math.MaxUint64, "x", nfs.Unstable).Stat, nfs.ErrFBig)
		wants(t, "WRITE to a directory", w.write(w.root(), 0, "x", nfs.Unstable).Stat, nfs.ErrInval)
		w.has("file", "012abc6789")
	})
}

func TestOffsetsBeyondFourGiBLeaveHoles(t *testing.T) {
	w := serve(t, Config{})
	const far = 5<<30 + 7
	fh := w.create(w.root(), "file", 0o644).Object.FH
	if res := w.write(fh, far, "end", nfs.FileSync); res.Stat != nfs.OK {
		t.Fatal(res.Stat)
	}
	a := w.attr(fh)
	if a.Size != far+3 || a.Used > 1<<20 {
		t.Errorf("size %d, used %d", a.Size, a.Used)
	}
	if res := w.read(fh, far, 10); string(res.Data) != "end" || !res.EOF {
		t.Errorf("%q, eof %v", res.Data, res.EOF)
	}
	if res := w.read(fh, 4<<30, 5); !bytes.Equal(res.Data, make([]byte, 5)) || res.EOF {
		t.Errorf("in the hole: %q, eof %v", res.Data, res.EOF)
	}
}

func commit(w *world, fh nfs.FH) nfs.CommitRes {
	var res nfs.CommitRes
	w.call(nfs.ProcCommit, &nfs.CommitArgs{File: fh}, &res)
	return res
}

func TestVerifierIsOneOfTheServersRun(t *testing.T) {
	w := serve(t, Config{})
	w.put("file", "")
	fh := w.fh("file")
	written := w.write(fh, 0, "a", nfs.Unstable).Verf
	if got := commit(w, fh); got.Stat != nfs.OK || got.Verf != written {
		t.Errorf("COMMIT: %+v, WRITE's verifier %x", got, written)
	}
	w.restart()
	if got := commit(w, fh); got.Stat != nfs.OK || got.Verf == written {
		t.Errorf("after a restart: %v, verifier %x as before", got.Stat, got.Verf)
	}
	wants(t, "COMMIT of a directory", commit(w, w.root()).Stat, nfs.ErrInval)
}

// A failingVolume has files whose sync fails.
type failingVolume struct {
	volume
	fail *bool
}

type failingFile struct {
	file
	fail *bool
}

func (v failingVolume) open(o object, write bool) (file, error) {
	f, err := v.volume.open(o, write)
	return failingFile{f, v.fail}, err
}

func (f failingFile) sync() error {
	if *f.fail {
		return os.ErrDeadlineExceeded
	}
	return f.file.sync()
}

func TestAFailedSyncChangesTheVerifier(t *testing.T) {
	w := serve(t, Config{})
	w.put("file", "")
	fail := false
	vol := failingVolume{w.server.vol, &fail}
	w.server.vol, w.server.tree.vol = vol, vol
	fh := w.fh("file")
	first := w.write(fh, 0, "a", nfs.Unstable).Verf
	fail = true
	wants(t, "COMMIT", commit(w, fh).Stat, nfs.ErrIO)
	fail = false
	if got := commit(w, fh); got.Stat != nfs.OK || got.Verf == first {
		t.Errorf("the next COMMIT: %v, verifier %x, of the WRITE %x", got.Stat, got.Verf, first)
	}
	fail = true
	second := w.write(fh, 0, "a", nfs.Unstable).Verf
	wants(t, "WRITE", w.write(fh, 0, "b", nfs.FileSync).Stat, nfs.ErrIO)
	if third := w.write(fh, 0, "c", nfs.Unstable).Verf; third == second {
		t.Error("the verifier is the same after a WRITE that was not stable")
	}
}

func TestAReadOnlyExportIsNotChanged(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		cfg.ReadOnly = true
		w := serve(t, cfg)
		w.put("dir/file", "data")
		root, fh := w.root(), w.fh("dir", "file")
		at := nfs.DirOpArgs{Dir: root, Name: "new"}
		old := nfs.DirOpArgs{Dir: root, Name: "dir"}
		var made nfs.CreateRes
		var wcc nfs.WccRes
		var renamed nfs.RenameRes
		var linked nfs.LinkRes
		wants(t, "WRITE", w.write(fh, 0, "x", nfs.Unstable).Stat, nfs.ErrROFS)
		wants(t, "SETATTR", w.setattr(fh, withMode(0)), nfs.ErrROFS)
		wants(t, "COMMIT", commit(w, fh).Stat, nfs.ErrROFS)
		for _, tc := range []struct {
			proc nfs.Proc
			args encoder
			res  decoder
			stat *nfs.Stat
		}{
			{nfs.ProcCreate, &nfs.CreateArgs{Where: at}, &made, &made.Stat},
			{nfs.ProcMkdir, &nfs.MkdirArgs{Where: at}, &made, &made.Stat},
			{nfs.ProcSymlink, &nfs.SymlinkArgs{Where: at, Path: "x"}, &made, &made.Stat},
			{nfs.ProcMknod, &nfs.MknodArgs{Where: at, Type: nfs.TypeFifo}, &made, &made.Stat},
			{nfs.ProcRemove, &nfs.DirOpArgs{Dir: w.fh("dir"), Name: "file"}, &wcc, &wcc.Stat},
			{nfs.ProcRmdir, &old, &wcc, &wcc.Stat},
			{nfs.ProcRename, &nfs.RenameArgs{From: old, To: at}, &renamed, &renamed.Stat},
			{nfs.ProcLink, &nfs.LinkArgs{File: fh, Link: at}, &linked, &linked.Stat},
		} {
			w.call(tc.proc, tc.args, tc.res)
			wants(t, tc.proc.String(), *tc.stat, nfs.ErrROFS)
		}
		w.has("dir/file", "data")
		if entries, _ := os.ReadDir(w.dir); len(entries) != 1 {
			t.Errorf("in the export: %v", entries)
		}
		var acc nfs.AccessRes
		w.call(nfs.ProcAccess, &nfs.AccessArgs{Object: fh, Access: 0x3f}, &acc)
		if acc.Access != nfs.AccessRead {
			t.Errorf("ACCESS: %x", acc.Access)
		}
	})
}
