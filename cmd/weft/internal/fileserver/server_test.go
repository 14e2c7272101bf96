package fileserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/internal/rpctest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/binding"
	"github.com/weft-rdma/weft/nfs/folder"
	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/nfs/nlm"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/rpctcp"
)

// start starts a file server of a new directory on free ports of the loopback
// address, as changed by change, and ends it with the test.
func start(t *testing.T, change func(*Config)) *Server {
	t.Helper()
	return startAt(t, t.TempDir(), change)
}

// startAt does so with an empty directory.
func startAt(t *testing.T, dir string, change func(*Config)) *Server {
	t.Helper()
	nettest.CheckLeaks(t)
	if err := os.Mkdir(filepath.Join(dir, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		RDMA: "127.0.0.1:0", TCP: "127.0.0.1:0", PortMap: PortMapOff,
		Logger: slog.New(slog.DiscardHandler), Notice: func(string) {}, portMapPort: "0",
	}
	if change != nil {
		change(&cfg)
	}
	if cfg.Exports == nil {
		cfg.Unmarked = true
		cfg.Exports = []Export{{
			Name: filepath.ToSlash(dir), Files: folder.Config{Root: dir, SingleUser: true},
			Rules: Rules{cfg.Allow, cfg.Names, cfg.Insecure, cfg.XprtSec},
		}}
	}
	s, err := Start(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		select {
		case err := <-s.Failed():
			t.Error(err)
		default:
		}
	})
	return s
}

