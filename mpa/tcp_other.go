//go:build !linux

package mpa

import "net"

// newDirect has no fast path to offer on this system.
func newDirect(net.Conn, *counters) direct { return nil }
