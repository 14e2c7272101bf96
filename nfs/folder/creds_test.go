package folder

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"reflect"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

var (
	elsewhere = &origin.Origin{Addr: netip.MustParseAddrPort("192.0.2.1:800")}
	somebody  = &origin.Origin{Addr: netip.MustParseAddrPort("192.0.2.7:800"), Local: true}
)

// unknown is a caller on this machine whom its user database does not have.
var unknown = &origin.Origin{Local: true, User: &origin.User{UID: 2000, GID: 65534, Unknown: true}}

// of is a caller on this machine.
func of(uid, gid uint32, groups ...uint32) *origin.Origin {
	return &origin.Origin{Local: true, Addr: netip.MustParseAddrPort("127.0.0.1:800"), User: &origin.User{UID: uid, GID: gid, Groups: groups}}
}

func sys(t testing.TB, uid, gid uint32, gids ...uint32) oncrpc.OpaqueAuth {
	t.Helper()
	a := oncrpc.AuthSys{UID: uid, GID: gid, GIDs: gids}
	body, err := a.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorSys, Body: body}
}

// onlyOthers is a volume that implements perCaller and nothing else.
type onlyOthers struct {
	volume
	count bool
}

func (v onlyOthers) perCaller() bool { return v.count }

func TestWhoActsAsWhom(t *testing.T) {
	none := oncrpc.OpaqueAuth{}
	anonymous := creds{uid: 65534, gid: 65534, squashed: true}
	as := func(squashed bool, uid, gid uint32, gids ...uint32) creds {
		return creds{uid: uid, gid: gid, gids: gids, squashed: squashed}
	}
	for _, tt := range []struct {
		what   string
		squash Squash
		from   *origin.Origin
		cred   oncrpc.OpaqueAuth
		want   creds
	}{
		{"a claim from elsewhere", SquashRoot, elsewhere, sys(t, 7, 8, 9), as(false, 7, 8, 9)},
		{"root from elsewhere", SquashRoot, elsewhere, sys(t, 0, 0, 0, 9), as(true, 65534, 65534, 65534, 9)},
		{"root's group from elsewhere", SquashRoot, elsewhere, sys(t, 7, 0), as(true, 7, 65534)},
		{"one of root's groups from elsewhere", SquashRoot, elsewhere, sys(t, 7, 8, 0), as(false, 7, 8, 65534)},
		{"root from elsewhere, trusted", SquashNone, elsewhere, sys(t, 0, 0, 0), as(false, 0, 0, 0)},
		{"no user at all", SquashNone, elsewhere, sys(t, noID, noID, noID), as(true, 65534, 65534, 65534)},
		{"all", SquashAll, elsewhere, sys(t, 7, 8), anonymous},
		{"no claim", SquashNone, elsewhere, none, anonymous},

		{"the owner", SquashRoot, of(2000, 2001, 4), sys(t, 2000, 2001, 4), as(false, 2000, 2001, 4)},
		{"the owner, claiming root", SquashNone, of(2000, 2001, 4), sys(t, 0, 0, 0), as(false, 2000, 2001, 4)},
		{"the owner, claiming another", SquashRoot, of(2000, 2001), sys(t, 2002, 2001, 4), as(false, 2000, 2001)},
		{"the owner, claiming nothing", SquashRoot, of(2000, 2001), none, as(false, 2000, 2001)},
		{"the owner, in root's group", SquashRoot, of(2000, 2001, 0, 4), none, as(false, 2000, 2001, 65534, 4)},
		{"the owner, in root's group, trusted", SquashNone, of(2000, 0, 4), none, as(false, 2000, 0, 4)},
		{"the owner among all", SquashAll, of(2000, 2001), sys(t, 2000, 2001), anonymous},

		{"an owner that the system does not know", SquashNone, unknown, sys(t, 2000, 2001), as(true, 2000, 65534)},

		{"root of this machine", SquashRoot, of(0, 0), sys(t, 0, 0), as(true, 65534, 65534)},
		{"root of this machine, for another", SquashRoot, of(0, 0), sys(t, 7, 8, 9), as(false, 7, 8, 9)},
		{"root of this machine, trusted", SquashNone, of(0, 0), sys(t, 0, 0, 9), as(false, 0, 0, 9)},
		{"root of this machine, for nobody", SquashNone, of(0, 0), none, anonymous},

		{"somebody of this machine, claiming", SquashNone, somebody, sys(t, 7, 8), anonymous},
		{"somebody of this machine, claiming root", SquashNone, somebody, sys(t, 0, 0), anonymous},
	} {
		s := &Server{cfg: Config{Root: "x", Squash: tt.squash}, vol: onlyOthers{count: true}}
		s.rules.Store(&s.cfg)
		if err := s.cfg.fill(); err != nil {
			t.Fatal(err)
		}
		c, err := s.identify(&oncrpc.Request{Call: oncrpc.Call{Cred: tt.cred}, Origin: tt.from})
		if err != nil || !reflect.DeepEqual(*c, tt.want) {
			t.Errorf("%s, %v: %+v, %v, want %+v", tt.what, tt.squash, c, err, tt.want)
		}
	}
	// The groups of a connection's user are not changed.
	from := of(2000, 2001, 0)
	s := &Server{cfg: Config{AnonGID: 9}, vol: onlyOthers{count: true}}
	s.rules.Store(&s.cfg)
	if c, err := s.identify(&oncrpc.Request{Origin: from}); err != nil || c.gids[0] != 9 || from.User.Groups[0] != 0 {
		t.Errorf("%+v, %v of %+v", c, err, from.User)
	}
	// Without an origin the address counts.
	if c, err := s.identify(&oncrpc.Request{Call: oncrpc.Call{Cred: sys(t, 7, 8)}, Remote: &net.TCPAddr{IP: net.IPv6loopback}}); err != nil || !c.squashed {
		t.Errorf("somebody of this machine: %+v, %v", c, err)
	}
}

