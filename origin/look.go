// The look-up: whether the peer of a connection is on this machine, and which user owns
// its socket.

package origin

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// ErrOwner: the peer is on this machine, but the owner of its socket can't be
// determined. Look wraps it, with the reason.
var ErrOwner = errors.New("the owner of the peer's socket can't be determined")

// ErrGone is the reason of an [ErrOwner] if the peer has closed the connection: its
// socket has no owner then, or another.
var ErrGone = errors.New("the peer has closed the connection")

// Look returns the origin of an accepted TCP connection. Call it right after accept. For
// a peer on this machine it finds the peer's socket, which has to be established and in
// use by a process or the kernel, and returns its owner with the groups that the
// system's databases give that user. Sockets of the kernel belong to root.
//
// The peer is on this machine if the kernel delivers to its address locally: an address
// of any interface in this process's network namespace. Another namespace is another
// machine.
//
// If the error wraps [ErrOwner], the origin is valid and has no user; on systems other
// than Linux that is so for every peer on this machine. With any other error the origin
// is nil: it could not be determined whether the peer is on this machine.
//
// Answers of the databases are cached for ten seconds. If they do not answer within a
// second, Look returns an [ErrOwner]; the look-up continues, and its result serves later
// connections. A user that they do not have is in group 65534 only. A program built
// without cgo reads /etc/passwd and /etc/group.
func Look(nc net.Conn) (*Origin, error) { return look(nc, system) }

// Everybody is an [Admit] that admits every connection, with the origin that Look
// determines. It is for servers whose connections are all they have to protect.
func Everybody(nc net.Conn) (*Origin, error) { return everybody(nc, system), nil }

func everybody(nc net.Conn, h host) *Origin {
	o, err := look(nc, h)
	if err != nil && o == nil {
		return Of(nc.RemoteAddr())
	}
	return o
}

// Here reports whether an address is of this machine, as Look decides it.
func Here(a netip.Addr) (bool, error) { return system.ours(a.Unmap()) }

// nobody is the group of a user that the system does not know.
const nobody = 65534

// A host has the queries that depend on the operating system.
type host struct {
	// ours reports whether an address is this machine's.
	ours func(addr netip.Addr) (bool, error)

	// owner returns the user of the socket that is connected from one address to
	// another, whose zones name their interface.
	owner func(from, to netip.AddrPort) (uid uint32, err error)

	// established reports whether this end of a connection is established.
	established func(nc syscall.Conn) (bool, error)

	// user returns a user with its groups.
	user func(uid uint32) (*User, error)
}

func look(nc net.Conn, h host) (*Origin, error) {
	o := Of(nc.RemoteAddr())
	if !o.Addr.IsValid() {
		return o, nil
	}
	from, to := addrPort(nc.RemoteAddr()), addrPort(nc.LocalAddr())
	local, err := h.ours(from.Addr())
	if err != nil {
		return nil, fmt.Errorf("whether %v is an address of this machine: %w", from.Addr(), err)
	}
	if o.Local = local; !local {
		return o, nil
	}
	if o.User, err = h.ownerOf(nc, from, to); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOwner, err)
	}
	return o, nil
}

// ownerOf returns the owner of the socket at the other end of nc.
func (h host) ownerOf(nc net.Conn, from, to netip.AddrPort) (*User, error) {
	c, ok := nc.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("a connection of type %T has no socket", nc)
	}
	uid, err := h.owner(from, to)
	if err != nil {
		return nil, err
	}
	// If this end is still established, the socket that was found is the one at the
	// other end: no other socket can be connected to this end meanwhile.
	if ok, err := h.established(c); err != nil {
		return nil, err
	} else if !ok {
		return nil, ErrGone
	}
	return h.user(uid)
}

// addrPort returns an address of a connection, with its zone; an IPv4 address mapped into
// IPv6 as an IPv4 address.
func addrPort(a net.Addr) netip.AddrPort {
	if a == nil {
		return netip.AddrPort{}
	}
	ap, _ := netip.ParseAddrPort(a.String())
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
