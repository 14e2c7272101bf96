// This file asks Linux what the peer has acknowledged.

package rpctcp

import (
	"net"

	"golang.org/x/sys/unix"
)

// acked returns how many octets of a connection its peer has acknowledged, if the system
// reports that. A reply that the peer does not receive adds none.
func acked(nc net.Conn) (octets uint64, ok bool) {
	t, ok := nc.(*net.TCPConn)
	if !ok {
		return 0, false
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return 0, false
	}
	var info *unix.TCPInfo
	if raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }) != nil || err != nil {
		return 0, false
	}
	return info.Bytes_acked, true
}
