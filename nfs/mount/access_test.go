package mount

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/nlm"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// from is a caller at an address; 127.0.0.0/8 and 192.0.2.7 are this machine's.
func from(addr string, user *origin.User) *origin.Origin {
	ap := netip.MustParseAddrPort(addr)
	return &origin.Origin{Addr: ap, Local: isHere(ap.Addr()), User: user}
}

func isHere(a netip.Addr) bool { return a.IsLoopback() || a == netip.MustParseAddr("192.0.2.7") }

var (
	self  = &origin.User{UID: uint32(max(os.Geteuid(), 0))}
	root  = &origin.User{}
	other = &origin.User{UID: self.UID + 1}
)

func TestAccessIsJudgedForEachCall(t *testing.T) {
	const (
		local, own = "127.0.0.1:40000", "192.0.2.7:40000"
		low, high  = "198.51.100.7:1023", "198.51.100.7:1024"
	)
	list := networks(t, "198.51.100.0/24")
	both := networks(t, "198.51.100.0/24", "127.0.0.1")
	read := oncrpc.Call{Prog: nfs.Program, Vers: 3, Proc: 6}
	v4 := oncrpc.Call{Prog: nfs.Program, Vers: 4, Proc: 1}
	acl := oncrpc.Call{Prog: 100227, Vers: 3, Proc: 1}
	mnt := oncrpc.Call{Prog: nfs.MountProgram, Vers: 3, Proc: uint32(nfs.MountMnt)}
	umnt := oncrpc.Call{Prog: nfs.MountProgram, Vers: 3, Proc: uint32(nfs.MountUmnt)}
	export := oncrpc.Call{Prog: nfs.MountProgram, Vers: 3, Proc: uint32(nfs.MountExport)}
	lock := oncrpc.Call{Prog: nlm.Program, Vers: 4, Proc: 2}
	port := oncrpc.Call{Prog: oncrpc.PmapProg, Vers: 2, Proc: 3}
	null := oncrpc.Call{Prog: nfs.Program, Vers: 3}
	for _, tt := range []struct {
		what    string
		access  Access
		network string
		from    *origin.Origin
		call    oncrpc.Call
		want    error
	}{
		{"another machine, from a low port", Access{}, "tcp", from(low, nil), read, nil},
		{"another machine, from a high port", Access{}, "tcp", from(high, nil), read, ErrPort},
		{"version 4 of it", Access{}, "tcp", from(high, nil), v4, ErrPort},
		{"lists of rights of it", Access{}, "tcp", from(high, nil), acl, ErrPort},
		{"MNT of it", Access{}, "tcp", from(high, nil), mnt, ErrPort},
		{"MNT of it by UDP", Access{}, "udp", from(high, nil), mnt, ErrPort},
		{"MNT from a low one", Access{}, "udp", from(low, nil), mnt, nil},
		{"UMNT of it", Access{}, "tcp", from(high, nil), umnt, nil},
		{"EXPORT of it", Access{}, "udp", from(high, nil), export, nil},
		{"NULL of it", Access{}, "tcp", from(high, nil), null, nil},
		{"a lock of it", Access{}, "tcp", from(high, nil), lock, nil},
		{"a port of it", Access{}, "udp", from(high, nil), port, nil},
		{"over RDMA", Access{}, "rdma", from(high, nil), read, nil},
		{"an insecure server", Access{Insecure: true}, "tcp", from(high, nil), read, nil},
		{"port 0 is none", Access{}, "tcp", from("198.51.100.7:0", nil), read, ErrPort},

		{"not on the list", Access{Allow: list}, "tcp", from("203.0.113.1:700", nil), read, ErrHost},
		{"NULL of it", Access{Allow: list}, "tcp", from("203.0.113.1:700", nil), null, ErrHost},
		{"over RDMA", Access{Allow: list}, "rdma", from("203.0.113.1:700", nil), export, ErrHost},
		{"on the list", Access{Allow: list}, "tcp", from(low, nil), read, nil},
		{"this machine is not on the list", Access{Allow: list}, "tcp", from(local, root), read, ErrHost},
		{"this machine is on the list", Access{Allow: both}, "tcp", from(local, other), read, nil},

		{"this machine, from any port", Access{}, "tcp", from(local, other), read, nil},
		{"by an address of the network's", Access{}, "tcp", from(own, other), read, nil},
		{"whose user is not known", Access{}, "tcp", from(own, nil), read, nil}, // Admit has let it in
		{"a datagram of this machine", Access{}, "udp", from(local, nil), export, nil},
		{"MNT in one", Access{}, "udp", from(local, nil), mnt, ErrDatagram},
		{"MNT in one, by an address of the network's", Access{}, "udp", &origin.Origin{Addr: netip.MustParseAddrPort("192.0.2.7:700")}, mnt, ErrDatagram},

		{"the user", Access{Personal: true}, "tcp", from(local, self), read, nil},
		{"root", Access{Personal: true}, "rdma", from(own, root), read, nil},
		{"another user", Access{Personal: true}, "rdma", from(own, other), read, ErrUser},
		{"the user, beside a list", Access{Personal: true, Allow: list}, "tcp", from(local, self), read, nil},
		{"another user, beside a list", Access{Personal: true, Allow: list}, "tcp", from(local, other), read, ErrUser},
		{"another user, on the list", Access{Personal: true, Allow: both}, "tcp", from(local, other), read, ErrUser},
		{"another user, saying nothing", Access{Personal: true}, "tcp", from(local, other), null, ErrUser},
		{"another user, asking for the port", Access{Personal: true}, "tcp", from(local, other), port, ErrUser},
		{"nobody knows who", Access{Personal: true}, "tcp", from(local, nil), read, ErrUser},
		{"a datagram", Access{Personal: true}, "udp", from(local, nil), export, ErrDatagram},
		{"others", Access{Personal: true, AllowOthers: true}, "tcp", from(local, other), read, nil},
		{"others, unknown", Access{Personal: true, AllowOthers: true}, "tcp", from(local, nil), read, nil},
		{"others, MNT in a datagram", Access{Personal: true, AllowOthers: true}, "udp", from(local, nil), mnt, ErrDatagram},
		{"another machine, not on a list", Access{Personal: true}, "tcp", from(low, nil), read, ErrHost},
		{"another machine, others let in", Access{Personal: true, AllowOthers: true, Insecure: true}, "rdma", from(low, nil), null, ErrHost},
		{"another machine, on the list", Access{Personal: true, Allow: list}, "tcp", from(low, nil), read, nil},
		{"another machine, on the list, from a high port", Access{Personal: true, Allow: list}, "tcp", from(high, nil), read, ErrPort},
		{"no address", Access{Personal: true}, "tcp", &origin.Origin{}, read, ErrHost},
		{"no address, on a list", Access{Allow: list}, "tcp", &origin.Origin{}, read, ErrHost},
	} {
		var reported error
		executed := false
		a := tt.access
		a.Refused = func(_ *oncrpc.Request, why error) { reported = why }
		a.here = func(a netip.Addr) (bool, error) { return isHere(a), nil }
		_, err := a.Guard(oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
			executed = true
			return nil, nil
		})).ServeRPC(t.Context(), &oncrpc.Request{Call: tt.call, Network: tt.network, Origin: tt.from})
		if !errors.Is(err, tt.want) || !errors.Is(reported, tt.want) || executed != (tt.want == nil) {
			t.Errorf("%s: %v, reported %v, executed %v, want %v", tt.what, err, reported, executed, tt.want)
		}
		if tt.want != nil && !errors.Is(err, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}) {
			t.Errorf("%s: answered with %v", tt.what, err)
		}
	}
}

