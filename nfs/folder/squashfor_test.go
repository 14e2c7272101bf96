package folder

import (
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"testing"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

func TestCallersAreSquashedByTheirCertificates(t *testing.T) {
	host, err := origin.ParseName("dns:*.example")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{cfg: Config{Squash: SquashAll, AnonUID: 65534, AnonGID: 65534, SquashFor: []SquashFor{{host, SquashNone}, {host, SquashAll}}}, vol: onlyOthers{count: true}}
	s.rules.Store(&s.cfg)
	for _, tt := range []struct {
		what  string
		state *tls.ConnectionState
		uid   uint32
	}{
		{"in the clear", nil, 65534},
		{"without a certificate", &tls.ConnectionState{}, 65534},
		{"another name", &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{DNSNames: []string{"host.other"}}}}, 65534},
		{"the name", &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{DNSNames: []string{"host.example"}}}}, 0},
	} {
		from := &origin.Origin{Addr: netip.MustParseAddrPort("192.0.2.7:700"), TLS: tt.state}
		c, err := s.identify(&oncrpc.Request{Call: oncrpc.Call{Cred: sys(t, 0, 0)}, Origin: from})
		if err != nil || c.uid != tt.uid || c.squashed != (tt.uid != 0) {
			t.Errorf("%s: %+v, %v", tt.what, c, err)
		}
	}
	if err := (&Config{Root: t.TempDir(), SquashFor: []SquashFor{{host, 7}}}).fill(); err == nil {
		t.Error("a squash that is none")
	}
}
