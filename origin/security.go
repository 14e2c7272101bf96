// The transport layer security of a connection.

package origin

import "fmt"

// A Security says how the transport protects a connection, in the terms of the option
// xprtsec of exports(5). Greater values protect more.
type Security uint8

const (
	Plain     Security = iota // "none": anybody on the way can read and change it
	TLS                       // "tls": encrypted; the peer has not proved who it is
	MutualTLS                 // "mtls": encrypted, and the peer has a verified certificate
)

// String returns the name in exports(5).
func (s Security) String() string {
	switch s {
	case Plain:
		return "none"
	case TLS:
		return "tls"
	case MutualTLS:
		return "mtls"
	}
	return fmt.Sprintf("security %d", uint8(s))
}

// Security returns how the connection is protected. It relies on Origin.TLS having no
// certificate of the peer but a verified one.
func (o *Origin) Security() Security {
	switch {
	case o == nil || o.TLS == nil:
		return Plain
	case len(o.TLS.PeerCertificates) == 0:
		return TLS
	}
	return MutualTLS
}
