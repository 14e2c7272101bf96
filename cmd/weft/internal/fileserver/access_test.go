package fileserver

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/nfs/nlm"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// A lines is a log that tests read.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startFor starts a server to which all connections come from one place.
func startFor(t *testing.T, o *origin.Origin, change func(*Config)) (*Server, *lines) {
	t.Helper()
	log := new(lines)
	return start(t, func(c *Config) {
		c.PortMap, c.Logger = PortMapOwn, slog.New(slog.NewTextHandler(log, nil))
		c.look = func(net.Conn) (*origin.Origin, error) { return o, nil }
		change(c)
	}), log
}

// ways are all connections to a server.
func (s *Server) ways(t *testing.T) map[string]oncrpc.Caller {
	t.Helper()
	return map[string]oncrpc.Caller{"TCP": overTCP(t, s.TCP().String()), "RDMA": overRDMA(t, s.RDMA().String())}
}

var tooWeak = &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}

func TestAnotherUserLearnsNothingOfAPersonalServer(t *testing.T) {
	other := &origin.Origin{Local: true, Addr: netip.MustParseAddrPort("127.0.0.1:700"), User: &origin.User{UID: uint32(max(os.Geteuid(), 0)) + 1}}
	s, log := startFor(t, other, func(c *Config) { c.Personal = true })
	all := s.ways(t)
	all["the port mapper"] = overTCP(t, s.ports.pmapTCP.Addr().String())
	for over, c := range all {
		for _, p := range [][3]uint32{
			{nfs.Program, nfs.V3, 0}, {nfs.MountProgram, 3, 0}, {nfs.MountProgram, 3, uint32(nfs.MountMnt)},
			{nfs.MountProgram, 3, uint32(nfs.MountExport)}, {nfs.MountProgram, 1, uint32(nfs.MountDump)}, {nlm.Program, nlm.V4, 0},
			{oncrpc.PmapProg, 2, 0}, {oncrpc.PmapProg, 2, 4}, {oncrpc.PmapProg, 4, 4}, {99, 1, 0},
		} {
			if err := do(c, p[0], p[1], p[2], nil, nil); !errors.Is(err, tooWeak) {
				t.Errorf("%v over %s: %v, want %v", p, over, err, tooWeak)
			}
		}
		if _, err := look(c, nfs.FH("handle")); !errors.Is(err, tooWeak) {
			t.Errorf("GETATTR over %s: %v, want %v", over, err, tooWeak)
		}
	}
	if got := log.String(); !strings.Contains(got, "--allow-others") || strings.Count(got, "refused a call") != fairness.LinesOfShare {
		t.Errorf("logged %s", got)
	}
}

func TestWhoMayUseAPersonalServer(t *testing.T) {
	self := uint32(max(os.Geteuid(), 0))
	here := func(uid uint32) *origin.Origin {
		return &origin.Origin{Local: true, Addr: netip.MustParseAddrPort("127.0.0.1:40000"), User: &origin.User{UID: uid}}
	}
	for _, tt := range []struct {
		what   string
		from   *origin.Origin
		others bool
	}{{"the same user", here(self), false}, {"root", here(0), false}, {"others who are let in", here(self + 1), true}} {
		s, log := startFor(t, tt.from, func(c *Config) { c.Personal, c.AllowOthers = true, tt.others })
		for over, c := range s.ways(t) {
			res, err := mnt(c, "/")
			if err != nil || res.Stat != nfs.MountOK {
				t.Errorf("MOUNT of %s over %s: %v, %v", tt.what, over, res.Stat, err)
				continue
			}
			if attr, err := look(c, res.FH); err != nil || attr.Stat != nfs.OK {
				t.Errorf("GETATTR of %s over %s: %v, %v", tt.what, over, attr.Stat, err)
			}
		}
		if got := log.String(); strings.Contains(got, "refused") {
			t.Errorf("%s: logged %s", tt.what, got)
		}
	}
}

func TestPortsOfOtherMachinesAreJudgedOverTCP(t *testing.T) {
	for _, insecure := range []bool{false, true} {
		elsewhere := &origin.Origin{Addr: netip.MustParseAddrPort("192.0.2.9:40000")}
		s, log := startFor(t, elsewhere, func(c *Config) { c.Insecure = insecure })
		for over, c := range s.ways(t) {
			if err := do(c, nfs.Program, nfs.V3, 0, nil, func(*oncrpc.Decoder) {}); err != nil {
				t.Errorf("NULL over %s: %v", over, err)
			}
			served := insecure || over == "RDMA"
			_, mntErr := mnt(c, "/")
			_, nfsErr := look(c, nfs.FH("handle"))
			for what, err := range map[string]error{"MNT": mntErr, "GETATTR": nfsErr} {
				if served != (err == nil) || !served && !errors.Is(err, tooWeak) {
					t.Errorf("%s over %s, insecure %v: %v", what, over, insecure, err)
				}
			}
		}
		if got := log.String(); strings.Contains(got, "--insecure") == insecure {
			t.Errorf("insecure %v: logged %s", insecure, got)
		}
	}
}

