package client

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/internal/rpctest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpctcp"
)

func TestAnExportIsMountedOverTheSameConnection(t *testing.T) {
	s := newFakeServer()
	caller := &direct{handler: s.mux()}
	f, err := Dial(t.Context(), Config{NFS: caller})
	if err != nil {
		t.Fatal(err)
	}
	if f.Info().ReadMax != 4096 || f.Export() != "/" || f.Prefix() != "" {
		t.Errorf("mounted %+v at %q, %q", f.Info(), f.Export(), f.Prefix())
	}
	if err := f.Close(); err != nil || s.unmounted() != 1 || caller.closed != 0 {
		t.Errorf("closing: %v, UMNT was called %d times, the connection closed %d times", err, s.unmounted(), caller.closed)
	}
}

// RFC 8267 §5.1: MOUNT is served over TCP; only Weft serves it elsewhere, too.
func TestAnExportIsMountedOverTCPWhereTheConnectionHasNoMOUNT(t *testing.T) {
	s := newFakeServer()
	s.noMount = true
	mountd := &direct{handler: oncrpc.Mux{s.mountProgram()}}
	f := dial(t, s, func(cfg *Config) {
		cfg.MountTCP = func(context.Context) (oncrpc.Caller, error) { return mountd, nil }
	})
	f.Close()
	if s.unmounted() != 1 || mountd.closed != 1 {
		t.Errorf("UMNT was called %d times, the connection to MOUNT closed %d times", s.unmounted(), mountd.closed)
	}
}

func TestAHandleThatIsGivenNeedsNoMounting(t *testing.T) {
	s := newFakeServer()
	s.noMount = true
	f := dial(t, s, func(cfg *Config) { cfg.Root = handle(1) })
	if info, err := f.Stat(t.Context(), "/"); err != nil || !info.IsDir() {
		t.Errorf("the root is %+v, %v", info, err)
	}
}

func TestWhatCannotBeMountedSaysWhy(t *testing.T) {
	lost := errors.New("lost")
	for name, tt := range map[string]struct {
		server func(*fakeServer)
		config func(*Config)
		want   error
		says   string
	}{
		"no caller":            {config: func(c *Config) { c.NFS = nil }, says: "Config.NFS"},
		"no such export":       {config: func(c *Config) { c.Export = "/x" }, want: fs.ErrNotExist, says: "MNT /x"},
		"not for us":           {server: func(s *fakeServer) { s.exports[0].Groups = []string{"other"} }, want: fs.ErrPermission},
		"other flavors":        {server: func(s *fakeServer) { s.flavors = []oncrpc.Flavor{oncrpc.FlavorGSS} }, says: "AUTH_SYS"},
		"no MOUNT anywhere":    {server: func(s *fakeServer) { s.noMount = true }, want: &oncrpc.AcceptError{Stat: oncrpc.ProgUnavail}},
		"handle of no file":    {config: func(c *Config) { c.Root = handle(99) }, want: nfs.ErrStale},
		"no way to MOUNT":      {server: func(s *fakeServer) { s.noMount = true }, config: func(c *Config) { c.MountTCP = func(context.Context) (oncrpc.Caller, error) { return nil, lost } }, want: lost},
		"too long a user name": {config: func(c *Config) { c.Auth = &oncrpc.AuthSys{MachineName: strings.Repeat("x", 256)} }, want: oncrpc.ErrLimit},
		"FSINFO fails": {server: func(s *fakeServer) {
			s.before = func(p nfs.Proc, _ int) nfs.Stat {
				if p == nfs.ProcFsinfo {
					return nfs.ErrServerFault
				}
				return nfs.OK
			}
		}, want: nfs.ErrServerFault},
		"path below no export": {
			server: func(s *fakeServer) { s.exports = nfs.ExportList{{Path: "/srv"}, {Path: "/home"}} },
			config: func(c *Config) { c.Export, c.Within = "/data/x", true }, want: fs.ErrNotExist, says: "exports /srv /home",
		},
		"nothing exported": {
			server: func(s *fakeServer) { s.exports = nil },
			config: func(c *Config) { c.Export, c.Within = "/data/x", true }, want: fs.ErrNotExist, says: "exports nothing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer()
			if tt.server != nil {
				tt.server(s)
			}
			cfg := Config{NFS: &direct{handler: s.mux()}}
			if tt.config != nil {
				tt.config(&cfg)
			}
			f, err := Dial(t.Context(), cfg)
			if err == nil {
				f.Close()
				t.Fatal("was mounted")
			}
			if tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %v, and %q in it", err, tt.want, tt.says)
			}
		})
	}
}

