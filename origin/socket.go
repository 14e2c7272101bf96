// This file is a socket as the kernel shows it, and what is asked of the one at
// the other end of a connection.

package origin

import (
	"errors"
	"fmt"
	"net/netip"
)

// tcpEstablished is the state TCP_ESTABLISHED of Linux.
const tcpEstablished = 1

// A socket is what the kernel shows of one of TCP.
type socket struct {
	local, remote netip.AddrPort // IPv4 also where the socket is of IPv6
	state         uint8
	uid           uint32
	inode         uint64 // 0: neither a process nor the kernel has it
}

// errNotFound says that the kernel has no such socket.
var errNotFound = errors.New("no socket of this machine has that connection")

// owner returns the user of s, which should be connected from one address to
// another. The overflow uid stands for users who have no number here.
//
// A socket without an inode was closed by its owner, or never had one: the kernel
// shows it as root's.
func (s *socket) owner(from, to netip.AddrPort, overflow uint32) (uint32, error) {
	switch {
	case s.local != bare(from) || s.remote != bare(to):
		return 0, errNotFound
	case s.state != tcpEstablished:
		return 0, fmt.Errorf("%w: its socket is in state %d", ErrGone, s.state)
	case s.inode == 0:
		return 0, fmt.Errorf("%w: nobody has its socket", ErrGone)
	case s.uid == overflow:
		return 0, fmt.Errorf("the peer's socket belongs to uid %d, which stands for users of other user namespaces", s.uid)
	}
	return s.uid, nil
}

// bare is an address as a socket shows it.
func bare(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
