// A socket as the kernel describes it, and the conditions under which its owner is the
// peer.

package origin

import (
	"errors"
	"fmt"
	"net/netip"
)

// tcpEstablished is the state TCP_ESTABLISHED of Linux.
const tcpEstablished = 1

// A socket is the kernel's description of a TCP socket.
type socket struct {
	local, remote netip.AddrPort // IPv4 addresses mapped into IPv6 as IPv4 addresses
	state         uint8
	uid           uint32
	inode         uint64 // 0 if neither a process nor the kernel uses it
}

// errNotFound: the kernel has no such socket.
var errNotFound = errors.New("no socket of this machine is the other end")

// owner returns the user of s, which has to be connected from one address to another.
// The overflow uid stands for users of other user namespaces.
//
// A socket without an inode was closed by its owner, or never had one; the kernel reports
// root for it.
func (s *socket) owner(from, to netip.AddrPort, overflow uint32) (uint32, error) {
	switch {
	case s.local != bare(from) || s.remote != bare(to):
		return 0, errNotFound
	case s.state != tcpEstablished:
		return 0, fmt.Errorf("%w: its socket is in state %d", ErrGone, s.state)
	case s.inode == 0:
		return 0, fmt.Errorf("%w: its socket has no owner", ErrGone)
	case s.uid == overflow:
		return 0, fmt.Errorf("the peer's socket belongs to uid %d, which stands for users of other user namespaces", s.uid)
	}
	return s.uid, nil
}

// bare returns an address as sockets have it: without a zone, IPv4 not mapped.
func bare(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
