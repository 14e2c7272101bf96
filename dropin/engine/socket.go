package main

// #include "inherited.h"
import "C"

import (
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/internal/polled"
)

// This file is the engine's sockets. Those that live for longer than a call are made
// known to inherited.c, which closes them in children of the program.

// keepFromChildren is for a socket's descriptor. There are no connections any more when the
// device has failed.
func keepFromChildren(fd int) {
	C.weft_not_for_children(C.int(fd))
	if failed.Load() {
		C.weft_sever(C.int(fd))
	}
}

// keepFrom is keepFromChildren for what has a socket, and for what has none.
func keepFrom(c any) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	if rc, err := sc.SyscallConn(); err == nil {
		_ = controlled("", "", rc) // fails only for a socket that is closed
	}
}

// controlled is for the Control of dialers and listeners.
func controlled(_, _ string, rc syscall.RawConn) error {
	if failed.Load() {
		return syscall.EIO
	}
	return rc.Control(func(fd uintptr) { keepFromChildren(int(fd)) })
}

// elsewhere runs in a thread of the engine's what may write to a socket: the signal that a
// peer that is gone raises there does not get to the program.
func elsewhere(f func() error) error { return unlessFailed(f) }

// startPoller has the runtime start its network poller, which takes two descriptors. A
// runtime that finds none when it needs the poller ends the process.
func startPoller() error {
	if err := descriptorsLeft(); err != nil {
		return err
	}
	time.AfterFunc(time.Hour, func() {}).Stop() // timers need it, too
	return nil
}

// isOfDescriptors reports whether an error is that the process, or the system, has no
// descriptors left. To try again does not help.
func isOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// descriptorsLeft returns an error if the process has not the two descriptors that a
// connection takes in the beginning.
func descriptorsLeft() error {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	_, _ = unix.Close(ends[0]), unix.Close(ends[1])
	return nil
}

// newDialer is a dialer of the engine's connections.
func newDialer() *net.Dialer {
	d := &net.Dialer{Timeout: connectTimeout, Control: controlled}
	d.SetMultipathTCP(false) // its segments are not what MPA aligns FPDUs with
	return d
}

// quiet takes a connection out of Go's network poller, which would wake a thread for each
// message also while the program's own thread receives (package polled).
func quiet(nc net.Conn) net.Conn {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nc
	}
	if polled.Start(keepFromChildren, attend) != nil {
		return nc
	}
	if c, err := polled.New(tcp); err == nil {
		return c
	}
	return nc
}

// attend calls what receives in the poller's goroutine, which a panic does not end.
func attend(f func() bool) (done bool) {
	defer contain(nil)
	return f()
}
