//go:build unix

package folder

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-rdma/weft/nfs"
)

func TestFilesAreMadeWithTheModeOfTheClient(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		root := w.root()
		for _, umask := range []int{0, 0o077} {
			old := syscall.Umask(umask)
			w.create(root, "file", 0o666)
			w.create(root, "suid", 0o4755)
			w.mkdir(root, "dir", 0o1777)
			syscall.Umask(old)
			for name, want := range map[string]uint32{"file": 0o666, "suid": 0o4755, "dir": 0o1777} {
				if a := w.attr(w.fh(name)); a.Mode != want {
					t.Errorf("umask %o: %s has mode %o, want %o", umask, name, a.Mode, want)
				}
				must(t, os.Remove(w.path(name)))
			}
		}
	})
}

func TestCreateOfWhatIsThere(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		verf := nfs.Verifier{0xff, 2, 3, 4, 0x80, 6, 7, 8}
		zero := nfs.SetAttributes{Size: nfs.SetUint64{Set: true}}
		for _, tc := range []struct {
			what string
			name string
			args nfs.CreateArgs
			want nfs.Stat
			data string
		}{
			{"UNCHECKED", "file", nfs.CreateArgs{Mode: nfs.Unchecked, Attr: withMode(0)}, nfs.OK, "data"},
			{"UNCHECKED, truncated", "file", nfs.CreateArgs{Mode: nfs.Unchecked, Attr: zero}, nfs.OK, ""},
			{"GUARDED", "file", nfs.CreateArgs{Mode: nfs.Guarded}, nfs.ErrExist, "data"},
			{"EXCLUSIVE", "file", nfs.CreateArgs{Mode: nfs.Exclusive, Verf: verf}, nfs.ErrExist, "data"},
			{"UNCHECKED of a directory", "dir", nfs.CreateArgs{Mode: nfs.Unchecked}, nfs.ErrExist, "data"},
			{"UNCHECKED of a link", "link", nfs.CreateArgs{Mode: nfs.Unchecked, Attr: zero}, nfs.ErrExist, "data"},
			{"UNCHECKED of a link to nothing", "dangling", nfs.CreateArgs{Mode: nfs.Unchecked}, nfs.ErrExist, "data"},
		} {
			w.put("file", "data")
			os.Mkdir(w.path("dir"), 0o777)
			os.Symlink("file", w.path("link"))
			os.Symlink("nothing", w.path("dangling"))
			before := w.attr(w.fh("file"))
			tc.args.Where = nfs.DirOpArgs{Dir: w.root(), Name: tc.name}
			var res nfs.CreateRes
			w.call(nfs.ProcCreate, &tc.args, &res)
			wants(t, tc.what, res.Stat, tc.want)
			w.has("file", tc.data)
			if after := w.attr(w.fh("file")); after.Mode != before.Mode {
				t.Errorf("%s: mode %o, was %o", tc.what, after.Mode, before.Mode)
			}
			if res.Stat == nfs.OK && res.Object.FH.String() != w.fh("file").String() {
				t.Errorf("%s: another handle than LOOKUP's", tc.what)
			}
			if !res.DirWcc.Before.Follows || !res.DirWcc.After.Follows {
				t.Errorf("%s: no attributes of the directory", tc.what)
			}
		}
		if _, err := os.Lstat(w.path("nothing")); err == nil {
			t.Error("made what a link leads to")
		}
	})
}

func TestExclusiveCreateIsTheSameWhenSentAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		create := func(verf nfs.Verifier) nfs.CreateRes {
			var res nfs.CreateRes
			w.call(nfs.ProcCreate, &nfs.CreateArgs{Where: nfs.DirOpArgs{Dir: w.root(), Name: "file"}, Mode: nfs.Exclusive, Verf: verf}, &res)
			return res
		}
		mine, other := nfs.Verifier{0xff, 2, 3, 4, 0x80, 6, 7, 8}, nfs.Verifier{1, 1, 1, 1, 1, 1, 1, 1}
		first := create(mine)
		wants(t, "the first", first.Stat, nfs.OK)
		wants(t, "another client's", create(other).Stat, nfs.ErrExist)
		w.restart()
		again := create(mine)
		wants(t, "again, after a restart", again.Stat, nfs.OK)
		if again.Object.FH.String() != first.Object.FH.String() {
			t.Error("another file")
		}
		now := nfs.SetTime{How: nfs.SetToServerTime}
		wants(t, "SETATTR", w.setattr(first.Object.FH, nfs.SetAttributes{Atime: now, Mtime: now}), nfs.OK)
		wants(t, "after SETATTR", create(mine).Stat, nfs.ErrExist)
	})
}