func TestAccessIsJudgedAtAccept(t *testing.T) {
	list := networks(t, "198.51.100.0/24")
	broken := errors.New("broken")
	for _, tt := range []struct {
		what   string
		access Access
		from   *origin.Origin
		err    error // of the look
		want   error
	}{
		{"another machine", Access{}, from("198.51.100.7:4000", nil), nil, nil},
		{"on the list", Access{Allow: list, Personal: true}, from("198.51.100.7:4000", nil), nil, nil},
		{"not on the list", Access{Allow: list}, from("203.0.113.1:4", nil), nil, ErrHost},
		{"without a list", Access{Personal: true, AllowOthers: true}, from("203.0.113.1:4", nil), nil, ErrHost},
		{"this machine", Access{}, from("127.0.0.1:4", other), nil, nil},
		{"this machine, not on the list", Access{Allow: list, AllowOthers: true}, from("127.0.0.1:4", nil), origin.ErrOwner, ErrHost},
		{"this machine, beside a list", Access{Allow: list, Personal: true}, from("127.0.0.1:4", self), nil, nil},
		{"nobody's socket", Access{}, from("127.0.0.1:4", nil), origin.ErrOwner, origin.ErrOwner},
		{"nobody's socket, for one user", Access{Personal: true}, from("127.0.0.1:4", nil), origin.ErrOwner, origin.ErrOwner},
		{"nobody's socket, and others let in", Access{AllowOthers: true}, from("127.0.0.1:4", nil), origin.ErrOwner, nil},
		// It is refused call by call.
		{"another user", Access{Personal: true}, from("127.0.0.1:4", other), nil, nil},
		{"nobody knows", Access{AllowOthers: true}, nil, broken, broken},
	} {
		a := tt.access
		a.Look = func(net.Conn) (*origin.Origin, error) { return tt.from, tt.err }
		o, err := a.Admit(nil)
		if !errors.Is(err, tt.want) || (o == nil) != (tt.want != nil) {
			t.Errorf("%s: %+v, %v, want %v", tt.what, o, err, tt.want)
		}
	}
}

