package origin

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
)

func TestOnlyALivingSocketHasAnOwner(t *testing.T) {
	good := socket{local: from4, remote: to4, state: tcpEstablished, uid: 2000, inode: 1}
	for _, tt := range []struct {
		what   string
		change func(*socket)
		uid    uint32
		err    string // part of it; "" is none
	}{
		{"a process's", func(s *socket) {}, 2000, ""},
		{"root's, or the kernel's", func(s *socket) { s.uid = 0 }, 0, ""},
		{"closed by its process", func(s *socket) { s.uid, s.inode = 0, 0 }, 0, ErrGone.Error() + ": its socket has no owner"},
		{"of a process that has said its last", func(s *socket) { s.state = 4 }, 0, ErrGone.Error() + ": its socket is in state 4"},
		{"a listener", func(s *socket) { s.state, s.remote = 10, netip.MustParseAddrPort("0.0.0.0:0") }, 0, "no socket"},
		{"of another connection", func(s *socket) { s.remote = netip.MustParseAddrPort("192.0.2.7:20050") }, 0, "no socket"},
		{"this end", func(s *socket) { s.local, s.remote = s.remote, s.local }, 0, "no socket"},
		{"of a user of another user namespace", func(s *socket) { s.uid = 65534 }, 0, "uid 65534"},
		{"of the last uid", func(s *socket) { s.uid = 1<<32 - 2 }, 1<<32 - 2, ""},
	} {
		s := good
		tt.change(&s)
		uid, err := s.owner(from4, to4, 65534)
		if uid != tt.uid || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: uid %d, %v, want %d, %q", tt.what, uid, err, tt.uid, tt.err)
		}
	}
	zoned := socket{local: netip.MustParseAddrPort("[fe80::1]:4242"), remote: netip.MustParseAddrPort("[fe80::1]:2049"), state: tcpEstablished, uid: 7, inode: 1}
	if uid, err := zoned.owner(netip.MustParseAddrPort("[fe80::1%eth0]:4242"), netip.MustParseAddrPort("[fe80::1%eth0]:2049"), 65534); uid != 7 || err != nil {
		t.Errorf("with a zone: uid %d, %v, want 7", uid, err)
	}
}

// A fakeConn is a connection between two addresses, with a socket.
type fakeConn struct {
	net.Conn
	from, to net.Addr
}

func (c fakeConn) RemoteAddr() net.Addr                      { return c.from }
func (c fakeConn) LocalAddr() net.Addr                       { return c.to }
func (c fakeConn) SyscallConn() (r syscall.RawConn, e error) { return nil, nil }

// A bareConn has none.
type bareConn struct {
	net.Conn
	fakeConn fakeConn
}

func (c bareConn) RemoteAddr() net.Addr { return c.fakeConn.from }
func (c bareConn) LocalAddr() net.Addr  { return c.fakeConn.to }

