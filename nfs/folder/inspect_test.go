package folder

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

func TestAttributesAreThoseOfTheFile(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		w.put("file", "twelve bytes")
		must(t, os.Link(w.path("file"), w.path("other")))
		must(t, os.Chmod(w.path("file"), 0o640|os.ModeSetuid))
		must(t, os.Symlink("some/where", w.path("link")))
		for _, name := range []string{"file", "link", "other"} {
			a := w.attr(w.fh(name))
			fi, err := os.Lstat(w.path(name))
			must(t, err)
			if a.FileMode() != fi.Mode() {
				t.Errorf("%s: mode %v, want %v", name, a.FileMode(), fi.Mode())
			}
			if a.Size != uint64(fi.Size()) || a.Mtime != nfs.TimeOf(fi.ModTime()) {
				t.Errorf("%s: size %d, mtime %v, want %d, %v", name, a.Size, a.Mtime, fi.Size(), fi.ModTime())
			}
			if a.UID != uint32(os.Getuid()) || a.GID != uint32(os.Getgid()) {
				t.Errorf("%s: owner %d, group %d", name, a.UID, a.GID)
			}
		}
		a, b := w.attr(w.fh("file")), w.attr(w.fh("other"))
		if a != b || a.NLink != 2 {
			t.Errorf("two names of a file with %d links: %+v and %+v", a.NLink, a, b)
		}
		if root := w.attr(w.root()); root.Type != nfs.TypeDir || root.FileID == a.FileID || root.FSID != a.FSID {
			t.Errorf("root: %+v", root)
		}
	})
}

func TestLookupAnswersNamesThatAreNone(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		w.put("dir/file", "")
		for _, tc := range []struct {
			name string
			want nfs.Stat
		}{
			{"", nfs.ErrAcces},
			{"dir/file", nfs.ErrAcces},
			{"/", nfs.ErrAcces},
			{"dir\x00", nfs.ErrAcces},
			{strings.Repeat("n", 255), nfs.ErrNoEnt},
			{strings.Repeat("n", 256), nfs.ErrNameTooLong},
			{"none", nfs.ErrNoEnt},
			{"dir", nfs.OK},
		} {
			wants(t, "LOOKUP of "+tc.name, w.lookup(w.root(), tc.name).Stat, tc.want)
		}
		wants(t, "LOOKUP in a file", w.lookup(w.fh("dir", "file"), "x").Stat, nfs.ErrNotDir)
	})
}

func TestDotsLeadNowhereElse(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		w.put("a/b/file", "")
		for _, tc := range []struct{ names, want []string }{
			{[]string{"."}, nil},
			{[]string{".."}, nil},
			{[]string{"..", ".."}, nil},
			{[]string{"a", ".."}, nil},
			{[]string{"a", "b", "."}, []string{"a", "b"}},
			{[]string{"a", "b", ".."}, []string{"a"}},
		} {
			if got, want := w.fh(tc.names...), w.fh(tc.want...); got.String() != want.String() {
				t.Errorf("%q is %v, want %q: %v", tc.names, got, tc.want, want)
			}
		}
	})
}

func TestReadlinkReturnsWhatALinkHolds(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		long := strings.Repeat("x/", 1000)
		must(t, os.Symlink("/etc/passwd", w.path("abs")))
		must(t, os.Symlink(long, w.path("long")))
		w.put("file", "")
		for name, want := range map[string]nfs.ReadlinkRes{
			"abs":  {Path: "/etc/passwd"},
			"long": {Path: long},
			"file": {Stat: nfs.ErrInval},
		} {
			var res nfs.ReadlinkRes
			w.call(nfs.ProcReadlink, &nfs.ReadlinkArgs{Symlink: w.fh(name)}, &res)
			if res.Stat != want.Stat || res.Path != want.Path || !res.Attr.Follows {
				t.Errorf("%s: %v %q", name, res.Stat, res.Path)
			}
		}
	})
}

func TestFileSystemIsDescribed(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		var info nfs.FsinfoRes
		w.call(nfs.ProcFsinfo, &nfs.FsinfoArgs{Object: w.root()}, &info)
		if info.Stat != nfs.OK || info.ReadMax != 1<<20 || info.WriteMax != 1<<20 || info.MaxFileSize < 1<<40 {
			t.Errorf("FSINFO: %+v", info)
		}
		all := nfs.PropLink | nfs.PropSymlink | nfs.PropHomogeneous | nfs.PropCanSetTime
		if info.Properties != all {
			t.Errorf("properties %x, want %x", info.Properties, all)
		}
		var conf nfs.PathconfRes
		w.call(nfs.ProcPathconf, &nfs.PathconfArgs{Object: w.root()}, &conf)
		if conf.Stat != nfs.OK || conf.NameMax != 255 || !conf.NoTrunc || conf.LinkMax < 8 || !conf.CasePreserving || !conf.ChownRestricted {
			t.Errorf("PATHCONF: %+v", conf)
		}
		var stat nfs.FsstatRes
		w.call(nfs.ProcFsstat, &nfs.FsstatArgs{Object: w.root()}, &stat)
		if stat.Stat != nfs.OK || stat.FreeBytes > stat.TotalBytes || stat.AvailBytes > stat.FreeBytes || !stat.Attr.Follows {
			t.Errorf("FSSTAT: %+v", stat)
		}
	})
}