func TestOtherMachinesNeedAListOfAPersonalServer(t *testing.T) {
	elsewhere := &origin.Origin{Addr: netip.MustParseAddrPort("192.0.2.9:700")}
	s, log := startFor(t, elsewhere, func(c *Config) { c.Personal, c.AllowOthers = true, true })
	for over, c := range s.ways(t) {
		if _, err := mnt(c, "/"); err == nil || errors.Is(err, tooWeak) {
			t.Errorf("MOUNT over %s: %v, want the connection's end", over, err)
		}
	}
	if got := log.String(); !strings.Contains(got, "--allow admits it") {
		t.Errorf("logged %s", got)
	}
	s, _ = startFor(t, elsewhere, func(c *Config) {
		c.Personal, c.Allow = true, mount.Allow{netip.MustParsePrefix("192.0.2.0/24")}
	})
	for over, c := range s.ways(t) {
		if res, err := mnt(c, "/"); err != nil || res.Stat != nfs.MountOK {
			t.Errorf("MOUNT over %s by one on the list: %v, %v", over, res.Stat, err)
		}
	}
}

func TestWhoseSocketIsNobodysIsCutOff(t *testing.T) {
	nobody := &origin.Origin{Local: true, Addr: netip.MustParseAddrPort("127.0.0.1:700")}
	for _, others := range []bool{false, true} {
		s, _ := startFor(t, nobody, func(c *Config) {
			c.AllowOthers = others
			c.look = func(net.Conn) (*origin.Origin, error) {
				return nobody, fmt.Errorf("%w: it has none", origin.ErrOwner)
			}
		})
		for over, c := range s.ways(t) {
			if _, err := mnt(c, "/"); (err == nil) != others {
				t.Errorf("MOUNT over %s, others let in %v: %v", over, others, err)
			}
		}
	}
}

func TestNoFlagIsAdvisedForOneWhoHasGone(t *testing.T) {
	for _, why := range []error{origin.ErrGone, nil} {
		err := errors.Join(origin.ErrOwner, why)
		if got := strings.Contains(Advised(err).Error(), "--allow-others"); got != (why == nil) {
			t.Errorf("%v, a flag advised %v", err, got)
		}
	}
}

// A handle is given out over connections alone, whose owners are known.
func TestADatagramOfThisMachineGetsNoHandle(t *testing.T) {
	s := start(t, func(c *Config) {})
	for range 10 { // another program may have the port for UDP
		if s.ports.udp != nil {
			break
		}
		s = start(t, func(c *Config) {})
	}
	if s.ports.udp == nil {
		t.Fatal("ten ports of TCP in a row are taken for UDP")
	}
	nc, err := net.Dial("udp", s.ports.udp.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute)) // a test that hangs
	for proc, want := range map[nfs.MountProc]error{nfs.MountMnt: tooWeak, nfs.MountUmnt: nil} {
		call := oncrpc.Call{XID: 7, Prog: nfs.MountProgram, Vers: nfs.MountV3, Proc: uint32(proc)}
		e := oncrpc.NewEncoder(nil)
		call.Encode(&e)
		(&nfs.MountPath{Path: "/"}).Encode(&e)
		message, err := e.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Write(message); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 4096)
		n, err := nc.Read(answer)
		if err != nil {
			t.Fatal(err)
		}
		var reply oncrpc.Reply
		if _, err := reply.Parse(answer[:n]); err != nil {
			t.Fatal(err)
		}
		if err := reply.Err(); !errors.Is(err, want) {
			t.Errorf("%v: %v, want %v", proc, err, want)
		}
	}
}

func TestRefusalsAreToldOfAFewTimes(t *testing.T) {
	var b bytes.Buffer
	c := Config{Logger: slog.New(slog.NewTextHandler(&b, nil))}
	a := c.access()
	for i := range 1000 {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 40000)
		a.Refused(&oncrpc.Request{Remote: net.TCPAddrFromAddrPort(addr), Origin: &origin.Origin{Addr: addr}}, mount.ErrPort)
	}
	if n := strings.Count(b.String(), "\n"); n != fairness.LinesOfAll {
		t.Errorf("%d lines, want %d", n, fairness.LinesOfAll)
	}
}
