package perf

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// setCongestion sets nc's congestion control; an empty name changes nothing.
func setCongestion(nc *net.TCPConn, name string) error {
	if name == "" {
		return nil
	}
	err := onSocket(nc, func(fd int) error {
		return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	})
	if err != nil {
		return fmt.Errorf("cannot use congestion control %q: %w; /proc/sys/net/ipv4/tcp_allowed_congestion_control lists what may be used", name, err)
	}
	return nil
}

// congestion names nc's congestion control, or is empty.
func congestion(nc *net.TCPConn) (name string) {
	onSocket(nc, func(fd int) (err error) {
		name, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		return err
	})
	return name
}

func onSocket(nc *net.TCPConn, f func(fd int) error) error {
	rc, err := nc.SyscallConn()
	if err != nil {
		return err
	}
	var ferr error
	if err := rc.Control(func(fd uintptr) { ferr = f(int(fd)) }); err != nil {
		return err
	}
	return ferr
}
