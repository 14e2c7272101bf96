package mpa

// readv and writev without waiting and without the scheduler's knowledge: the
// socket does not block, so the calls are short. All that is unsafe is here.

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// iovMax is what the kernel takes in one call (UIO_MAXIOV).
const iovMax = 1024

// A vector is the array that the kernel is given, kept from call to call.
type vector []unix.Iovec

// fill takes the pieces, as many as the kernel does. A piece of no octets is
// left out.
func (v *vector) fill(pieces [][]byte) {
	*v = (*v)[:0]
	for _, p := range pieces {
		if len(p) == 0 {
			continue
		}
		if len(*v) == iovMax {
			break
		}
		iov := unix.Iovec{Base: unsafe.SliceData(p)}
		iov.SetLen(len(p))
		*v = append(*v, iov)
	}
}

func (v *vector) call(trap, fd uintptr, pieces [][]byte) (int, syscall.Errno) {
	v.fill(pieces)
	if len(*v) == 0 {
		return 0, 0
	}
	n, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(*v))), uintptr(len(*v)))
	clear(*v) // do not keep the memory
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

func (v *vector) write(fd uintptr, pieces [][]byte) (int, syscall.Errno) {
	raceWrite()
	return v.call(unix.SYS_WRITEV, fd, pieces)
}

func (v *vector) read(fd uintptr, pieces [][]byte) (int, syscall.Errno) {
	n, errno := v.call(unix.SYS_READV, fd, pieces)
	raceRead()
	return n, errno
}

// readOne reads into one piece, of at least one octet.
func readOne(fd uintptr, p []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	raceRead()
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// schedYield lets other threads of this core run.
func schedYield() { syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
