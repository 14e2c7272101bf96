//go:build linux

package folder

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// own makes a file that belongs to a user.
func (w *world) own(name string, mode os.FileMode, uid, gid int) {
	w.t.Helper()
	if _, err := os.Lstat(w.path(name)); err != nil {
		w.put(name, "data")
	}
	must(w.t, os.Chown(w.path(name), uid, gid))
	must(w.t, os.Chmod(w.path(name), mode))
}

func (w *world) mayDo(fh nfs.FH) nfs.Access {
	w.t.Helper()
	var res nfs.AccessRes
	w.call(nfs.ProcAccess, &nfs.AccessArgs{Object: fh, Access: 0x3f}, &res)
	wants(w.t, "ACCESS", res.Stat, nfs.OK)
	return res.Access
}

func TestRightsAreTheCallers(t *testing.T) {
	needRoot(t)
	w := serve(t, Config{})
	must(t, os.Chmod(w.dir, 0o755))
	const (
		r, x  = nfs.AccessRead, nfs.AccessExecute
		write = nfs.AccessModify | nfs.AccessExtend
	)
	for _, tc := range []struct {
		mode     os.FileMode
		uid, gid uint32
		gids     []uint32
		access   nfs.Access
		read     nfs.Stat
		write    nfs.Stat
	}{
		{0o640, 100, 1, nil, r | write, nfs.OK, nfs.OK},
		{0o640, 1, 200, nil, r, nfs.OK, nfs.ErrAcces},
		{0o640, 1, 1, []uint32{5, 200}, r, nfs.OK, nfs.ErrAcces},
		{0o640, 1, 1, []uint32{5}, 0, nfs.ErrAcces, nfs.ErrAcces},
		{0o604, 1, 200, nil, 0, nfs.ErrAcces, nfs.ErrAcces},
		{0o000, 100, 1, nil, 0, nfs.OK, nfs.OK}, // the owner, of open files
		{0o000, 0, 0, nil, r | write, nfs.OK, nfs.OK},
		{0o111, 0, 0, nil, r | write | x, nfs.OK, nfs.OK},
		{0o111, 1, 1, nil, x, nfs.OK, nfs.ErrAcces}, // to execute it is to read it
		{0o640, 0, 200, nil, r | write, nfs.OK, nfs.OK},
		{0o640, 1<<32 - 1, 1<<32 - 1, nil, 0, nfs.ErrAcces, nfs.ErrAcces},
	} {
		w.own("file", tc.mode, 100, 200)
		fh := w.fh("file")
		w.as(tc.uid, tc.gid, tc.gids...)
		if got := w.mayDo(fh); got != tc.access {
			t.Errorf("%o for %d:%d %v: ACCESS %x, want %x", tc.mode, tc.uid, tc.gid, tc.gids, got, tc.access)
		}
		if got := w.read(fh, 0, 1).Stat; got != tc.read {
			t.Errorf("%o for %d:%d %v: READ %v, want %v", tc.mode, tc.uid, tc.gid, tc.gids, got, tc.read)
		}
		if got := w.write(fh, 0, "x", nfs.Unstable).Stat; got != tc.write {
			t.Errorf("%o for %d:%d %v: WRITE %v, want %v", tc.mode, tc.uid, tc.gid, tc.gids, got, tc.write)
		}
		if got := commit(w, fh).Stat; got != tc.write {
			t.Errorf("%o for %d:%d %v: COMMIT %v, want %v", tc.mode, tc.uid, tc.gid, tc.gids, got, tc.write)
		}
		w.as(0, 0)
	}
}