func TestALookSaysMachineAndUser(t *testing.T) {
	broken := errors.New("broken")
	member := &User{UID: 2000, GID: 2000, Groups: []uint32{7}}
	var asked string
	good := host{
		ours: func(a netip.Addr) (bool, error) { return a == from4.Addr() || a.IsLinkLocalUnicast(), nil },
		owner: func(from, to netip.AddrPort) (uint32, error) {
			asked = from.String() + " " + to.String()
			return 2000, nil
		},
		established: func(syscall.Conn) (bool, error) { return true, nil },
		user:        func(uint32) (*User, error) { return member, nil },
	}
	conn := fakeConn{from: tcp("127.0.0.1:4242"), to: tcp("127.0.0.1:20049")}
	for _, tt := range []struct {
		what   string
		nc     net.Conn
		change func(*host)
		asked  string
		local  bool
		user   *User
		owner  bool  // the error is ErrOwner
		err    error // wrapped
	}{
		{what: "this machine", nc: conn, asked: "127.0.0.1:4242 127.0.0.1:20049", local: true, user: member},
		{what: "this machine, mapped", nc: fakeConn{from: tcp("[::ffff:127.0.0.1]:4242"), to: tcp("[::ffff:192.0.2.7]:20049")}, asked: "127.0.0.1:4242 192.0.2.7:20049", local: true, user: member},
		{what: "this machine, with a zone", nc: fakeConn{from: tcp("[fe80::1%eth0]:1"), to: tcp("[fe80::1%eth0]:2")}, asked: "[fe80::1%eth0]:1 [fe80::1%eth0]:2", local: true, user: member},
		{what: "another machine", nc: fakeConn{from: tcp("192.0.2.9:700"), to: tcp("192.0.2.7:20049")}},
		{what: "no address of IP", nc: fakeConn{from: &net.UnixAddr{Name: "s"}, to: &net.UnixAddr{Name: "s"}}},
		{what: "nobody knows the machine", nc: conn, change: func(h *host) { h.ours = func(netip.Addr) (bool, error) { return false, broken } }, err: broken},
		{what: "no socket to see", nc: bareConn{fakeConn: conn}, local: true, owner: true},
		{what: "no owner", nc: conn, change: func(h *host) { h.owner = func(_, _ netip.AddrPort) (uint32, error) { return 0, broken } }, local: true, owner: true, err: broken},
		{what: "ended meanwhile", nc: conn, change: func(h *host) { h.established = func(syscall.Conn) (bool, error) { return false, nil } }, local: true, owner: true, err: ErrGone},
		{what: "this end shows nothing", nc: conn, change: func(h *host) { h.established = func(syscall.Conn) (bool, error) { return false, broken } }, local: true, owner: true, err: broken},
		{what: "no user", nc: conn, change: func(h *host) { h.user = func(uint32) (*User, error) { return nil, broken } }, local: true, owner: true, err: broken},
	} {
		h := good
		if tt.change != nil {
			tt.change(&h)
		}
		asked = ""
		o, err := look(tt.nc, h)
		if (err != nil) != (tt.owner || tt.err != nil) || errors.Is(err, ErrOwner) != tt.owner || tt.err != nil && !errors.Is(err, tt.err) {
			t.Errorf("%s: error %v, want ErrOwner %v, %v", tt.what, err, tt.owner, tt.err)
		}
		if (o == nil) != (err != nil && !tt.owner) {
			t.Errorf("%s: origin %v with error %v", tt.what, o, err)
		}
		if got := everybody(tt.nc, h); o == nil && *got != *Of(tt.nc.RemoteAddr()) || o != nil && (got.Local != o.Local || got.User != o.User) {
			t.Errorf("%s: everybody is %+v, and %+v to who looks", tt.what, got, o)
		}
		if o != nil && (o.Local != tt.local || o.User != tt.user) {
			t.Errorf("%s: %+v, want local %v, user %v", tt.what, o, tt.local, tt.user)
		}
		if tt.asked != "" && asked != tt.asked {
			t.Errorf("%s: asked for %s, want %s", tt.what, asked, tt.asked)
		}
	}
}

// The order matters: what is found is of the connection only if that is there
// after it was found.
func TestTheConnectionIsLookedAtLast(t *testing.T) {
	var order []string
	h := host{
		ours:        func(netip.Addr) (bool, error) { return true, nil },
		owner:       func(_, _ netip.AddrPort) (uint32, error) { order = append(order, "owner"); return 7, nil },
		established: func(syscall.Conn) (bool, error) { order = append(order, "established"); return true, nil },
		user:        func(uint32) (*User, error) { return &User{UID: 7}, nil },
	}
	if _, err := look(fakeConn{from: tcp("127.0.0.1:1"), to: tcp("127.0.0.1:2")}, h); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, " "); got != "owner established" {
		t.Errorf("asked for %s", got)
	}
}

func TestUsersHaveTheGroupsOfTheSystem(t *testing.T) {
	u, err := userOf(2000, "2000", []string{"2000", "4", "27"})
	if err != nil || u.UID != 2000 || u.GID != 2000 || len(u.Groups) != 2 || u.Groups[0] != 4 || u.Groups[1] != 27 {
		t.Errorf("%+v, %v", u, err)
	}
	for _, bad := range [][]string{{"x"}, {"1", "S-1-5-32"}, {"4294967296"}} {
		if u, err := userOf(1, bad[0], bad[1:]); err == nil {
			t.Errorf("groups %v make %+v", bad, u)
		}
	}
	if u, err := lookupUser(0); err != nil || u.UID != 0 || u.Groups != nil {
		t.Errorf("root: %+v, %v", u, err)
	}
	// Nobody gives somebody this number.
	const unknown = 1<<32 - 7
	if u, err := lookupUser(unknown); err == nil && (u.UID != unknown || u.GID != nobody || u.Groups != nil || !u.Unknown) {
		t.Errorf("uid %d: %+v", uint32(unknown), u)
	}
}

func TestLoopbackIsOursWhateverTheInterfaces(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1": true, "127.255.1.2": true, "::1": true, "203.0.113.99": false, "2001:db8:ffff::99": false} {
		if got, err := system.ours(netip.MustParseAddr(addr)); err != nil || got != want {
			t.Errorf("%s is ours: %v, %v, want %v", addr, got, err, want)
		}
		if got, err := onInterface(netip.MustParseAddr(addr)); err != nil || got != want {
			t.Errorf("%s is on an interface: %v, %v, want %v", addr, got, err, want)
		}
	}
}
