//go:build unix

// Processor time used by this process.

package main

import (
	"syscall"
	"time"
)

// cpuTime returns user and system time since the process began.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
