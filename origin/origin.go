// This file is the origin itself, and the share that it counts against.

package origin

import (
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
	// Addr is the peer's address, IPv4 also where the socket is of IPv6, without a
	// zone. It is not valid if the connection is not one of IP.
	Addr netip.AddrPort

	// Local says that the peer is on this machine.
	Local bool

	// User owns the peer's socket. It is nil for peers on other machines, and
	// where nobody looked.
	User *User
}

// Of returns the origin of a connection, or of a datagram, as far as its remote
// address tells. Only loopback addresses count as this machine's.
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

// An Admit decides whether a connection is served, and says where it comes from.
// It is asked once, when the connection was accepted and before an octet of it is
// read; an error says why not. It does not read, write or close the connection.
type Admit func(nc net.Conn) (*Origin, error)

// A Share is what limits are divided by: connections of one share compete with
// each other before they compete with those of others. It is comparable.
type Share struct {
	network netip.Prefix
	local   bool
	uid     uint32
}

// Share returns what the connection counts against: a user of this machine, an
// address of IPv4, or a network of IPv6 with 64 bits, as hosts have whole ones.
func (o *Origin) Share() Share {
	if o.User != nil {
		return Share{local: true, uid: o.User.UID}
	}
	addr := o.Addr.Addr()
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	network, _ := addr.Prefix(bits) // the zero Prefix for what has no address
	return Share{network: network, local: o.Local}
}

// String is how logs show a share: "192.0.2.7", "2001:db8::/64" or "uid 1000".
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
