//go:build !linux

package mpa

import (
	"net"
	"time"
)

// newSocket has no fast path to offer on this system.
func newSocket(net.Conn, time.Duration, *counters, *readDeadline) transport { return nil }
