package origin

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"testing"
)

func TestNamesMatchAlternativeNamesFirst(t *testing.T) {
	host := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "common"},
		DNSNames:    []string{"Host.Example.org.", "*.wild.example"},
		IPAddresses: []net.IP{net.ParseIP("192.0.2.7"), net.ParseIP("2001:db8::7")},
	}
	user := &x509.Certificate{Subject: pkix.Name{CommonName: "alice"}}
	for _, tt := range []struct {
		name       string
		host, user bool
	}{
		{"dns:host.example.org", true, false},
		{"dns:HOST.example.org.", true, false},
		{"dns:*.example.org", true, false},
		{"dns:*.org", false, false},
		{"dns:example.org", false, false},
		{"dns:*.wild.example", true, false},
		{"dns:a.wild.example", false, false}, // the certificate says any, the pattern this one
		{"dns:*.example", false, false},
		{"dns:common", false, false},
		{"ip:192.0.2.7", true, false},
		{"ip:::ffff:192.0.2.7", true, false},
		{"ip:2001:db8:0::7", true, false},
		{"ip:192.0.2.8", false, false},
		{"cn=common", false, false}, // there are alternative names
		{"cn=alice", false, true},
		{"cn=Alice", false, false},
	} {
		n, err := ParseName(tt.name)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := n.Matches(host); got != tt.host {
			t.Errorf("%s matches the host: %v", n, got)
		}
		if got := n.Matches(user); got != tt.user {
			t.Errorf("%s matches the user: %v", n, got)
		}
		if again, err := ParseName(n.String()); err != nil || again != n {
			t.Errorf("%s becomes %s, %v", n, again, err)
		}
	}
}

func TestNamesAreChecked(t *testing.T) {
	for s, form := range map[string]bool{
		"dns:": true, "dns:a b": true, "dns:a.*.b": true, "dns:*": true, "dns:a:80": true, "ip:host": true, "ip:192.0.2.0/24": true, "ip:fe80::1%eth0": true, "cn=": true,
		"": false, "192.0.2.7": false, "host": false, "2001:db8::/32": false,
	} {
		if n, err := ParseName(s); err == nil {
			t.Errorf("%q became %v", s, n)
		}
		if IsName(s) != form {
			t.Errorf("IsName(%q) = %v", s, !form)
		}
	}
}

func TestDescribeFallsBackToTheSubject(t *testing.T) {
	for want, c := range map[string]*x509.Certificate{
		"cn=alice":  {Subject: pkix.Name{CommonName: "alice"}},
		"O=Example": {Subject: pkix.Name{Organization: []string{"Example"}}},
	} {
		if got := NameIn(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