func TestDirectoriesAreClosedToOthers(t *testing.T) {
	needRoot(t)
	w := serve(t, Config{})
	must(t, os.Chmod(w.dir, 0o755))
	w.put("dir/file", "")
	w.put("dir/sub/file", "")
	w.own("dir", 0o700, 100, 100)
	dir, root := w.fh("dir"), w.root()
	w.as(1, 1)
	wants(t, "LOOKUP", w.lookup(dir, "file").Stat, nfs.ErrAcces)
	wants(t, "LOOKUP of .", w.lookup(dir, ".").Stat, nfs.ErrAcces)
	wants(t, "READDIR", w.readdir(dir, 0, nfs.Verifier{}, 4096).Stat, nfs.ErrAcces)
	wants(t, "CREATE", w.create(dir, "new", 0o666).Stat, nfs.ErrAcces)
	wants(t, "REMOVE", w.remove(dir, "file"), nfs.ErrAcces)
	wants(t, "REMOVE of a directory", w.remove(dir, "sub"), nfs.ErrAcces)
	wants(t, "RENAME", w.rename(dir, "file", dir, "new"), nfs.ErrAcces)
	wants(t, "MKDIR in the root's", w.mkdir(root, "new", 0o777).Stat, nfs.ErrAcces)
	wants(t, "SETATTR of the mode", w.setattr(dir, withMode(0o777)), nfs.ErrPerm)
	w.as(0, 0)
	w.own("dir", 0o704, 100, 100)
	w.as(1, 1)
	l := w.readdirplus(dir, 0, nfs.Verifier{}, 4096, 4096)
	wants(t, "READDIRPLUS of what can only be read", l.Stat, nfs.OK)
	for _, e := range l.Entries {
		if e.Object.Follows || e.Attr.Follows {
			t.Errorf("%s comes with what LOOKUP would not return", e.Name)
		}
	}
	w.as(0, 0)
	w.own("dir", 0o777|os.ModeSticky, 0, 0)
	w.own("dir/file", 0o666, 100, 100)
	w.as(1, 1)
	wants(t, "REMOVE of another's in a sticky directory", w.remove(dir, "file"), nfs.ErrPerm)
}

func TestFilesBelongToTheirMakers(t *testing.T) {
	needRoot(t)
	w := serve(t, Config{})
	must(t, os.Chmod(w.dir, 0o777))
	root := w.root()
	w.as(100, 200, 300)
	owner := withMode(0o600)
	owner.UID, owner.GID = nfs.SetUint32{Set: true, Value: 7}, nfs.SetUint32{Set: true, Value: 7}
	var made nfs.CreateRes
	w.call(nfs.ProcCreate, &nfs.CreateArgs{Where: nfs.DirOpArgs{Dir: root, Name: "file"}, Attr: owner}, &made)
	wants(t, "CREATE", made.Stat, nfs.OK)
	wants(t, "MKDIR", w.mkdir(root, "dir", 0o755).Stat, nfs.OK)
	var link nfs.CreateRes
	w.call(nfs.ProcSymlink, &nfs.SymlinkArgs{Where: nfs.DirOpArgs{Dir: root, Name: "link"}, Path: "x"}, &link)
	for _, name := range []string{"file", "dir", "link"} {
		if a := w.attr(w.fh(name)); a.UID != 100 || a.GID != 200 {
			t.Errorf("%s belongs to %d:%d", name, a.UID, a.GID)
		}
	}
	fh := w.fh("file")
	to := func(uid, gid uint32) nfs.SetAttributes {
		return nfs.SetAttributes{UID: nfs.SetUint32{Set: uid != 0, Value: uid}, GID: nfs.SetUint32{Set: gid != 0, Value: gid}}
	}
	wants(t, "giving it away", w.setattr(fh, to(7, 0)), nfs.ErrPerm)
	wants(t, "to a group of another", w.setattr(fh, to(0, 7)), nfs.ErrPerm)
	wants(t, "to a group of its own", w.setattr(fh, to(0, 300)), nfs.OK)
	w.as(0, 0)
	wants(t, "root gives it away", w.setattr(fh, to(7, 8)), nfs.OK)
	if a := w.attr(fh); a.UID != 7 || a.GID != 8 {
		t.Errorf("belongs to %d:%d", a.UID, a.GID)
	}
	wants(t, "to nobody", w.setattr(fh, to(1<<32-1, 0)), nfs.ErrInval)
	w.call(nfs.ProcCreate, &nfs.CreateArgs{Where: nfs.DirOpArgs{Dir: root, Name: "root's"}, Attr: owner}, &made)
	if a := made.Attr.Attr; a.UID != 7 || a.GID != 7 {
		t.Errorf("root made a file of %d:%d, want 7:7", a.UID, a.GID)
	}
}