func TestNamesThatCannotBeMade(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		w.put("file", "")
		fh := w.fh("file")
		for _, tc := range []struct {
			dir  nfs.FH
			name string
			want nfs.Stat
		}{
			{w.root(), "", nfs.ErrAcces},
			{w.root(), ".", nfs.ErrExist},
			{w.root(), "..", nfs.ErrExist},
			{w.root(), "../x", nfs.ErrAcces},
			{w.root(), "a\x00b", nfs.ErrAcces},
			{w.root(), strings.Repeat("n", 256), nfs.ErrNameTooLong},
			{w.root(), "file", nfs.ErrExist},
			{fh, "x", nfs.ErrNotDir},
			{nil, "x", nfs.ErrBadHandle},
		} {
			at := nfs.DirOpArgs{Dir: tc.dir, Name: tc.name}
			var made nfs.CreateRes
			var linked nfs.LinkRes
			for _, c := range []struct {
				proc nfs.Proc
				args encoder
				res  decoder
				stat *nfs.Stat
			}{
				{nfs.ProcCreate, &nfs.CreateArgs{Where: at, Mode: nfs.Guarded}, &made, &made.Stat},
				{nfs.ProcMkdir, &nfs.MkdirArgs{Where: at}, &made, &made.Stat},
				{nfs.ProcSymlink, &nfs.SymlinkArgs{Where: at, Path: "p"}, &made, &made.Stat},
				{nfs.ProcLink, &nfs.LinkArgs{File: fh, Link: at}, &linked, &linked.Stat},
				{nfs.ProcMknod, &nfs.MknodArgs{Where: at, Type: nfs.TypeFifo}, &made, &made.Stat},
			} {
				if c.proc == nfs.ProcMknod && cfg.portable {
					continue
				}
				w.call(c.proc, c.args, c.res)
				wants(t, c.proc.String()+" of "+tc.name, *c.stat, tc.want)
			}
		}
		if entries, _ := os.ReadDir(w.dir); len(entries) != 1 {
			t.Errorf("in the export: %v", entries)
		}
	})
}

func TestLinksAreMadeAsTheyAreGiven(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		for name, target := range map[string]string{"abs": "/etc/passwd", "up": "../../..", "odd": "\xff\xfe"} {
			var res nfs.CreateRes
			w.call(nfs.ProcSymlink, &nfs.SymlinkArgs{Where: nfs.DirOpArgs{Dir: w.root(), Name: name}, Path: target}, &res)
			wants(t, name, res.Stat, nfs.OK)
			if got, err := os.Readlink(w.path(name)); err != nil || got != target {
				t.Errorf("%s holds %q (%v), want %q", name, got, err, target)
			}
			if res.Attr.Attr.Type != nfs.TypeLnk {
				t.Errorf("%s is a %v", name, res.Attr.Attr.Type)
			}
		}
	})
}

func TestSpecialFilesAreMade(t *testing.T) {
	w := serve(t, Config{})
	for _, tc := range []struct {
		kind nfs.FileType
		spec nfs.Specdata
		want nfs.Stat
		root bool
	}{
		{nfs.TypeFifo, nfs.Specdata{}, nfs.OK, false},
		{nfs.TypeSock, nfs.Specdata{}, nfs.OK, false},
		{nfs.TypeChr, nfs.Specdata{Major: 1, Minor: 3}, nfs.OK, true},
		{nfs.TypeBlk, nfs.Specdata{Major: 0xfff, Minor: 0xfffff}, nfs.OK, true},
		{nfs.TypeBlk, nfs.Specdata{Major: 0x1000, Minor: 1}, nfs.ErrInval, true},
		{nfs.TypeChr, nfs.Specdata{Major: 1, Minor: 0x100000}, nfs.ErrInval, true},
		{nfs.TypeReg, nfs.Specdata{}, nfs.ErrBadType, false},
		{nfs.TypeDir, nfs.Specdata{}, nfs.ErrBadType, false},
		{nfs.TypeLnk, nfs.Specdata{}, nfs.ErrBadType, false},
	} {
		if tc.root && tc.want == nfs.OK && os.Geteuid() != 0 {
			tc.want = nfs.ErrPerm
		}
		var res nfs.CreateRes
		w.call(nfs.ProcMknod, &nfs.MknodArgs{Where: nfs.DirOpArgs{Dir: w.root(), Name: "node"}, Type: tc.kind, Spec: tc.spec, Attr: withMode(0o620)}, &res)
		if res.Stat != tc.want {
			t.Errorf("MKNOD of %v %v: %v, want %v", tc.kind, tc.spec, res.Stat, tc.want)
		}
		if res.Stat != nfs.OK {
			continue
		}
		if a := res.Attr.Attr; a.Type != tc.kind || a.Rdev != tc.spec || a.Mode != 0o620 {
			t.Errorf("MKNOD of %v %v made %v %v %o", tc.kind, tc.spec, a.Type, a.Rdev, a.Mode)
		}
		wants(t, "READ of it", w.read(res.Object.FH, 0, 1).Stat, nfs.ErrInval)
		wants(t, "WRITE to it", w.write(res.Object.FH, 0, "x", nfs.Unstable).Stat, nfs.ErrInval)
		must(t, os.Remove(w.path("node")))
	}
}