func TestAPathFindsTheLongestExportThatItLeadsInto(t *testing.T) {
	for _, tt := range []struct {
		exports        []string
		path           string
		export, prefix string
	}{
		{[]string{"/"}, "/a/b", "/", "/a/b"},
		{[]string{"/"}, "/", "/", "/"},
		{[]string{"/"}, "", "/", "/"},
		{[]string{"/srv", "/srv/deep/", "/"}, "/srv/deep/a//b/", "/srv/deep/", "/a/b"},
		{[]string{"/srv", "/srv/deep", "/"}, "/srv/deeper", "/srv", "/deeper"},
		{[]string{"/srv", "/srv/deep", "/"}, "/srv", "/srv", "/"},
		{[]string{"/srv", "/srv/deep", "/"}, "/home/../srv/x", "/srv", "/x"},
		{[]string{"/srv", "/"}, "/srvx/a", "/", "/srvx/a"},
		{[]string{"/closed", "/"}, "/closed/a", "/", "/closed/a"},
	} {
		s := newFakeServer()
		s.exports = nil
		for _, e := range tt.exports {
			export := nfs.Export{Path: e}
			if e == "/closed" {
				export.Groups = []string{"other"}
			}
			s.exports = append(s.exports, export)
		}
		f := dial(t, s, func(cfg *Config) { cfg.Export, cfg.Within = tt.path, true })
		if f.Export() != tt.export || f.Prefix() != tt.prefix {
			t.Errorf("%s among %v: mounted %s, and %s in it; want %s, %s", tt.path, tt.exports, f.Export(), f.Prefix(), tt.export, tt.prefix)
		}
	}
}

func TestTheCallerIsTheUserOfTheProcessUnlessAnotherIsNamed(t *testing.T) {
	var seen []oncrpc.AuthSys
	s := newFakeServer()
	watch := func(cfg *Config) {
		cfg.NFS.(*direct).fail = func(c *oncrpc.ClientCall) error {
			var a oncrpc.AuthSys
			err := a.Parse(c.Cred.Body)
			seen = append(seen, a)
			return err
		}
	}
	dial(t, s, watch)
	own := processAuth()
	for _, a := range seen {
		if a.UID != own.UID || a.GID != own.GID || !slices.Equal(a.GIDs, own.GIDs) {
			t.Errorf("called as %+v, want %+v", a, own)
		}
	}
	seen = nil
	dial(t, s, func(cfg *Config) {
		watch(cfg)
		cfg.Auth = &oncrpc.AuthSys{UID: 7, GID: 8}
	})
	for _, a := range seen {
		if a.UID != 7 || a.GID != 8 {
			t.Errorf("called as %+v, want user 7 and group 8", a)
		}
	}
	if len(seen) < 3 {
		t.Errorf("%d calls, want MNT, GETATTR and FSINFO", len(seen))
	}
}

func TestMOUNTOverTCPIsFoundAtAGivenPort(t *testing.T) {
	nettest.CheckLeaks(t)
	s := newFakeServer()
	addr := netip.MustParseAddrPort(rpctest.ServeTCP(t, rpctcp.ServerConfig{Handler: oncrpc.Mux{s.mountProgram()}}))

	s.noMount = true
	f := dial(t, s, func(cfg *Config) {
		cfg.MountTCP = MountOverTCP(addr.Addr().String(), addr.Port(), rpctcp.ClientConfig{})
	})
	f.Close()
	if s.unmounted() != 1 {
		t.Errorf("UMNT was called %d times", s.unmounted())
	}
}

func TestMOUNTOverTCPThatNobodyServesIsAnError(t *testing.T) {
	nettest.CheckLeaks(t)
	ln := nettest.Listen(t, "tcp4")
	addr := netip.MustParseAddrPort(ln.Addr().String())
	ln.Close()
	caller, err := MountOverTCP(addr.Addr().String(), addr.Port(), rpctcp.ClientConfig{})(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	if _, _, err := (mounter{caller: caller}).find(t.Context(), "/", false); err == nil {
		t.Error("mounted where nobody listens")
	}
}

func TestThePortMapperIsAskedForMOUNTOverTCP(t *testing.T) {
	want := oncrpc.Mapping{Prog: nfs.MountProgram, Vers: nfs.MountV3, Prot: oncrpc.ProtTCP}
	mapper := &direct{handler: oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
		d := oncrpc.NewDecoder(r.Args, "GETPORT arguments")
		var m oncrpc.Mapping
		m.Decode(&d)
		if r.Prog != oncrpc.PmapProg || r.Vers != oncrpc.PmapVers || r.Proc != oncrpc.PmapGetPort || m != want {
			t.Errorf("asked for %v by %+v", m, r.Call)
		}
		e := r.Accept(4)
		e.Uint32(892)
		return e.Finish()
	})}
	if port, err := getPort(t.Context(), mapper, want); err != nil || port != 892 {
		t.Errorf("got port %d, %v", port, err)
	}
}