func TestWritesAndOwnersClearWhatGivesRights(t *testing.T) {
	needRoot(t)
	w := serve(t, Config{})
	for _, tc := range []struct {
		what string
		uid  uint32
		f    func(fh nfs.FH) nfs.Stat
		want uint32
	}{
		{"WRITE by the owner", 100, func(fh nfs.FH) nfs.Stat { return w.write(fh, 0, "x", nfs.Unstable).Stat }, 0o777},
		{"WRITE by root", 0, func(fh nfs.FH) nfs.Stat { return w.write(fh, 0, "x", nfs.Unstable).Stat }, 0o6777},
		{"a size set by the owner", 100, func(fh nfs.FH) nfs.Stat { return w.setattr(fh, size(1)) }, 0o777},
		{"an owner set by root", 0, func(fh nfs.FH) nfs.Stat {
			return w.setattr(fh, nfs.SetAttributes{UID: nfs.SetUint32{Set: true, Value: 5}})
		}, 0o777},
		{"owner and mode set by root", 0, func(fh nfs.FH) nfs.Stat {
			to := withMode(0o6755)
			to.UID = nfs.SetUint32{Set: true, Value: 5}
			return w.setattr(fh, to)
		}, 0o755},
	} {
		w.own("file", 0o777|os.ModeSetuid|os.ModeSetgid, 100, 100)
		fh := w.fh("file")
		w.as(tc.uid, tc.uid)
		wants(t, tc.what, tc.f(fh), nfs.OK)
		w.as(0, 0)
		if a := w.attr(fh); a.Mode != tc.want {
			t.Errorf("%s: mode %o, want %o", tc.what, a.Mode, tc.want)
		}
	}
}

func TestSquashingMakesCallersAnonymous(t *testing.T) {
	needRoot(t)
	none := oncrpc.OpaqueAuth{}
	for _, tc := range []struct {
		cfg      Config
		uid, gid uint32
		none     bool
		want     [2]uint32
	}{
		{Config{}, 0, 0, false, [2]uint32{65534, 65534}},
		{Config{}, 100, 0, false, [2]uint32{100, 65534}},
		{Config{}, 100, 200, false, [2]uint32{100, 200}},
		{Config{}, 0, 0, true, [2]uint32{65534, 65534}},
		{Config{Squash: SquashNone}, 0, 0, false, [2]uint32{0, 0}},
		{Config{Squash: SquashNone}, 100, 200, false, [2]uint32{100, 200}},
		{Config{Squash: SquashNone}, 0, 0, true, [2]uint32{65534, 65534}},
		{Config{Squash: SquashNone}, noID, noID, false, [2]uint32{65534, 65534}},
		{Config{Squash: SquashAll}, 100, 200, false, [2]uint32{65534, 65534}},
		{Config{Squash: SquashAll, AnonUID: 7, AnonGID: 8}, 0, 0, false, [2]uint32{7, 8}},
		{Config{SingleUser: true}, 100, 200, false, [2]uint32{0, 0}},
		{Config{SingleUser: true}, 0, 0, true, [2]uint32{0, 0}},
	} {
		w := serveAs(t, tc.cfg)
		must(t, os.Chmod(w.dir, 0o777))
		w.as(tc.uid, tc.gid)
		if tc.none {
			w.cred = none
		}
		res := w.create(w.root(), "file", 0o600)
		if a := res.Attr.Attr; res.Stat != nfs.OK || a.UID != tc.want[0] || a.GID != tc.want[1] {
			t.Errorf("%+v for %d:%d: %v, %d:%d, want %v", tc.cfg, tc.uid, tc.gid, res.Stat, a.UID, a.GID, tc.want)
		}
		w.server.Close()
	}
}

func TestRootSquashTakesGroupsOfRootToo(t *testing.T) {
	needRoot(t)
	nettest.CheckLeaks(t)
	w := serveAs(t, Config{})
	w.own("file", 0o640, 0, 0)
	fh := w.fh("file")
	w.as(100, 100, 0)
	wants(t, "READ", w.read(fh, 0, 1).Stat, nfs.ErrAcces)
}

// The threads of the process keep their identity, whatever callers they have acted as.
func TestTheServerStaysItself(t *testing.T) {
	needRoot(t)
	w := serve(t, Config{})
	must(t, os.Chmod(w.dir, 0o777))
	for uid := range uint32(50) {
		w.as(uid, uid, 1, 2, 3)
		w.create(w.root(), "file", 0o600)
		w.remove(w.root(), "file")
		if u, _ := unix.SetfsuidRetUid(-1); u != 0 {
			t.Fatalf("after a call of %d: fsuid %d", uid, u)
		}
	}
}

