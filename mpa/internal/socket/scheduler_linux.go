// This file is what mpa asks of the system's scheduler.

package socket

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Yield lets other threads of this processor run.
func Yield() { syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Alone reports whether this program has one processor only.
func Alone() bool {
	var set unix.CPUSet
	return unix.SchedGetaffinity(0, &set) == nil && set.Count() == 1
}