func TestSendersOfDatagramsAreJudgedByTheirAddress(t *testing.T) {
	list := networks(t, "198.51.100.0/24")
	broken := func(netip.Addr) (bool, error) { return false, errors.New("broken") }
	here := func(a netip.Addr) (bool, error) { return isHere(a), nil }
	for _, tt := range []struct {
		access Access
		addr   string
		want   bool
	}{
		{Access{here: here}, "203.0.113.1:4", true},
		{Access{here: here, Personal: true}, "203.0.113.1:4", false},
		{Access{here: here, Personal: true}, "192.0.2.7:4", true},
		{Access{here: here, Personal: true}, "127.0.0.1:4", true},
		{Access{here: here, Personal: true, Allow: list}, "198.51.100.7:4", true},
		{Access{here: here, Allow: list}, "127.0.0.1:4", false},
		{Access{here: here, Personal: true, Allow: list}, "127.0.0.1:4", true},
		{Access{here: broken}, "203.0.113.1:4", false},
	} {
		if got := tt.access.AllowsSender(net.UDPAddrFromAddrPort(netip.MustParseAddrPort(tt.addr))); got != tt.want {
			t.Errorf("%+v of %s: %v, want %v", tt.access, tt.addr, got, tt.want)
		}
	}
}

// With the real origin.Look; the test runs as any user.
func TestWhoRunsAServerMayUseIt(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	a := &Access{Personal: true, AllowOthers: runtime.GOOS != "linux"}
	o, err := a.Admit(accepted)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.check(&oncrpc.Request{Call: oncrpc.Call{Prog: nfs.Program, Proc: 1}, Network: "tcp", Origin: o}); err != nil {
		t.Error(err)
	}
}

func TestCallsNeedTheSecurityOfTheExport(t *testing.T) {
	verified := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}
	plain, encrypted, mutual := &origin.Origin{}, &origin.Origin{TLS: &tls.ConnectionState{}}, &origin.Origin{TLS: verified}
	call := func(prog, proc uint32) oncrpc.Call { return oncrpc.Call{Prog: prog, Vers: 3, Proc: proc} }
	read, mnt := call(nfs.Program, 6), call(nfs.MountProgram, uint32(nfs.MountMnt))
	for _, tt := range []struct {
		set  string
		from *origin.Origin
		call oncrpc.Call
		want error
	}{
		{"none:tls:mtls", plain, read, nil},
		{"none:tls:mtls", mutual, read, nil},
		{"none", plain, read, nil},
		{"none", encrypted, read, ErrSecurity},
		{"tls:mtls", plain, read, ErrSecurity},
		{"tls:mtls", encrypted, read, nil},
		{"tls:mtls", mutual, read, nil},
		{"tls", mutual, read, ErrSecurity},
		{"mtls", plain, read, ErrSecurity},
		{"mtls", encrypted, read, ErrSecurity},
		{"mtls", mutual, read, nil},
		{"mtls", plain, call(nfs.Program, 0), nil},
		{"mtls", plain, mnt, nil},
		{"mtls", plain, call(oncrpc.PmapProg, 3), nil},
		{"mtls", plain, call(nlm.Program, 2), nil},
		{"mtls", plain, call(100227, 1), ErrSecurity},
	} {
		set, err := ParseXprtSec(tt.set)
		if err != nil || set.String() != tt.set {
			t.Fatalf("%q is parsed as %v, %v", tt.set, set, err)
		}
		for _, network := range []string{"tcp", "rdma"} {
			a := &Access{XprtSec: set, Insecure: true}
			r := &oncrpc.Request{Call: tt.call, Network: network, Origin: tt.from}
			if err := a.check(r); err != tt.want {
				t.Errorf("xprtsec=%s, security %v, program %d, procedure %d: %v, want %v", tt.set, tt.from.Security(), tt.call.Prog, tt.call.Proc, err, tt.want)
			}
		}
	}
	for _, bad := range []string{"", "tls,mtls", "TLS", "tls:", "dtls"} {
		if set, err := ParseXprtSec(bad); err == nil {
			t.Errorf("%q is parsed as %v", bad, set)
		}
	}
	if XprtSecOf(origin.TLS, origin.MutualTLS).String() != "tls:mtls" || XprtSec(0).String() != "none:tls:mtls" {
		t.Error("a set is not what it was made of")
	}
}