// overTCP is a client of an address.
func overTCP(t *testing.T, addr string) oncrpc.Caller {
	t.Helper()
	c, err := rpctcp.NewClient(rpctcp.ClientConfig{Address: addr, Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func overRDMA(t *testing.T, addr string) oncrpc.Caller {
	t.Helper()
	c, err := rpcrdma.NewClient(rpcrdma.ClientConfig{Address: addr, Attempts: 1, Bindings: binding.NFS()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// do makes a call and decodes the results.
func do(c oncrpc.Caller, prog, vers, proc uint32, args func(*oncrpc.Encoder), results func(*oncrpc.Decoder)) error {
	e := oncrpc.NewEncoder(nil)
	if args != nil {
		args(&e)
	}
	b, err := e.Finish()
	if err != nil {
		return err
	}
	r, err := c.Call(context.Background(), &oncrpc.ClientCall{Call: oncrpc.Call{Prog: prog, Vers: vers, Proc: proc}, Args: [][]byte{b}, MaxReply: 4096})
	if err != nil {
		return err
	}
	defer r.Release()
	d := oncrpc.NewDecoder(bytes.Clone(r.Results), "results")
	results(&d)
	return d.End()
}

// mnt mounts a path.
func mnt(c oncrpc.Caller, path string) (nfs.MountRes, error) {
	var res nfs.MountRes
	err := do(c, nfs.MountProgram, nfs.MountV3, uint32(nfs.MountMnt), (&nfs.MountPath{Path: path}).Encode, res.Decode)
	return res, err
}

// look returns what GETATTR says of a handle.
func look(c oncrpc.Caller, fh nfs.FH) (nfs.GetattrRes, error) {
	var res nfs.GetattrRes
	err := do(c, nfs.Program, nfs.V3, uint32(nfs.ProcGetattr), (&nfs.GetattrArgs{Object: fh}).Encode, res.Decode)
	return res, err
}

// TestAFolderIsServedOverBothTransports mounts over TCP and over RDMA and looks
// at what it got over both.
//
// Claims: P8267-5.1-1
func TestAFolderIsServedOverBothTransports(t *testing.T) {
	dir := t.TempDir()
	s := startAt(t, dir, nil)
	tcp, rdma := overTCP(t, s.TCP().String()), overRDMA(t, s.RDMA().String())
	for name, c := range map[string]oncrpc.Caller{"TCP": tcp, "RDMA": rdma} {
		for _, path := range []string{"/", filepath.ToSlash(dir), "/below", filepath.ToSlash(dir) + "/below"} {
			res, err := mnt(c, path)
			if err != nil || res.Stat != nfs.MountOK {
				t.Fatalf("MOUNT of %s over %s: %v, %v", path, name, res.Stat, err)
			}
			for over, c := range map[string]oncrpc.Caller{"TCP": tcp, "RDMA": rdma} {
				if attr, err := look(c, res.FH); err != nil || attr.Stat != nfs.OK || attr.Attr.Type != nfs.TypeDir {
					t.Errorf("GETATTR of %s over %s: %+v, %v", path, over, attr, err)
				}
			}
		}
	}
	if s.Mapped() {
		t.Error("a port mapper knows of the server, though it was to be left out")
	}
}

// TestThePortMapperKnowsEverything also asks it over RDMA, where it may be as well.
//
// Claims: P-10-4 P-10-5
func TestThePortMapperKnowsEverything(t *testing.T) {
	s := start(t, func(c *Config) { c.PortMap = PortMapOwn })
	if !s.Mapped() {
		t.Error("the server's own port mapper does not count")
	}
	over := map[string]oncrpc.Caller{
		"TCP": overTCP(t, s.ports.pmapTCP.Addr().String()), "RDMA": overRDMA(t, s.RDMA().String()),
	}
	for _, c := range []struct {
		over, netid string
		prog, vers  uint32
		want        net.Addr
	}{
		{"TCP", "rdma", nfs.Program, 3, s.RDMA()},
		{"TCP", "tcp", nfs.Program, 3, s.TCP()},
		{"TCP", "tcp", nfs.MountProgram, 1, s.TCP()},
		{"TCP", "tcp", nfs.MountProgram, 3, s.TCP()},
		{"TCP", "tcp", oncrpc.PmapProg, 4, s.ports.pmapTCP.Addr()},
		{"RDMA", "rdma", nfs.Program, 3, s.RDMA()},
	} {
		ask := oncrpc.Rpcb{Prog: c.prog, Vers: c.vers, Netid: c.netid}
		var got string
		err := do(over[c.over], oncrpc.PmapProg, oncrpc.RpcbVers4, oncrpc.RpcbGetAddr, ask.Encode, func(d *oncrpc.Decoder) { got = d.String(255) })
		want := oncrpc.FormatUaddr(netip.MustParseAddrPort(c.want.String()))
		if err != nil || got != want {
			t.Errorf("program %d on %s, asked over %s: %q, %v, want %q", c.prog, c.netid, c.over, got, err, want)
		}
	}
}

// Hosts that are not allowed are let go before anything of theirs is read, on every
// port, whatever they ask: they learn nothing, not even of NULL.
func TestThoseNotAllowedLearnNothing(t *testing.T) {
	var log logged
	s := start(t, func(c *Config) {
		c.Allow = mount.Allow{netip.MustParsePrefix("192.0.2.0/24")}
		c.PortMap, c.Logger = PortMapOwn, slog.New(slog.NewTextHandler(&log, nil))
	})
	for _, addr := range []net.Addr{s.TCP(), s.RDMA(), s.ports.pmapTCP.Addr()} {
		for range 50 {
			nc, err := net.Dial("tcp", addr.String())
			if err != nil {
				continue // it was reset at once
			}
			if b, err := io.ReadAll(nc); len(b) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%v says %q and ends by %v", addr, b, err)
			}
			nc.Close()
		}
	}
	for name, addr := range map[string]net.Addr{"TCP": s.TCP(), "the port mapper": s.ports.pmapTCP.Addr()} {
		for _, call := range []struct{ prog, vers, proc uint32 }{
			{nfs.Program, 3, 0}, {nfs.MountProgram, 3, 0}, {nfs.MountProgram, 3, uint32(nfs.MountDump)}, {nfs.MountProgram, 3, uint32(nfs.MountExport)},
			{nlm.Program, nlm.V4, 0}, {oncrpc.PmapProg, 2, 0}, {oncrpc.PmapProg, 2, oncrpc.PmapDump}, {99, 1, 0},
		} {
			err := do(overTCP(t, addr.String()), call.prog, call.vers, call.proc, nil, func(*oncrpc.Decoder) {})
			var accept *oncrpc.AcceptError
			var reject *oncrpc.RejectError
			if err == nil || errors.As(err, &accept) || errors.As(err, &reject) {
				t.Errorf("%v over %s is answered: %v", call, name, err)
			}
		}
	}
	if said := log.String(); strings.Count(said, "refused a connection") > 3*fairness.LinesOfShare || !strings.Contains(said, "peer=127.0.0.1:") || !strings.Contains(said, "not among those that are allowed; --allow admits it") {
		t.Errorf("the log says %s", said)
	}
}

// A logged is a log that goroutines write.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// The connections of all kinds together leave half of the descriptors to files,
// or to the connections behind a gateway.
func TestConnectionsFollowTheLimitOfDescriptors(t *testing.T) {
	for n := 64; n < 1<<20; n += n / 7 {
		l := limitsFor(n)
		if all := l.rdma + l.tcp + 2*l.backlog + l.mapper; all > n/2 {
			t.Errorf("of %d descriptors %d are for connections: %+v", n, all, l)
		}
		if l.rdma < 1 || l.tcp < 1 || l.backlog < 1 || l.mapper < 1 {
			t.Errorf("%d descriptors: %+v", n, l)
		}
	}
	if l := limitsFor(1 << 20); l != (limits{rpcrdma.DefaultConnections, rpctcp.DefaultConnections, 128, 64}) {
		t.Errorf("many descriptors: %+v", l)
	}
	for _, tt := range []struct {
		wanted    int
		both      bool
		rdma, tcp int
	}{{0, true, 256, 1024}, {384, true, 192, 192}, {384, false, 256, 384}, {5000, true, 256, 1024}, {1, true, 1, 1}} {
		if l := limitsFor(1<<20).atMost(tt.wanted, tt.both); l.rdma != tt.rdma || l.tcp != tt.tcp {
			t.Errorf("%d connections wanted, RDMA %v: %+v, want %d and %d", tt.wanted, tt.both, l, tt.rdma, tt.tcp)
		}
	}
	if n := fairness.Descriptors(); n < 64 {
		t.Errorf("this process may have %d descriptors", n)
	}
}

func TestATakenPortIsAnErrorOrAvoided(t *testing.T) {
	other := nettest.Listen(t, "tcp4").Addr().String()
	notices := ""
	s := start(t, func(c *Config) {
		c.TCP, c.AnyTCP, c.Notice = other, true, func(text string) { notices += text }
	})
	if !strings.Contains(notices, s.TCP().String()) {
		t.Errorf("notices %q, want the port that is used", notices)
	}
	cfg := s.cfg
	cfg.AnyTCP = false
	if s, err := Start(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), other+" is in use") {
		t.Errorf("started %v, %v with a port that is taken", s, err)
	}
	cfg.RDMA = other
	if s, err := Start(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), other+" is in use") {
		t.Errorf("started %v, %v with a port that is taken", s, err)
	}
}

func TestWithoutTCPThereIsRDMAOnly(t *testing.T) {
	s := start(t, func(c *Config) { c.TCP, c.PortMap = "", PortMapAuto })
	if s.TCP() != nil || s.Mapped() {
		t.Errorf("serves at %v over TCP", s.TCP())
	}
	if res, err := mnt(overRDMA(t, s.RDMA().String()), "/"); err != nil || res.Stat != nfs.MountOK {
		t.Errorf("MOUNT over RDMA: %v, %v", res.Stat, err)
	}
}

// A fakeRegistry is a port mapper that takes registrations, of version 4 only.
type fakeRegistry struct {
	refuse string // the netid that it does not take
	log    chan string
}

func (f *fakeRegistry) ServeRPC(_ context.Context, r *oncrpc.Request) ([]byte, error) {
	d := oncrpc.NewDecoder(r.Args, "arguments")
	var b oncrpc.Rpcb
	b.Decode(&d)
	if err := d.End(); err != nil {
		return nil, err
	}
	f.log <- map[uint32]string{oncrpc.RpcbSet: "set", oncrpc.RpcbUnset: "unset"}[r.Proc] + " " + b.Netid
	e := r.Accept(4)
	e.Bool(b.Netid != f.refuse)
	return e.Finish()
}

// serve has the registry served on the loopback address.
func (f *fakeRegistry) serve(t *testing.T) []registryAt {
	t.Helper()
	address := rpctest.ServeTCP(t, rpctcp.ServerConfig{Handler: oncrpc.Mux{{Prog: oncrpc.PmapProg, Low: 4, High: 4, Handler: f}}})
	return []registryAt{{"unix", filepath.Join(t.TempDir(), "none")}, {"tcp", address}}
}

func (f *fakeRegistry) calls() (all []string) {
	for len(f.log) > 0 {
		all = append(all, <-f.log)
	}
	return all
}

func TestServicesAreRegisteredWhileTheyAreServed(t *testing.T) {
	f := &fakeRegistry{log: make(chan string, 100)}
	s := start(t, func(c *Config) { c.PortMap, c.registries = PortMapRegister, f.serve(t) })
	if got, want := strings.Join(f.calls(), ","), "set rdma,set tcp,set tcp,set tcp,set tcp,set udp,set udp,set udp"; got != want || !s.Mapped() {
		t.Errorf("%s, mapped %v, want %s", got, s.Mapped(), want)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if got, want := strings.Join(f.calls(), ","), "unset rdma,unset tcp,unset tcp,unset tcp,unset tcp,unset udp,unset udp,unset udp"; got != want {
		t.Errorf("at the end %s, want %s", got, want)
	}
}

func TestARefusedRegistrationIsAnErrorIfItWasAskedFor(t *testing.T) {
	f := &fakeRegistry{log: make(chan string, 100), refuse: "udp"}
	s := start(t, func(c *Config) {
		// Its own ports are not to be had, here as mostly with port 111.
		c.PortMap, c.registries, c.portMapPort = PortMapAuto, f.serve(t), "-1"
	})
	if s.Mapped() {
		t.Error("the server counts as registered")
	}
	cfg := s.cfg
	cfg.PortMap = PortMapRegister
	s, err := Start(context.Background(), cfg)
	if err == nil || !strings.Contains(err.Error(), "on udp cannot be registered: refused") {
		t.Fatalf("started %v, %v", s, err)
	}
	// That is all there is to say: what was begun ends without more words.
	if errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
