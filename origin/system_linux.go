// Queries on Linux: by netlink, and by /proc where netlink is not permitted.

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

// requestNumber is the number of each request: a netlink socket makes one.
const requestNumber = 1

// ask sends one request to the kernel and returns its reply.
func ask(protocol int, request []byte) ([]byte, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	// The kernel replies before sendto returns; the timeout is for other systems that
	// claim to be Linux.
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
		return nil, errors.New("netlink: a message from another sender than the kernel")
	}
	return buf[:n], nil
}

// retry calls f again if a signal interrupts it.
func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// ours reports whether the kernel delivers to an address locally. Its routing tables have
// the addresses of most interfaces, and others that were made local.
func ours(a netip.Addr) (bool, error) {
	if a.IsLoopback() || a.IsLinkLocalUnicast() {
		return onInterface(a) // the route to a link-local address depends on the interface
	}
	answer, err := ask(unix.NETLINK_ROUTE, routeRequest(native, requestNumber, a))
	if err == nil {
		if local, err := parseRoute(native, answer, requestNumber); err == nil && local {
			return true, nil
		}
	}
	// There is no route, or the request is not permitted, or the interface of the
	// address has a routing table of its own (VRF).
	return onInterface(a)
}

// zoneOf returns the index of the interface in an address's zone, or 0.
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

// find returns a socket by sock_diag, or if that fails by /proc.
func find(from, to netip.AddrPort, diag func(from, to netip.AddrPort) (socket, error)) (socket, error) {
	s, err := diag(from, to)
	if err == nil {
		return s, nil
	}
	if errors.Is(err, unix.ENOENT) {
		// ENOENT also means that the kernel has no sock_diag for TCP. If it finds
		// this end of the connection, it has.
		if _, err := diag(to, from); err == nil {
			return s, errNotFound
		}
	}
	s, found, procErr := findProc(from, to)
	switch {
	case found:
		return s, nil
	case procErr != nil:
		return s, fmt.Errorf("neither sock_diag nor /proc has it: %w; %w", err, procErr)
	}
	return s, errNotFound
}

// loopback is the index of the interface lo.
const loopback = 1

// askDiag finds a socket that is bound to the interface of its zone, to lo, or to none.
func askDiag(from, to netip.AddrPort) (s socket, err error) {
	for _, iface := range []uint32{zoneOf(from.Addr()), loopback} {
		var answer []byte
		if answer, err = ask(unix.NETLINK_SOCK_DIAG, diagRequest(native, requestNumber, from, to, iface)); err != nil {
			return s, err
		}
		if s, err = parseDiag(native, answer, requestNumber); !errors.Is(err, unix.ENOENT) {
			break
		}
	}
	return s, err
}

// findProc searches both tables, because an IPv6 socket may be connected over IPv4. It
// searches twice, because a line may be missed while sockets come and go.
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

// overflowUID returns the uid that stands for users of other user namespaces.
func overflowUID() uint32 {
	b, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err == nil {
		if n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 32); err == nil {
			return uint32(n)
		}
	}
	return nobody
}

// established reports whether this end of a connection is established.
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
