// Patterns for the names of peers.

package origin

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// A Name is a pattern for the name in a verified certificate, by which a peer is known.
type Name struct {
	kind nameKind
	text string     // of dnsName, in lower case, and cnName
	addr netip.Addr // of ipName
}

type nameKind uint8

const (
	dnsName nameKind = iota
	ipName
	cnName
)

// errName: the text is no Name at all.
var errName = errors.New("expected dns:NAME, ip:ADDRESS or cn=NAME")

// IsName reports whether s has the form of a Name: whether it begins with dns:, ip: or
// cn=.
func IsName(s string) bool {
	_, err := ParseName(s)
	return !errors.Is(err, errName)
}

// ParseName parses dns:NAME, ip:ADDRESS or cn=NAME. In dns:*.example.org the star stands
// for one label.
func ParseName(s string) (Name, error) {
	if name, ok := strings.CutPrefix(s, "dns:"); ok {
		name = strings.ToLower(strings.TrimSuffix(name, "."))
		if name == "" || strings.ContainsAny(strings.TrimPrefix(name, "*."), "*/ :@") {
			return Name{}, fmt.Errorf("%q is no name of a host: expected dns:host.example.org or dns:*.example.org, for example", s)
		}
		return Name{kind: dnsName, text: name}, nil
	}
	if text, ok := strings.CutPrefix(s, "ip:"); ok {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return Name{}, fmt.Errorf("%q is no address: expected ip:192.0.2.7 or ip:2001:db8::7, for example", s)
		}
		return Name{kind: ipName, addr: addr.Unmap()}, nil
	}
	if name, ok := strings.CutPrefix(s, "cn="); ok {
		if name == "" {
			return Name{}, fmt.Errorf("%q has no name", s)
		}
		return Name{kind: cnName, text: name}, nil
	}
	return Name{}, fmt.Errorf("%q: %w", s, errName)
}

// Names reports whether one of the names is in the certificate that the peer of a
// connection has presented and that was verified.
func (o *Origin) Names(any []Name) bool {
	if o == nil || o.TLS == nil || len(o.TLS.PeerCertificates) == 0 {
		return false
	}
	return slices.ContainsFunc(any, func(n Name) bool { return n.Matches(o.TLS.PeerCertificates[0]) })
}

// String returns the form that ParseName takes.
func (n Name) String() string {
	switch n.kind {
	case ipName:
		return "ip:" + n.addr.String()
	case cnName:
		return "cn=" + n.text
	}
	return "dns:" + n.text
}

// Matches reports whether a verified certificate has the name. Subject alternative names
// come first: a common name counts only in a certificate that has no DNS name and no
// address (RFC 6125 §6.4.4). A pattern with a star matches a name without one, of as many
// labels; a certificate for a whole domain (*.example.org) matches only the same pattern.
func (n Name) Matches(c *x509.Certificate) bool {
	switch n.kind {
	case ipName:
		for _, a := range c.IPAddresses {
			if addr, ok := netip.AddrFromSlice(a); ok && addr.Unmap() == n.addr {
				return true
			}
		}
		return false
	case cnName:
		return len(c.DNSNames) == 0 && len(c.IPAddresses) == 0 && c.Subject.CommonName == n.text
	}
	for _, name := range c.DNSNames {
		if n.matchesDNS(strings.ToLower(strings.TrimSuffix(name, "."))) {
			return true
		}
	}
	return false
}

func (n Name) matchesDNS(name string) bool {
	if name == n.text {
		return true
	}
	domain, ok := strings.CutPrefix(n.text, "*")
	label, found := strings.CutSuffix(name, domain)
	return ok && found && label != "" && !strings.ContainsAny(label, ".*")
}

// NameIn names a certificate in a log: by its DNS names and addresses, or else by its
// subject.
func NameIn(c *x509.Certificate) string {
	var names []string
	for _, name := range c.DNSNames {
		names = append(names, "dns:"+name)
	}
	for _, a := range c.IPAddresses {
		names = append(names, "ip:"+a.String())
	}
	switch {
	case len(names) > 0:
		return strings.Join(names, ",")
	case c.Subject.CommonName != "":
		return "cn=" + c.Subject.CommonName
	}
	return c.Subject.String()
}
