//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package socket

import "golang.org/x/sys/unix"

// MaxSegment is TCP's segment size, in octets, without options.
func MaxSegment(fd uintptr) (int, error) {
	return unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG)
}
