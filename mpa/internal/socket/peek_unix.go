//go:build unix

package socket

import (
	"io"
	"syscall"
)

// Peek looks at the socket's next octet without waiting for it: 1 if there is
// one, 0 if not, io.EOF at the end of the stream.
func Peek(rc syscall.RawConn) (n int, err error) {
	var b [1]byte
	rerr := rc.Read(func(fd uintptr) bool {
		n, _, err = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK) // Go's sockets are non-blocking
		if n == 0 && err == nil {
			err = io.EOF
		}
		return true
	})
	switch {
	case rerr != nil:
		return 0, rerr
	case err == syscall.EAGAIN || err == syscall.EINTR:
		return 0, nil
	}
	return max(n, 0), err
}
