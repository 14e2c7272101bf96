// This file is the look-up: whether the peer of a connection is on this machine,
// and which user its socket belongs to.

package origin

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// ErrOwner says that the peer is on this machine and that the owner of its
// socket cannot be told. What Look returns wraps it, with the reason.
var ErrOwner = errors.New("the owner of the peer's socket cannot be told")

// ErrGone is the reason of an [ErrOwner] about a peer that has ended the connection,
// and whose socket is nobody's then, or another's.
var ErrGone = errors.New("the peer has closed the connection")

// Look says where an accepted TCP connection comes from. It is meant for the
// moment after accept: for a peer on this machine it looks up the peer's socket,
// which has to be of an established connection and in use by a process or by the
// kernel, and takes its owner, with the groups that the system's databases give
// that user. A socket of the kernel's own belongs to root.
//
// The peer is on this machine if its address is one to which this machine's
// kernel delivers by itself now: any interface's, in this process's network
// namespace. Another namespace is another machine.
//
// With an error that is [ErrOwner] the origin is valid, without a user. It is so
// whenever the peer is on this machine and the system is not Linux. Any other error
// says that not even the machine can be told, and comes without an origin.
//
// What the databases say of a user is believed for ten seconds. If they do not answer
// within a second, Look returns an [ErrOwner]; the look-up goes on, and its result serves
// later connections. A user whom they do not know has no groups but 65534. A program that is
// built without cgo knows the users of /etc/passwd and the groups of /etc/group.
func Look(nc net.Conn) (*Origin, error) { return look(nc, system) }

// Everybody is an [Admit] that lets everybody in, and says where they come from as far
// as Look can tell. It is for servers that have nothing to protect but their places.
func Everybody(nc net.Conn) (*Origin, error) { return everybody(nc, system), nil }

func everybody(nc net.Conn, h host) *Origin {
	o, err := look(nc, h)
	if err != nil && o == nil {
		return Of(nc.RemoteAddr())
	}
	return o
}

// Here reports whether an address is one to which this machine's kernel delivers by
// itself, as Look has it.
func Here(a netip.Addr) (bool, error) { return system.ours(a.Unmap()) }

// nobody is the group of a user whom the system does not know.
const nobody = 65534

// A host is what is asked of a system.
type host struct {
	// ours reports whether an address is this machine's.
	ours func(addr netip.Addr) (bool, error)

	// owner returns the user of the socket that is connected from one address to
	// another. Its zone says which interface they are of.
	owner func(from, to netip.AddrPort) (uid uint32, err error)

	// established reports whether a connection is, at this end.
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
		return nil, fmt.Errorf("a connection of type %T shows no socket", nc)
	}
	uid, err := h.owner(from, to)
	if err != nil {
		return nil, err
	}
	// What was found is the socket at the other end if this end still is
	// established: while it is, no other can be connected to it.
	if ok, err := h.established(c); err != nil {
		return nil, err
	} else if !ok {
		return nil, ErrGone
	}
	return h.user(uid)
}

// addrPort is an address of a connection: of IPv4 where it is mapped into IPv6,
// and with its zone.
func addrPort(a net.Addr) netip.AddrPort {
	if a == nil {
		return netip.AddrPort{}
	}
	ap, _ := netip.ParseAddrPort(a.String())
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
