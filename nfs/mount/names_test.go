package mount

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net"
	"testing"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// certified is an origin whose peer has presented a certificate.
func certified(addr string, c *x509.Certificate) *origin.Origin {
	o := from(addr, nil)
	o.TLS = new(tls.ConnectionState)
	if c != nil {
		o.TLS.PeerCertificates = []*x509.Certificate{c}
	}
	return o
}

func TestPeersAreKnownByTheNamesOfTheirCertificates(t *testing.T) {
	name := func(s string) origin.Name {
		n, err := origin.ParseName(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const far, listed = "203.0.113.1:4000", "198.51.100.7:4000"
	alice := &x509.Certificate{Subject: pkix.Name{CommonName: "alice"}}
	host := &x509.Certificate{DNSNames: []string{"host.example"}}
	names := []origin.Name{name("cn=alice"), name("dns:host.example")}
	list := networks(t, "198.51.100.0/24")
	read := oncrpc.Call{Prog: nfs.Program, Vers: 3, Proc: 6}
	null := oncrpc.Call{Prog: nfs.Program, Vers: 3}
	mnt := oncrpc.Call{Prog: nfs.MountProgram, Vers: 3, Proc: uint32(nfs.MountMnt)}
	port := oncrpc.Call{Prog: oncrpc.PmapProg, Vers: 2, Proc: 3}
	for _, tt := range []struct {
		what   string
		access Access
		from   *origin.Origin
		call   oncrpc.Call
		want   error
	}{
		{"by common name", Access{Names: names}, certified(far, alice), read, nil},
		{"by DNS name", Access{Names: names}, certified(far, host), read, nil},
		{"another's certificate", Access{Names: names}, certified(far, &x509.Certificate{DNSNames: []string{"other.example"}}), read, ErrName},
		{"no certificate", Access{Names: names}, certified(far, nil), read, ErrName},
		{"in the clear", Access{Names: names}, from(far, nil), read, ErrName},
		{"in the clear, of a listed host", Access{Names: names, Allow: list, Insecure: true}, from(listed, nil), read, nil},
		{"in the clear, of another host", Access{Names: names, Allow: list, Insecure: true}, from(far, nil), read, ErrHost},
		{"of another host, by name", Access{Names: names, Allow: list}, certified(far, host), read, nil},
		{"for one user, by name", Access{Names: names, Personal: true}, certified(far, host), read, nil},
		{"for one user, by address", Access{Names: names, Personal: true}, from(far, nil), read, ErrName},
		{"for one user, from here", Access{Names: names, Personal: true}, from("127.0.0.1:4000", self), read, nil},
		{"NULL in the clear", Access{Names: names}, from(far, nil), null, nil},
		{"MNT in the clear, from a low port", Access{Names: names}, from("203.0.113.1:700", nil), mnt, nil},
		{"a port in the clear", Access{Names: names}, from(far, nil), port, nil},
	} {
		a := tt.access
		_, err := a.Guard(oncrpc.HandlerFunc(func(context.Context, *oncrpc.Request) ([]byte, error) { return nil, nil })).
			ServeRPC(t.Context(), &oncrpc.Request{Call: tt.call, Network: "tcp", Origin: tt.from})
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: %v, want %v", tt.what, err, tt.want)
		}
	}
	a := Access{Names: names, Look: func(net.Conn) (*origin.Origin, error) { return from(far, nil), nil }}
	if _, err := a.Admit(nil); err != nil {
		t.Errorf("before TLS: %v", err)
	}
	if !a.AllowsSender(net.TCPAddrFromAddrPort(from(far, nil).Addr)) {
		t.Error("a datagram of an address that is not listed is dropped")
	}
}