func TestWhoIsTheServersUser(t *testing.T) {
	self := uint32(max(os.Geteuid(), 0))
	for _, tt := range []struct {
		what     string
		squash   Squash
		from     *origin.Origin
		squashed bool
	}{
		{"the same user", SquashRoot, of(self, 1), os.Geteuid() < 0},
		{"root", SquashRoot, of(0, 0), false},
		{"another user", SquashRoot, of(self+1, 1), true},
		{"somebody", SquashRoot, somebody, true},
		{"elsewhere", SquashRoot, elsewhere, true},
		{"elsewhere, trusted", SquashNone, elsewhere, false},
	} {
		if tt.what == "the same user" && self == 0 && os.Geteuid() < 0 {
			continue // a system without numbers
		}
		s := &Server{cfg: Config{Squash: tt.squash}, vol: onlyOthers{}}
		s.rules.Store(&s.cfg)
		c, err := s.identify(&oncrpc.Request{Call: oncrpc.Call{Cred: sys(t, 0, 0)}, Origin: tt.from})
		if err != nil || c.squashed != tt.squashed {
			t.Errorf("%s: %+v, %v, want squashed %v", tt.what, c, err, tt.squashed)
		}
	}
}

// The flavor is checked even where the claim is ignored.
func TestOwnersSpeakTheFlavorsThatThereAre(t *testing.T) {
	s := &Server{vol: onlyOthers{count: true}}
	s.rules.Store(&s.cfg)
	for _, tt := range []struct {
		cred oncrpc.OpaqueAuth
		want oncrpc.AuthStat
	}{
		{oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorGSS}, oncrpc.AuthTooWeak},
		{oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorShort}, oncrpc.AuthRejectedCred},
		{oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorSys, Body: []byte{1}}, oncrpc.AuthBadCred},
	} {
		_, err := s.identify(&oncrpc.Request{Call: oncrpc.Call{Cred: tt.cred}, Origin: of(2000, 2000)})
		if !errors.Is(err, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: tt.want}) {
			t.Errorf("%v: %v, want %v", tt.cred.Flavor, err, tt.want)
		}
	}
}

func TestNobodyIsMadeAnonymousOfOneUser(t *testing.T) {
	nettest.CheckLeaks(t)
	s, err := New(Config{Root: t.TempDir(), SingleUser: true, Squash: SquashAll})
	if err == nil {
		s.Close()
		t.Error("all_squash is taken where it does nothing")
	}
}

// Squashed callers get all of a mode but set-uid and set-gid, whatever procedure sets it.
func TestThoseSquashedMakeNoFilesThatGiveRights(t *testing.T) {
	nettest.CheckLeaks(t)
	for squash, want := range map[Squash]uint32{SquashRoot: 0o1755, SquashNone: 0o7755} {
		w := serveAs(t, Config{Squash: squash})
		must(t, os.Chmod(w.dir, 0o777))
		w.as(0, 0)
		root := w.root()
		check := func(what string, fh nfs.FH) {
			t.Helper()
			if a := w.attr(fh); a.Mode != want {
				t.Errorf("%s, %v: mode %o, want %o", what, squash, a.Mode, want)
			}
		}
		made := func(what string, res nfs.CreateRes) {
			t.Helper()
			wants(t, what, res.Stat, nfs.OK)
			check(what, res.Object.FH)
		}
		made("CREATE", w.create(root, "file", 0o7755))
		dir := w.mkdir(root, "dir", 0o700) // to which Linux gives no such bits by itself
		wants(t, "SETATTR of a directory", w.setattr(dir.Object.FH, withMode(0o7755)), nfs.OK)
		check("SETATTR of a directory", dir.Object.FH)
		var fifo nfs.CreateRes
		w.call(nfs.ProcMknod, &nfs.MknodArgs{Where: nfs.DirOpArgs{Dir: root, Name: "fifo"}, Type: nfs.TypeFifo, Attr: withMode(0o7755)}, &fifo)
		made("MKNOD", fifo)
		plain := w.create(root, "plain", 0o600)
		wants(t, "SETATTR", w.setattr(plain.Object.FH, withMode(0o7755)), nfs.OK)
		check("SETATTR", plain.Object.FH)
		both := withMode(0o7755)
		both.Size = nfs.SetUint64{Set: true}
		wants(t, "SETATTR with a size", w.setattr(plain.Object.FH, both), nfs.OK)
		check("SETATTR with a size", plain.Object.FH)
	}
}

// Also where all callers act as root.
func TestThoseSquashedMakeNoDevices(t *testing.T) {
	needRoot(t)
	nettest.CheckLeaks(t)
	w := serveAs(t, Config{SingleUser: true})
	var res nfs.CreateRes
	w.call(nfs.ProcMknod, &nfs.MknodArgs{Where: nfs.DirOpArgs{Dir: w.root(), Name: "null"}, Type: nfs.TypeChr, Attr: withMode(0o666), Spec: nfs.Specdata{Major: 1, Minor: 3}}, &res)
	wants(t, "MKNOD", res.Stat, nfs.ErrPerm)
}
