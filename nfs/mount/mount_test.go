package mount

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// home is a server of /srv/data whose handles are the paths of names.
func home(t *testing.T, allow ...string) *Server {
	t.Helper()
	s, err := New(Export{Path: "/srv/data/", Allow: networks(t, allow...), Handle: func(_ context.Context, names []string) (nfs.FH, error) {
		switch path := strings.Join(names, "|"); path {
		case "file":
			return nil, nfs.ErrNotDir
		case "none":
			return nil, nfs.ErrNoEnt
		case "broken":
			return nil, errors.New("broken")
		default:
			return nfs.FH("<" + path[:min(len(path), 40)] + ">"), nil
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func networks(t *testing.T, list ...string) (all Allow) {
	t.Helper()
	for _, s := range list {
		p, err := ParseAllow(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// call calls the server from a host and decodes the results.
func call(h oncrpc.Handler, host string, vers uint32, proc nfs.MountProc, args func(*oncrpc.Encoder), results func(*oncrpc.Decoder)) error {
	e := oncrpc.NewEncoder(nil)
	if args != nil {
		args(&e)
	}
	b, err := e.Finish()
	if err != nil {
		return err
	}
	reply, err := h.ServeRPC(context.Background(), &oncrpc.Request{
		Call: oncrpc.Call{Prog: nfs.MountProgram, Vers: vers, Proc: uint32(proc)}, Args: b,
		Remote: &net.TCPAddr{IP: net.ParseIP(host), Port: 700},
	})
	if err != nil {
		return err
	}
	var r oncrpc.Reply
	at, err := r.Parse(reply)
	if err != nil {
		return err
	}
	d := oncrpc.NewDecoder(reply[at:], "results")
	if results != nil {
		results(&d)
	}
	return d.End()
}

func mnt(h oncrpc.Handler, host, path string) (nfs.MountRes, error) {
	var res nfs.MountRes
	err := call(h, host, nfs.MountV3, nfs.MountMnt, (&nfs.MountPath{Path: path}).Encode, res.Decode)
	return res, err
}

func TestTheFolderIsMountedByItsPathAndAsTheRoot(t *testing.T) {
	s := home(t)
	for _, c := range []struct {
		path string
		want string // the handle, or else stat
		stat nfs.MountStat
	}{
		{"/", "<>", 0},
		{"", "<>", 0},
		{"//", "<>", 0},
		{"/srv/data", "<>", 0},
		{"/srv/data/", "<>", 0},
		{"/srv/data/a/b", "<a|b>", 0},
		{"/a//./b/", "<a|b>", 0},
		{"/srv/database", "<srv|database>", 0},
		{"/a/../b", "<b>", 0},
		{"/../../..", "<>", 0},
		{"/srv/data/../../../etc", "<etc>", 0},
		{"\xff\xfe", "<\xff\xfe>", 0},
		{"/file", "", nfs.MountErrNotDir},
		{"/none", "", nfs.MountErrNoEnt},
		{"/broken", "", nfs.MountErrServerFault},
		{"/a\x00b", "", nfs.MountErrInval},
		{"/" + strings.Repeat("n", 256), "", nfs.MountErrNameTooLong},
	} {
		res, err := mnt(s, "192.0.2.1", c.path)
		if err != nil || res.Stat != c.stat || string(res.FH) != c.want {
			t.Errorf("%q: %v %q, %v, want %v %q", c.path, res.Stat, res.FH, err, c.stat, c.want)
		}
		if res.Stat == 0 && !slices.Equal(res.Flavors, []oncrpc.Flavor{oncrpc.FlavorSys, oncrpc.FlavorNone}) {
			t.Errorf("%q: flavors %v", c.path, res.Flavors)
		}
	}
}

func TestARootIsMountedByEveryPath(t *testing.T) {
	s, err := New(Export{Handle: func(_ context.Context, names []string) (nfs.FH, error) {
		return nfs.FH(strings.Join(names, "|")), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := mnt(s, "192.0.2.1", "/a/b"); err != nil || string(res.FH) != "a|b" {
		t.Errorf("got %q, %v", res.FH, err)
	}
	var list nfs.ExportList
	if err := call(s, "192.0.2.1", nfs.MountV3, nfs.MountExport, nil, list.Decode); err != nil || len(list) != 1 || list[0].Path != "/" {
		t.Errorf("exports %v, %v, want / once", list, err)
	}
}

func TestOnlyThoseOnTheListMount(t *testing.T) {
	s := home(t, "192.0.2.0/24", "2001:db8::/32", "198.51.100.7")
	for host, want := range map[string]nfs.MountStat{
		"192.0.2.200":      nfs.MountOK,
		"::ffff:192.0.2.1": nfs.MountOK,
		"2001:db8:7::1":    nfs.MountOK,
		"198.51.100.7":     nfs.MountOK,
		"198.51.100.8":     nfs.MountErrAcces,
		"192.0.3.1":        nfs.MountErrAcces,
		"::1":              nfs.MountErrAcces,
	} {
		if res, err := mnt(s, host, "/"); err != nil || res.Stat != want {
			t.Errorf("%s: %v, %v, want %v", host, res.Stat, err, want)
		}
	}
	var list nfs.ExportList
	if err := call(s, "203.0.113.1", nfs.MountV1, nfs.MountExport, nil, list.Decode); err != nil {
		t.Fatal(err)
	}
	want := "[{/srv/data [192.0.2.0/24 2001:db8::/32 198.51.100.7/32]} {/ [192.0.2.0/24 2001:db8::/32 198.51.100.7/32]}]"
	if got := fmt.Sprint([]nfs.Export(list)); got != want {
		t.Errorf("exports %s, want %s", got, want)
	}
}

func TestWhoIsGuardedIsNotJudgedAgain(t *testing.T) {
	s := home(t, "192.0.2.0/24")
	(*s.exports.Load())[0].Guarded = true
	if res, err := mnt(s, "198.51.100.8", "/"); err != nil || res.Stat != nfs.MountOK {
		t.Errorf("%v, %v, want %v", res.Stat, err, nfs.MountOK)
	}
}

func TestAListHasAddressesOfIPAlone(t *testing.T) {
	if networks(t, "0.0.0.0/0").Allows(&net.UnixAddr{Name: "@", Net: "unix"}) {
		t.Error("an address that is not one of IP is allowed")
	}
}

func TestWhoMountedIsRememberedUntilUnmounted(t *testing.T) {
	s := home(t)
	dump := func() string {
		var list nfs.MountList
		if err := call(s, "192.0.2.9", nfs.MountV3, nfs.MountDump, nil, list.Decode); err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, m := range list {
			all = append(all, m.Host+":"+m.Path)
		}
		return strings.Join(all, " ")
	}
	for _, m := range [][2]string{{"192.0.2.1", "/"}, {"192.0.2.1", "/a/"}, {"192.0.2.2", "/a"}, {"192.0.2.1", "/"}, {"192.0.2.2", "/none"}} {
		if _, err := mnt(s, m[0], m[1]); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := dump(), "192.0.2.1:/a 192.0.2.2:/a 192.0.2.1:/"; got != want {
		t.Errorf("remembered %q, want %q", got, want)
	}
	// Clients unmount by version 1, too.
	if err := call(s, "192.0.2.1", nfs.MountV1, nfs.MountUmnt, (&nfs.MountPath{Path: "/a"}).Encode, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := dump(), "192.0.2.2:/a 192.0.2.1:/"; got != want {
		t.Errorf("after UMNT %q, want %q", got, want)
	}
	if err := call(s, "192.0.2.2", nfs.MountV3, nfs.MountUmntAll, nil, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := dump(), "192.0.2.1:/"; got != want {
		t.Errorf("after UMNTALL %q, want %q", got, want)
	}
	for i := range 2 * maxRemembered {
		if _, err := mnt(s, netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}).String(), "/"); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(dump(), " ") + 1; n != maxRemembered {
		t.Errorf("%d mounts are remembered, want %d", n, maxRemembered)
	}
	if _, err := mnt(s, "192.0.2.9", "/kept"); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * maxRemembered {
		if _, err := mnt(s, "192.0.2.1", fmt.Sprint("/", i)); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(dump(), "192.0.2.9:/kept") {
		t.Error("what one host mounts has that of another forgotten")
	}
}

func TestOlderVersionsGetNoHandle(t *testing.T) {
	for vers := uint32(1); vers <= 2; vers++ {
		var res nfs.MountV1Res
		err := call(home(t), "192.0.2.1", vers, nfs.MountMnt, (&nfs.MountPath{Path: "/"}).Encode, res.Decode)
		if err != nil || res.Stat == 0 {
			t.Errorf("version %d: %v, %v", vers, res, err)
		}
	}
}

func TestWhatIsNoCallOfMountIsAnError(t *testing.T) {
	s := home(t)
	if err := call(s, "192.0.2.1", 3, 6, nil, nil); !errors.Is(err, &oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}) {
		t.Errorf("procedure 6: %v", err)
	}
	if err := call(s, "192.0.2.1", 3, nfs.MountMnt, nil, nil); !errors.Is(err, oncrpc.ErrShort) {
		t.Errorf("MNT without a path: %v", err)
	}
	if err := call(s, "192.0.2.1", 3, nfs.MountExport, (&nfs.MountPath{Path: "/"}).Encode, nil); !errors.Is(err, oncrpc.ErrTrailing) {
		t.Errorf("EXPORT with a path: %v", err)
	}
	long := nfs.MountPath{Path: strings.Repeat("/a", nfs.MaxMountPath/2)}
	if res, err := mnt(s, "192.0.2.1", long.Path); err != nil || res.Stat != nfs.MountOK {
		t.Errorf("a path of %d octets: %v, %v", len(long.Path), res.Stat, err)
	}
	for s, want := range map[string]string{"::ffff:192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7/120": "192.0.2.0/24", "::ffff:0:0/96": "0.0.0.0/0", "2001:db8::1/32": "2001:db8::/32"} {
		if p, err := ParseAllow(s); err != nil || p.String() != want {
			t.Errorf("%q is read as network %v, expected %s: %v", s, p, want, err)
		}
	}
	for _, s := range []string{"", "192.0.2.1/33", "host", "fe80::1%eth0", "192.0.2.0/24/1", "::ffff:192.0.2.7/95"} {
		if p, err := ParseAllow(s); err == nil {
			t.Errorf("%q is read as network %v", s, p)
		}
	}
	if _, err := New(Export{}); err == nil {
		t.Error("a server without handles is made")
	}
}

func TestAPathIsOfTheNearestExport(t *testing.T) {
	named := func(export string) func(context.Context, []string) (nfs.FH, error) {
		return func(_ context.Context, names []string) (nfs.FH, error) {
			return nfs.FH(export + ":" + strings.Join(names, "|")), nil
		}
	}
	s, err := New(Export{Path: "/srv", Handle: named("srv")}, Export{Path: "/srv/data", Handle: named("data"), Allow: networks(t, "192.0.2.0/24")})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/srv": "srv:", "/srv/": "srv:", "/srv/other": "srv:other", "/srv/database": "srv:database",
		"/srv/data": "data:", "/srv/data/a/b": "data:a|b", "/srv/data/../data/a": "data:a", "/srv/x/../../srv/data": "data:",
	} {
		if res, err := mnt(s, "192.0.2.1", path); err != nil || string(res.FH) != want {
			t.Errorf("%s: %q, %v, %v, want %q", path, res.FH, res.Stat, err, want)
		}
	}
	for path, want := range map[string]nfs.MountStat{"/": nfs.MountErrNoEnt, "/data": nfs.MountErrNoEnt, "/srvx": nfs.MountErrNoEnt} {
		if res, err := mnt(s, "192.0.2.1", path); err != nil || res.Stat != want {
			t.Errorf("%s: %v, %v, want %v", path, res.Stat, err, want)
		}
	}
	if res, err := mnt(s, "198.51.100.1", "/srv/data/a"); err != nil || res.Stat != nfs.MountErrAcces {
		t.Errorf("a host of the outer export alone: %v, %v, want %v", res.Stat, err, nfs.MountErrAcces)
	}
	var list nfs.ExportList
	if err := call(s, "192.0.2.1", nfs.MountV3, nfs.MountExport, nil, list.Decode); err != nil || fmt.Sprint([]nfs.Export(list)) != "[{/srv []} {/srv/data [192.0.2.0/24]}]" {
		t.Errorf("exports %v, %v", list, err)
	}
	if err := s.SetExports(Export{Path: "/srv", Handle: named("new")}); err != nil {
		t.Fatal(err)
	}
	if res, err := mnt(s, "198.51.100.1", "/srv/data"); err != nil || string(res.FH) != "new:data" {
		t.Errorf("after a change of the exports: %q, %v", res.FH, err)
	}
}

func TestAnExportWithAccessIsShownToThoseWhoMayMountIt(t *testing.T) {
	handle := func(context.Context, []string) (nfs.FH, error) { return nfs.FH("x"), nil }
	var refused []error
	s, err := New(
		Export{Path: "/all", Handle: handle},
		Export{Path: "/few", Handle: handle, Access: &Access{
			Allow: networks(t, "192.0.2.7"), Insecure: true, Refused: func(_ *oncrpc.Request, why error) { refused = append(refused, why) },
		}},
	)
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]nfs.MountStat{"192.0.2.7": nfs.MountOK, "192.0.2.8": nfs.MountErrAcces} {
		if res, err := mnt(s, host, "/few"); err != nil || res.Stat != want {
			t.Errorf("MNT of %s: %v, %v, want %v", host, res.Stat, err, want)
		}
		var list nfs.ExportList
		if err := call(s, host, nfs.MountV3, nfs.MountExport, nil, list.Decode); err != nil || (len(list) == 2) != (want == nfs.MountOK) {
			t.Errorf("EXPORT for %s: %v, %v", host, list, err)
		}
	}
	if len(refused) != 1 || !errors.Is(refused[0], ErrHost) {
		t.Errorf("reported refusals: %v, want that of MNT", refused)
	}
}
