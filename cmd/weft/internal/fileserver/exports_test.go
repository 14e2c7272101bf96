package fileserver

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/folder"
	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/origin"
)

// exporting returns an export of a new directory.
func exporting(t *testing.T, name string, change func(*Export)) Export {
	t.Helper()
	x := Export{Name: name, Files: folder.Config{Root: t.TempDir(), SingleUser: true, Squash: folder.SquashNone}}
	if err := os.WriteFile(filepath.Join(x.Files.Root, "file"), []byte(name), 0o666); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&x)
	}
	return x
}

// startWith starts a server of several exports.
func startWith(t *testing.T, exports ...Export) *Server {
	t.Helper()
	elsewhere := &origin.Origin{Addr: netip.MustParseAddrPort("192.0.2.9:700")}
	s, _ := startFor(t, elsewhere, func(c *Config) {
		c.PortMap, c.Exports = PortMapOff, exports
		by := RulesOf(exports, false)
		c.Allow, c.Names, c.Insecure, c.XprtSec = by.Allow, by.Names, by.Insecure, by.XprtSec
	})
	return s
}

var theirs = mount.Allow{netip.MustParsePrefix("198.51.100.0/24")}

func TestAHandleWorksInItsExportAlone(t *testing.T) {
	open := exporting(t, "/open", nil)
	closed := exporting(t, "/closed", func(x *Export) { x.Allow = theirs })
	s := startWith(t, open, closed)
	forbidden, err := s.exports.now.Load().byMark[mark("/closed")].files.Handle(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for over, c := range s.ways(t) {
		res, err := mnt(c, "/open")
		if err != nil || res.Stat != nfs.MountOK {
			t.Fatalf("MNT of what is allowed, over %s: %v, %v", over, res.Stat, err)
		}
		if attr, err := look(c, res.FH); err != nil || attr.Stat != nfs.OK {
			t.Errorf("GETATTR of what is allowed, over %s: %v, %v", over, attr.Stat, err)
		}
		if res, err := mnt(c, "/closed"); err != nil || res.Stat != nfs.MountErrAcces {
			t.Errorf("MNT of what is not, over %s: %v, %v", over, res.Stat, err)
		}
		if _, err := look(c, forbidden); !errors.Is(err, tooWeak) {
			t.Errorf("GETATTR with a handle of what is not, over %s: %v, want %v", over, err, tooWeak)
		}
		// With the mark of the open export the handle is not genuine.
		forged := slices.Clone(forbidden)
		copy(forged[1:4], res.FH[1:4])
		if attr, err := look(c, forged); err != nil || attr.Stat != nfs.ErrStale {
			t.Errorf("GETATTR with a forged handle, over %s: %v, %v", over, attr.Stat, err)
		}
		stranger := slices.Clone(res.FH)
		stranger[2]++
		if attr, err := look(c, stranger); err != nil || attr.Stat != nfs.ErrStale {
			t.Errorf("GETATTR with a handle of no export, over %s: %v, %v", over, attr.Stat, err)
		}
	}
}

func TestAReloadHoldsForConnectionsThereAre(t *testing.T) {
	one, two := exporting(t, "/one", nil), exporting(t, "/two", nil)
	s := startWith(t, one, two)
	for over, c := range s.ways(t) {
		first, err := mnt(c, "/one")
		second, err2 := mnt(c, "/two")
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		expect := func(when string, fh nfs.FH, want nfs.Stat, wantErr error) {
			t.Helper()
			if attr, err := look(c, fh); !errors.Is(err, wantErr) || err == nil && attr.Stat != want {
				t.Errorf("%s, over %s: %v, %v, want %v, %v", when, over, attr.Stat, err, want, wantErr)
			}
		}
		closed := one
		closed.Allow = theirs
		if err := s.Reload([]Export{closed, two}); err != nil {
			t.Fatal(err)
		}
		expect("an export that was closed", first.FH, 0, tooWeak)
		expect("another one", second.FH, nfs.OK, nil)
		if err := s.Reload([]Export{one}); err != nil {
			t.Fatal(err)
		}
		expect("an export that was opened again", first.FH, nfs.OK, nil)
		expect("an export that is no more", second.FH, nfs.ErrStale, nil)

		broken := two
		broken.Files.Root = filepath.Join(two.Files.Root, "none")
		closed.Files.ReadOnly = true
		if err := s.Reload([]Export{closed, broken}); err == nil {
			t.Error("no error for a directory that does not exist")
		}
		expect("after a reload that has failed", first.FH, nfs.OK, nil)
		if err := s.Reload([]Export{one, two}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheRulesOfAllAreWhatAnExportAccepts(t *testing.T) {
	name, err := origin.ParseName("dns:host.example")
	if err != nil {
		t.Fatal(err)
	}
	tls := mount.XprtSecOf(origin.TLS)
	networks := Export{Rules: Rules{Allow: theirs, XprtSec: tls}}
	names := Export{Rules: Rules{Names: []origin.Name{name}, XprtSec: mount.XprtSecOf(origin.MutualTLS)}}
	all := Export{Rules: Rules{Insecure: true}}
	if got := RulesOf([]Export{networks, names}, false); len(got.Allow) != 1 || len(got.Names) != 1 || got.Insecure || got.XprtSec != mount.XprtSecOf(origin.TLS, origin.MutualTLS) {
		t.Errorf("of networks and names: %+v", got)
	}
	if got := RulesOf([]Export{networks, names, all}, false); len(got.Allow) != 0 || len(got.Names) != 0 || !got.Insecure || got.XprtSec != 0 {
		t.Errorf("with one for everybody: %+v", got)
	}
	// No list means no other machine where all callers act as the server's user.
	if got := RulesOf([]Export{networks, all}, true); len(got.Allow) != 1 {
		t.Errorf("of a personal server: %+v", got)
	}
}

func TestFurtherAddressesServeTheSame(t *testing.T) {
	x := exporting(t, "/x", nil)
	s := start(t, func(c *Config) {
		c.Exports, c.Insecure, c.AllowOthers = []Export{x}, true, true
		c.FurtherRDMA, c.FurtherTCP = []string{"127.0.0.1:0"}, []string{"127.0.0.1:0"}
	})
	if n := len(s.Listening()); n != 2 {
		t.Fatalf("NFS over RDMA at %d addresses, want 2", n)
	}
	if res, err := mnt(overRDMA(t, s.Listening()[1].String()), "/x"); err != nil || res.Stat != nfs.MountOK {
		t.Errorf("MNT over RDMA: %v, %v", res.Stat, err)
	}
	if res, err := mnt(overTCP(t, s.ports.moreTCP[0].Addr().String()), "/x"); err != nil || res.Stat != nfs.MountOK {
		t.Errorf("MNT over TCP: %v, %v", res.Stat, err)
	}
}
