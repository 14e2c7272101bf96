// The origin, and the share that it counts against.

package origin

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
)

// A User is a user of this machine, with the groups that the system gives it.
type User struct {
	UID, GID uint32
	Groups   []uint32 // supplementary

	// Unknown says that the system does not know the user. Its group is then 65534,
	// which the system has not given it.
	Unknown bool
}

// An Origin is where a connection comes from.
type Origin struct {
	// Addr is the peer's address without a zone. An IPv4 address mapped into IPv6 is
	// an IPv4 address here. It is not valid if the connection does not use IP.
	Addr netip.AddrPort

	// Local is set if the peer is on this machine.
	Local bool

	// User owns the peer's socket. It is nil for peers on other machines, and if the
	// owner was not looked up.
	User *User

	// TLS is the state of the connection if it is encrypted, with the peer's verified
	// certificate if it has presented one. The handshake comes after Admit.
	TLS *tls.ConnectionState
}

// Of returns the origin of a connection or a datagram by its remote address alone. Only
// loopback addresses count as this machine's.
func Of(remote net.Addr) *Origin {
	o := new(Origin)
	if remote == nil {
		return o
	}
	ap, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return o
	}
	o.Addr = netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
	o.Local = o.Addr.Addr().IsLoopback()
	return o
}

// An Admit decides whether a connection is admitted, and returns its origin; an error
// says why it is not admitted. It is called once, after the connection was accepted and
// before an octet of it is read. It does not read, write or close the connection.
type Admit func(nc net.Conn) (*Origin, error)

// A Share is what limits are divided by: connections of one share compete with
// each other before they compete with those of others. It is comparable.
type Share struct {
	network netip.Prefix
	local   bool
	uid     uint32
}

// Share returns the share that the connection counts against: that of a user of this
// machine, of an IPv4 address, or of an IPv6 /64, because a host may have a whole one.
func (o *Origin) Share() Share {
	if o.User != nil {
		return Share{local: true, uid: o.User.UID}
	}
	addr := o.Addr.Addr()
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	network, _ := addr.Prefix(bits) // the zero Prefix if there is no address
	return Share{network: network, local: o.Local}
}

// String returns "192.0.2.7", "2001:db8::/64" or "uid 1000", for logs.
func (s Share) String() string {
	switch {
	case !s.network.IsValid() && s.local:
		return fmt.Sprintf("uid %d", s.uid)
	case !s.network.IsValid():
		return "no address"
	case s.network.IsSingleIP():
		return s.network.Addr().String()
	}
	return s.network.String()
}
