//go:build !linux

package mpa

import "net"

// newDirect has no fast path to offer on this system.
func newDirect(net.Conn, *counters) direct { return nil }

// asTCP is nc if that is a TCP connection, or nil.
func asTCP(nc net.Conn) tcpConn {
	if t, ok := nc.(*net.TCPConn); ok {
		return t
	}
	return nil
}
