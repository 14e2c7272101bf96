// This file is the watchdog's timer.

package turns

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// newTimer is a timer of the system's, or nil.
func newTimer() *os.File {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), "timerfd")
}

// arm has the timer expire each every; 0 is not at all.
func arm(timer *os.File, every time.Duration) {
	if timer == nil {
		return
	}
	rc, err := timer.SyscallConn()
	if err != nil {
		return
	}
	t := unix.NsecToTimespec(int64(every))
	_ = rc.Control(func(fd uintptr) {
		_ = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Interval: t, Value: t}, nil)
	})
}
