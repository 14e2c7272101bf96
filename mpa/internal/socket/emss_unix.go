//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package socket

import "golang.org/x/sys/unix"

// maxSegment is TCP's segment size, in octets, without options.
func maxSegment(fd uintptr) (int, error) {
	return unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG)
}
