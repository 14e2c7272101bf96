// What only Linux's sockets can do.

package main

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// defaultCongestion is what a run asks for: on loopback there is no congestion
// to control, and bbr, a default on many systems, paces it to a fraction.
const defaultCongestion = "reno"

// canSpin reports whether spinReader works here.
func canSpin() bool { return true }

// A spinReader reads from a socket by polling: it yields the processor between
// attempts, since the sender may need it, and parks in the netpoller after
// spinLimit attempts.
type spinReader struct {
	rc syscall.RawConn
}

func newSpinReader(nc *net.TCPConn) (*spinReader, error) {
	rc, err := nc.SyscallConn()
	return &spinReader{rc}, err
}

// spinLimit is the number of attempts before parking: about 100 us.
const spinLimit = 500

func (r *spinReader) Read(p []byte) (n int, err error) {
	rerr := r.rc.Read(func(fd uintptr) bool {
		for range spinLimit {
			n, err = unix.Read(int(fd), p)
			if err != unix.EAGAIN && err != unix.EINTR {
				return true
			}
			unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
		return false
	})
	if rerr != nil {
		return 0, rerr
	}
	if err != nil {
		return 0, err
	}
	return n, endOfStream(n)
}
