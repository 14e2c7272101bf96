//go:build unix && !linux

// This file stands in where access times are not found.

package files

import (
	"syscall"
	"time"
)

// accessTime returns no time: its place in Stat_t differs between systems.
func accessTime(st *syscall.Stat_t) time.Time { return time.Time{} }