func TestCallsThatAreNoneOfVersion3AreRefused(t *testing.T) {
	w := serve(t, Config{})
	_, err := w.try(22, nil)
	if e, ok := asError[*oncrpc.AcceptError](err); !ok || e.Stat != oncrpc.ProcUnavail {
		t.Errorf("procedure 22: %v", err)
	}
	_, err = w.try(nfs.ProcGetattr, nil)
	if _, ok := asError[*oncrpc.DecodeError](err); !ok {
		t.Errorf("GETATTR without arguments: %v", err)
	}
	w.cred = oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorGSS}
	_, err = w.try(nfs.ProcGetattr, &nfs.GetattrArgs{Object: w.root()})
	if e, ok := asError[*oncrpc.RejectError](err); !ok || e.Auth != oncrpc.AuthTooWeak {
		t.Errorf("RPCSEC_GSS: %v", err)
	}
	w.cred = oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorSys, Body: []byte{1, 2, 3, 4}}
	_, err = w.try(nfs.ProcGetattr, &nfs.GetattrArgs{Object: w.root()})
	if e, ok := asError[*oncrpc.RejectError](err); !ok || e.Auth != oncrpc.AuthBadCred {
		t.Errorf("a credential cut short: %v", err)
	}
	if _, err := w.try(nfs.ProcNull, nil); err != nil {
		t.Errorf("NULL with any credential: %v", err)
	}
}

func TestAClosedServerAnswersNothing(t *testing.T) {
	w := serve(t, Config{})
	root := w.root()
	w.server.Close()
	if b, err := w.try(nfs.ProcGetattr, &nfs.GetattrArgs{Object: root}); err == nil {
		t.Errorf("answered % x", b)
	}
}

// The memory of a reply may contain another client's data before it is written.
//
// Claims: S-A-2
func TestRepliesHoldNothingOfWhatWasInTheirMemory(t *testing.T) {
	w := serve(t, Config{})
	w.put("dir/file", "0123456789abc")
	must(t, os.Symlink("target", w.path("dir", "link")))
	root, dir, fh := w.root(), w.fh("dir"), w.fh("dir", "file")
	at := nfs.DirOpArgs{Dir: dir, Name: "none"}
	for _, tc := range []struct {
		proc nfs.Proc
		args encoder
	}{
		{nfs.ProcNull, root},
		{nfs.ProcGetattr, &nfs.GetattrArgs{Object: fh}},
		{nfs.ProcSetattr, &nfs.SetattrArgs{Object: fh}},
		{nfs.ProcLookup, &nfs.DirOpArgs{Dir: dir, Name: "file"}},
		{nfs.ProcLookup, &at},
		{nfs.ProcAccess, &nfs.AccessArgs{Object: dir, Access: 0x3f}},
		{nfs.ProcReadlink, &nfs.ReadlinkArgs{Symlink: w.fh("dir", "link")}},
		{nfs.ProcRead, &nfs.ReadArgs{File: fh, Offset: 2, Count: 100}},
		{nfs.ProcRead, &nfs.ReadArgs{File: fh, Offset: 100, Count: 100}},
		{nfs.ProcRead, &nfs.ReadArgs{File: dir, Count: 100}},
		{nfs.ProcWrite, &nfs.WriteArgs{File: fh}},
		{nfs.ProcCreate, &nfs.CreateArgs{Where: at, Mode: nfs.Guarded}},
		{nfs.ProcRename, &nfs.RenameArgs{From: at, To: at}},
		{nfs.ProcReaddir, &nfs.ReaddirArgs{Dir: dir, Count: 1000}},
		{nfs.ProcReaddirplus, &nfs.ReaddirplusArgs{Dir: dir, DirCount: 500, MaxCount: 1000}},
		{nfs.ProcFsinfo, &nfs.FsinfoArgs{Object: root}},
		{nfs.ProcPathconf, &nfs.PathconfArgs{Object: root}},
		{nfs.ProcCommit, &nfs.CommitArgs{File: fh}},
	} {
		e := oncrpc.NewEncoder(nil)
		tc.args.Encode(&e)
		args, err := e.Finish()
		must(t, err)
		var replies [2]string
		for i, fill := range []byte{0x00, 0xa5} {
			os.Remove(w.path("dir", "none"))
			r := oncrpc.Request{
				Call: oncrpc.Call{XID: uint32(i), Prog: nfs.Program, Vers: nfs.V3, Proc: uint32(tc.proc), Cred: w.cred},
				Args: args, Network: strings.Repeat("x", i),
				Alloc: func(n int) []byte { return bytes.Repeat([]byte{fill}, n) },
			}
			b, err := w.server.ServeRPC(t.Context(), &r)
			must(t, err)
			if bytes.Contains(b, []byte{0xa5, 0xa5, 0xa5}) {
				t.Errorf("%v: what was in the memory is in the reply: % x", tc.proc, b)
			}
			replies[i] = string(b)
		}
		if len(replies[0]) != len(replies[1]) {
			t.Errorf("%v: %d and %d octets", tc.proc, len(replies[0]), len(replies[1]))
		}
	}
}
