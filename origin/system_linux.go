// This file asks Linux: by netlink, and by /proc where that is not permitted.

package origin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

var system = host{ours: ours, owner: owner, established: established, user: (&users{lookup: lookupUser}).find}

var native = binary.NativeEndian

// question numbers each question: a socket asks one.
const question = 1

// ask puts one question to a part of the kernel, and returns its answer.
func ask(protocol int, request []byte) ([]byte, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	// The kernel has answered when it has taken the question. This is for others.
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return nil, os.NewSyscallError("setsockopt", err)
	}
	kernel := &unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	if err := retry(func() error { return unix.Sendto(fd, request, 0, kernel) }); err != nil {
		return nil, os.NewSyscallError("sendto", err)
	}
	buf := make([]byte, 4096)
	var n int
	var from unix.Sockaddr
	err = retry(func() (err error) {
		n, from, err = unix.Recvfrom(fd, buf, 0)
		return err
	})
	if err != nil {
		return nil, os.NewSyscallError("recvfrom", err)
	}
	if nl, ok := from.(*unix.SockaddrNetlink); !ok || nl.Pid != 0 {
		return nil, errors.New("netlink: a message that is not the kernel's")
	}
	return buf[:n], nil
}

// retry does f again while a signal interrupts it.
func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// ours reports whether the kernel delivers to an address by itself. It has the
// addresses of most interfaces in its tables of routes, and what else was made
// local there.
func ours(a netip.Addr) (bool, error) {
	if a.IsLoopback() || a.IsLinkLocalUnicast() {
		return onInterface(a) // a route to what is link-local takes an interface
	}
	answer, err := ask(unix.NETLINK_ROUTE, routeRequest(native, question, a))
	if err == nil {
		if local, err := parseRoute(native, answer, question); err == nil && local {
			return true, nil
		}
	}
	// There is no route, or the question is not permitted; or the address is of an
	// interface whose routes are in a table of their own (VRF).
	return onInterface(a)
}

// zoneOf is the number of the interface that an address is of, or 0.
func zoneOf(a netip.Addr) uint32 {
	if a.Zone() == "" {
		return 0
	}
	if i, err := net.InterfaceByName(a.Zone()); err == nil {
		return uint32(i.Index)
	}
	n, _ := strconv.ParseUint(a.Zone(), 10, 32)
	return uint32(n)
}

// owner returns the user of the socket that is connected from one address to
// another.
func owner(from, to netip.AddrPort) (uint32, error) {
	s, err := find(from, to, askDiag)
	if err != nil {
		return 0, err
	}
	return s.owner(from, to, overflowUID())
}

// find returns a socket by sock_diag, or where that cannot say by /proc.
func find(from, to netip.AddrPort, diag func(from, to netip.AddrPort) (socket, error)) (socket, error) {
	s, err := diag(from, to)
	if err == nil {
		return s, nil
	}
	if errors.Is(err, unix.ENOENT) {
		// The kernel says so, too, where it cannot tell of TCP at all: but then of
		// this end of the connection as well.
		if _, err := diag(to, from); err == nil {
			return s, errNotFound
		}
	}
	s, found, procErr := findProc(from, to)
	switch {
	case found:
		return s, nil
	case procErr != nil:
		return s, fmt.Errorf("neither sock_diag nor /proc tells: %w; %w", err, procErr)
	}
	return s, errNotFound
}

// loopback is the interface lo, over which this machine talks to itself.
const loopback = 1

// askDiag asks for a socket that is bound to no interface but that of its zone, or
// to lo.
func askDiag(from, to netip.AddrPort) (s socket, err error) {
	for _, iface := range []uint32{zoneOf(from.Addr()), loopback} {
		var answer []byte
		if answer, err = ask(unix.NETLINK_SOCK_DIAG, diagRequest(native, question, from, to, iface)); err != nil {
			return s, err
		}
		if s, err = parseDiag(native, answer, question); !errors.Is(err, unix.ENOENT) {
			break
		}
	}
	return s, err
}

// findProc looks into both tables: a socket of IPv6 may be connected by IPv4. It
// looks twice, as a line may be passed over while others come and go.
func findProc(from, to netip.AddrPort) (s socket, found bool, err error) {
	for range 2 {
		for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
			s, found, err = findIn(name, from, to)
			if errors.Is(err, os.ErrNotExist) && name == "/proc/net/tcp6" {
				err = nil // a system without IPv6
			}
			if found || err != nil {
				return s, found, err
			}
		}
	}
	return s, false, nil
}

func findIn(name string, from, to netip.AddrPort) (socket, bool, error) {
	f, err := os.Open(name)
	if err != nil {
		return socket{}, false, err
	}
	defer f.Close()
	return findSocket(native, f, from, to)
}

// overflowUID stands for users who have no number in this user namespace.
func overflowUID() uint32 {
	b, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err == nil {
		if n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 32); err == nil {
			return uint32(n)
		}
	}
	return nobody
}

// established asks for the state of this end.
func established(nc syscall.Conn) (is bool, err error) {
	raw, err := nc.SyscallConn()
	if err != nil {
		return false, err
	}
	var info *unix.TCPInfo
	var infoErr error
	err = raw.Control(func(fd uintptr) {
		info, infoErr = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	if err = errors.Join(err, os.NewSyscallError("getsockopt", infoErr)); err != nil {
		return false, err
	}
	return info.State == tcpEstablished, nil
}
