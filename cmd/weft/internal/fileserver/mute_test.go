package fileserver

import (
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// Beginnings of what a server reads, after which a mute peer waits.
var beginnings = map[string]string{
	"nothing":             "",
	"half a call":         "\x80\x00\x00\x40\x00\x00\x00\x01\x00\x00",
	"half a handshake":    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	"half a start of MPA": "MPA ID Req ",
}

// One host has many more connections than there are places, and an export for as many as one.
func TestMuteConnectionsKeepNoOtherClientOut(t *testing.T) {
	theirs := &origin.Origin{Addr: netip.MustParseAddrPort("192.0.2.9:700")}
	ours := &origin.Origin{Addr: netip.MustParseAddrPort("198.51.100.7:700")}
	for what, begin := range beginnings {
		t.Run(what, func(t *testing.T) {
			var looked atomic.Int32
			var from atomic.Pointer[origin.Origin]
			from.Store(theirs)
			server, _ := pair(t)
			x := exporting(t, "/x", func(x *Export) { x.Quota.Connections = 1 })
			s := start(t, func(c *Config) {
				c.Exports, c.StartTLS, c.Connections = []Export{x}, server, 8 // 4 of each transport
				c.look = func(net.Conn) (*origin.Origin, error) {
					looked.Add(1)
					return from.Load(), nil
				}
			})
			const many = 20
			for _, at := range []net.Addr{s.TCP(), s.RDMA()} {
				for range many {
					nc, err := net.Dial("tcp", at.String())
					if err != nil {
						continue // it was reset at once
					}
					defer nc.Close()
					nc.Write([]byte(begin)) // the connection may be refused already
				}
			}
			nettest.Until(t, func() bool { return looked.Load() == 2*many })
			from.Store(ours)
			for _, dial := range []func() oncrpc.Caller{
				func() oncrpc.Caller { return overTCP(t, s.TCP().String()) },
				func() oncrpc.Caller { return overRDMA(t, s.RDMA().String()) },
			} {
				c := dial()
				res, err := mnt(c, "/x")
				if err != nil || res.Stat != nfs.MountOK {
					t.Fatalf("%v, %v", res.Stat, err)
				}
				if _, err := look(c, res.FH); err != nil {
					t.Error(err)
				}
				c.(interface{ Close() error }).Close()
				// The place at the export is free when the server has seen the end.
				e := s.exports.now.Load().all[0]
				nettest.Until(t, func() bool {
					e.usage.mu.Lock()
					defer e.usage.mu.Unlock()
					return len(e.usage.sessions) == 0
				})
			}
		})
	}
}

func TestStartUpsAreAsManyAsDescriptorsAllow(t *testing.T) {
	const descriptors = 256
	s := start(t, func(c *Config) { c.descriptors = descriptors })
	backlog := limitsFor(descriptors).backlog
	for range backlog + 3 {
		nc, err := net.Dial("tcp", s.RDMA().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
	}
	nettest.Until(t, func() bool { return s.ports.rdma.Refusals().Evicted == 3 })
}

func TestConnectionsOfAClientAreThoseOfItsNetwork(t *testing.T) {
	u := newUsage()
	u.limit(Quota{ClientConnections: 1}, 0)
	for i, c := range []struct {
		from string
		room bool
	}{
		{"192.0.2.1", true}, {"::ffff:192.0.2.1", false}, {"192.0.2.2", true},
		{"2001:db8::1", true}, {"2001:db8::2:1", false}, {"2001:db8:0:1::1", true}, {"fe80::1%lo", true}, {"fe80::2%eth0", false},
	} {
		from := origin.Of(&net.TCPAddr{IP: net.ParseIP(netip.MustParseAddr(c.from).WithZone("").String()), Zone: netip.MustParseAddr(c.from).Zone(), Port: 700})
		if room := u.enter(&oncrpc.Request{Origin: from, Session: i, SessionEnd: func(func()) {}}); room != c.room {
			t.Errorf("%s: room %v, want %v", c.from, room, c.room)
		}
	}
}
