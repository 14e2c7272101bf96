// This file sets and reads the options of sockets on Linux.

package cm

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

var (
	sendBuffer    = bufferKind{"send buffer", unix.SO_SNDBUF, "/proc/sys/net/core/wmem_max"}
	receiveBuffer = bufferKind{"receive buffer", unix.SO_RCVBUF, "/proc/sys/net/core/rmem_max"}
)

func setBufferOption(fd uintptr, kind bufferKind, octets int) error {
	return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, kind.option, octets)
}

// getBuffer returns the size that was asked for. Linux doubles it, for its own
// bookkeeping, and reports the double.
func getBuffer(fd uintptr, kind bufferKind) (int, error) {
	n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, kind.option)
	return n / 2, err
}

func setCongestion(fd uintptr, name string) error {
	return congestionError(name, unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name))
}

// congestionError adds to an error of the system what to do about it.
func congestionError(name string, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("congestion control %q: the system has none of that name: %w; /proc/sys/net/ipv4/tcp_available_congestion_control lists those loaded, modules tcp_* provide others", name, err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("congestion control %q: %w without CAP_NET_ADMIN; /proc/sys/net/ipv4/tcp_allowed_congestion_control lists those that everybody may use", name, err)
	case err != nil:
		return fmt.Errorf("congestion control %q: %w", name, err)
	}
	return nil
}

func getCongestion(fd uintptr) (string, error) {
	return unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
}
