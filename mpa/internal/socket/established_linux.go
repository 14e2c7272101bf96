// This file asks TCP whether a connection is established.

package socket

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// tcpEstablished is TCP_ESTABLISHED of Linux's tcp_states.h.
const tcpEstablished = 1

// Established asks TCP for its state (RFC 9293 §3.3.2).
func Established(rc syscall.RawConn) (err error) {
	if cerr := rc.Control(func(fd uintptr) {
		var info *unix.TCPInfo
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil && info.State != tcpEstablished {
			err = fmt.Errorf("TCP is in state %d, expected %d, ESTABLISHED", info.State, tcpEstablished)
		}
	}); cerr != nil {
		return cerr
	}
	return err
}
