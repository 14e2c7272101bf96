// What takes the system.

package service

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is CLOCK_MONOTONIC.
func monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// listens fails if a socket is that of a connection.
func listens(f *os.File) error {
	raw, err := f.SyscallConn() // Fd would make it block
	if err != nil {
		return err
	}
	var is int
	var failed error
	if err := raw.Control(func(fd uintptr) { is, failed = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ACCEPTCONN) }); err != nil {
		return err
	}
	if failed == nil && is == 0 {
		return errors.New("it does not listen: Accept= has to be no")
	}
	return failed
}

// Store gives a socket to the supervisor, which keeps it for the next process. Without a
// supervisor it does nothing.
func (m *Manager) Store(name string, socket syscall.Conn) error {
	if !m.control {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	lines := []byte(fmt.Sprintf("FDSTORE=1\nFDNAME=%s", name))
	var sent error
	err = raw.Control(func(fd uintptr) {
		_, _, sent = m.conn.WriteMsgUnix(lines, unix.UnixRights(int(fd)), nil)
	})
	return errors.Join(err, sent)
}
