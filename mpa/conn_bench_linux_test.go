package mpa

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// reno sets a congestion control that loopback does not slow down.
func reno(b testing.TB, c *net.TCPConn) {
	b.Helper()
	rc, err := c.SyscallConn()
	if err != nil {
		b.Fatal(err)
	}
	if err := rc.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
	}); err != nil {
		b.Fatal(err)
	}
	if err != nil {
		b.Logf("reno congestion control: %v", err)
	}
}
