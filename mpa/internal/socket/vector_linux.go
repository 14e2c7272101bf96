// readv and sendmsg without waiting and without the scheduler's knowledge: the
// socket does not block, so the calls are short. All that is unsafe is here.
// An interrupted call (EINTR) is made again. A peer that is gone raises no SIGPIPE:
// in a library the signal would be its program's.

package socket

import (
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// iovMax is what the kernel takes in one call (UIO_MAXIOV).
const iovMax = 1024

// A Vector is the array that the kernel is given. It is a socket's own while few
// pieces are enough, and from the pool otherwise.
type Vector struct{ few [4]unix.Iovec }

var vectors = sync.Pool{New: func() any { return new([iovMax]unix.Iovec) }}

// describe puts the pieces into v, as many as it takes, and returns that part of it. A
// piece of no octets is left out.
func describe(v []unix.Iovec, pieces [][]byte) []unix.Iovec {
	n := 0
	for _, p := range pieces {
		if len(p) == 0 {
			continue
		}
		if n == len(v) {
			break
		}
		v[n].Base = unsafe.SliceData(p)
		v[n].SetLen(len(p))
		n++
	}
	return v[:n]
}

func (v *Vector) call(f transfer, fd uintptr, pieces [][]byte) (int, syscall.Errno) {
	if len(pieces) <= len(v.few) {
		return call(f, fd, describe(v.few[:], pieces))
	}
	many := vectors.Get().(*[iovMax]unix.Iovec)
	defer vectors.Put(many)
	return call(f, fd, describe(many[:], pieces))
}

// A transfer is a system call with an array of pieces, at least one.
type transfer func(fd uintptr, v []unix.Iovec) (n uintptr, errno syscall.Errno)

func readv(fd uintptr, v []unix.Iovec) (uintptr, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(unix.SYS_READV, fd, uintptr(unsafe.Pointer(unsafe.SliceData(v))), uintptr(len(v)))
	return n, errno
}

func sendmsg(fd uintptr, v []unix.Iovec) (uintptr, syscall.Errno) {
	m := unix.Msghdr{Iov: unsafe.SliceData(v)}
	m.SetIovlen(len(v))
	n, _, errno := syscall.RawSyscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&m)), unix.MSG_NOSIGNAL)
	return n, errno
}

func call(f transfer, fd uintptr, v []unix.Iovec) (int, syscall.Errno) {
	if len(v) == 0 {
		return 0, 0
	}
	n, errno := f(fd, v)
	clear(v) // do not keep the memory
	return count(n, errno)
}

// Write writes as much of pieces as the socket takes now: EAGAIN if nothing.
func (v *Vector) Write(fd uintptr, pieces [][]byte) (n int, errno syscall.Errno) {
	released()
	for {
		if len(pieces) == 1 { // the kernel has less to do
			n, errno = send(fd, pieces[0])
		} else {
			n, errno = v.call(sendmsg, fd, pieces)
		}
		if errno != unix.EINTR {
			return n, errno
		}
	}
}

// Read reads what there is, as much as fits into pieces: EAGAIN if nothing, and 0 octets at
// the end.
func (v *Vector) Read(fd uintptr, pieces [][]byte) (n int, errno syscall.Errno) {
	for {
		if n, errno = v.call(readv, fd, pieces); errno != unix.EINTR {
			acquired()
			return n, errno
		}
	}
}

// Read reads into one piece, of at least one octet, as [Vector.Read] does.
func Read(fd uintptr, p []byte) (n int, errno syscall.Errno) {
	for {
		if n, errno = read(fd, p); errno != unix.EINTR {
			acquired()
			return n, errno
		}
	}
}

func read(fd uintptr, p []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	return count(n, errno)
}

func send(fd uintptr, p []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
	return count(n, errno)
}

// count is what a call has transferred: nothing if it failed.
func count(n uintptr, errno syscall.Errno) (int, syscall.Errno) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// Readable reports whether a read would not wait.
func Readable(fd uintptr) bool {
	ready := unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	n, _, errno := syscall.RawSyscall(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&ready)), 1, uintptr(unsafe.Pointer(new(unix.Timespec))))
	return int(n) > 0 || errno != 0
}
