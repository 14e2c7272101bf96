// This file peeks at octets that have arrived, at a position (Linux 6.9, and 6.11 for IPv6).

package socket

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// PeekAt copies to p what there is from position at on of the octets that have arrived and
// have not been read: EAGAIN if nothing. EOPNOTSUPP is the error of systems without it.
func PeekAt(fd uintptr, at int, p []byte) (n int, errno syscall.Errno) {
	position := int32(at)
	_, _, errno = syscall.RawSyscall6(unix.SYS_SETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEEK_OFF,
		uintptr(unsafe.Pointer(&position)), unsafe.Sizeof(position), 0)
	if errno != 0 {
		return 0, unix.EOPNOTSUPP
	}
	for {
		k, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)),
			unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
		if errno != unix.EINTR {
			acquired()
			return count(k, errno)
		}
	}
}