// The kernel applies POSIX ACLs, which the server asks for permission.
func TestDefaultACLsStandAgainstModes(t *testing.T) {
	w := serve(t, Config{})
	must(t, os.Mkdir(w.path("dir"), 0o777))
	// u::rwx,g::r-x,o::--- in the kernel's format: version 2, then tag, permissions and id of each.
	acl := binary.LittleEndian.AppendUint32(nil, 2)
	for _, entry := range [][2]uint16{{0x01, 7}, {0x04, 5}, {0x20, 0}} {
		acl = binary.LittleEndian.AppendUint16(acl, entry[0])
		acl = binary.LittleEndian.AppendUint16(acl, entry[1])
		acl = binary.LittleEndian.AppendUint32(acl, 0xffffffff)
	}
	err := unix.Setxattr(w.path("dir"), "system.posix_acl_default", acl, 0)
	if errors.Is(err, unix.ENOTSUP) {
		t.Skip("this file system has no ACLs")
	}
	must(t, err)
	defer syscall.Umask(syscall.Umask(0o077))
	if a := w.create(w.fh("dir"), "file", 0o666).Attr.Attr; a.Mode != 0o640 {
		t.Errorf("mode %o, want 640", a.Mode)
	}
}

// What a Linux client sends for open(O_TRUNC), and for touch of one time. Setting a time to
// the server's needs permission to write, any other time needs the owner.
func TestWhoMayWriteMaySetTimesToTheServers(t *testing.T) {
	needRoot(t)
	w := serve(t, Config{})
	now, client := nfs.SetTime{How: nfs.SetToServerTime}, nfs.SetTime{How: nfs.SetToClientTime, Time: nfs.Time{Sec: 5}}
	truncated := size(0)
	truncated.Mtime = now
	for _, tc := range []struct {
		what string
		mode os.FileMode
		to   nfs.SetAttributes
		want nfs.Stat
	}{
		{"size and mtime", 0o666, truncated, nfs.OK},
		{"mtime", 0o666, nfs.SetAttributes{Mtime: now}, nfs.OK},
		{"atime", 0o666, nfs.SetAttributes{Atime: now}, nfs.OK},
		{"both", 0o666, nfs.SetAttributes{Atime: now, Mtime: now}, nfs.OK},
		{"mtime of what can only be read", 0o644, nfs.SetAttributes{Mtime: now}, nfs.ErrAcces},
		{"both of what can only be read", 0o644, nfs.SetAttributes{Atime: now, Mtime: now}, nfs.ErrAcces},
		{"mtime, to the client's", 0o666, nfs.SetAttributes{Mtime: client}, nfs.ErrPerm},
		{"one of each", 0o666, nfs.SetAttributes{Mtime: now, Atime: client}, nfs.ErrPerm},
	} {
		w.own("file", tc.mode, 100, 100)
		must(t, os.Chtimes(w.path("file"), time.Unix(7, 0), time.Unix(7, 0)))
		fh := w.fh("file")
		w.as(1, 1)
		wants(t, tc.what, w.setattr(fh, tc.to), tc.want)
		w.as(0, 0)
		a := w.attr(fh)
		for _, set := range []struct {
			how nfs.TimeHow
			got nfs.Time
		}{{tc.to.Atime.How, a.Atime}, {tc.to.Mtime.How, a.Mtime}} {
			if moved := set.got.Sec > 7; moved != (tc.want == nfs.OK && set.how == nfs.SetToServerTime) {
				t.Errorf("%s: the times are %v and %v", tc.what, a.Atime, a.Mtime)
			}
		}
	}
}

// A process with CAP_SYS_RESOURCE may exceed quotas and use blocks reserved for root.
func TestOthersMayNotExceedResources(t *testing.T) {
	needRoot(t)
	id, err := whoAmI(false)
	must(t, err)
	const resource = 1 << unix.CAP_SYS_RESOURCE
	if id.all[0].Effective&resource == 0 {
		t.Skip("the process may not either")
	}
	for _, uid := range []uint32{100, 0} {
		var during, after capabilities
		must(t, id.as(&creds{uid: uid, gid: 100}, func() error { return during.get() }))
		must(t, id.as(serverCreds, func() error { return after.get() }))
		if during[0].Effective&resource != 0 != (uid == 0) {
			t.Errorf("user %d has the capabilities %x", uid, during[0].Effective)
		}
		if after != id.all {
			t.Errorf("after user %d: %x, want %x", uid, after, id.all)
		}
	}
}
