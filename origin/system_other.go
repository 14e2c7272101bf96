//go:build !linux

// Systems that do not report who owns the other end of a connection.

package origin

import (
	"errors"
	"net/netip"
	"syscall"
)

var system = host{
	ours:        onInterface,
	owner:       func(netip.AddrPort, netip.AddrPort) (uint32, error) { return 0, errNoOwners },
	established: func(syscall.Conn) (bool, error) { return false, errNoOwners },
	user:        lookupUser,
}

var errNoOwners = errors.New("this system does not say who owns other processes' sockets")
