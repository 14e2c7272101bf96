package mpa

// readv and writev without waiting and without the scheduler's knowledge: the
// socket does not block, so the calls are short. All that is unsafe is here.

import (
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// iovMax is what the kernel takes in one call (UIO_MAXIOV).
const iovMax = 1024

// A vector is the array that the kernel is given. It is a socket's own while few
// pieces are enough, and from the pool otherwise.
type vector struct{ few [4]unix.Iovec }

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

func (v *vector) call(trap, fd uintptr, pieces [][]byte) (int, syscall.Errno) {
	if len(pieces) <= len(v.few) {
		return call(trap, fd, describe(v.few[:], pieces))
	}
	many := vectors.Get().(*[iovMax]unix.Iovec)
	defer vectors.Put(many)
	return call(trap, fd, describe(many[:], pieces))
}

func call(trap, fd uintptr, v []unix.Iovec) (int, syscall.Errno) {
	if len(v) == 0 {
		return 0, 0
	}
	n, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(v))), uintptr(len(v)))
	clear(v) // do not keep the memory
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

func (v *vector) write(fd uintptr, pieces [][]byte) (int, syscall.Errno) {
	raceWrite()
	if len(pieces) == 1 { // the kernel has less to do
		p := pieces[0]
		n, _, errno := syscall.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		return max(0, int(n)), errno
	}
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
