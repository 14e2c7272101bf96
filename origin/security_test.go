package origin

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
)

func TestTheSecurityOfAConnectionIsThatOfItsTLS(t *testing.T) {
	for _, tt := range []struct {
		from *Origin
		want Security
		name string
	}{
		{nil, Plain, "none"},
		{&Origin{}, Plain, "none"},
		{&Origin{TLS: &tls.ConnectionState{}}, TLS, "tls"},
		{&Origin{TLS: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}}, MutualTLS, "mtls"},
	} {
		if got := tt.from.Security(); got != tt.want || got.String() != tt.name {
			t.Errorf("the security of %+v is %v, want %s", tt.from, got, tt.name)
		}
	}
}
