// This file ends a connection so that the peer cannot take it for a graceful
// close, which FIN between two FPDUs is.

package mpa

import (
	"net"
	"time"
)

// reset ends a connection, to which nothing is being written, at once: by RST if it is one of
// TCP, or has a SetLinger of its own; otherwise by a cut, if it has deadlines.
func reset(nc net.Conn) error {
	if ok, err := abort(nc); ok {
		return err
	}
	if nc.SetWriteDeadline(time.Now().Add(cutTimeout)) == nil {
		cut(nc)
	}
	return nc.Close()
}

// abort closes a connection by RST. ok is false, and nothing has happened, if it
// knows none.
func abort(nc net.Conn) (ok bool, err error) {
	if tcp := unwrapTCP(nc); tcp != nil {
		// An error means that it is closed already, which Close reports.
		_ = tcp.SetLinger(0)
		err := tcp.Close()
		if net.Conn(tcp) != nc {
			_ = nc.Close() // what wraps it cannot say goodbye any more
		}
		return true, err
	}
	if l, ok := nc.(interface{ SetLinger(sec int) error }); ok && l.SetLinger(0) == nil {
		return true, nc.Close()
	}
	return false, nil
}

// cutTimeout is how long a peer may take to read the octet of a cut.
const cutTimeout = 100 * time.Millisecond

// cut writes the beginning of an FPDU, or of a Marker, that nothing follows: the
// peer sees its connection end within one. It belongs between two FPDUs.
func cut(nc net.Conn) { _, _ = nc.Write([]byte{0}) }
