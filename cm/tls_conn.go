// A TLS connection as MPA needs it: one that ends its halves one by one, that is reset
// rather than closed, and that reads many records at a time.

package cm

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// A tlsConn is a TLS connection after its handshake. crypto/tls is for reads and for
// writes; deadlines, the end and the reset are this file's.
type tlsConn struct {
	*tls.Conn
	below *recordConn

	abort atomic.Bool // Close resets
}

// maxRecord is how many octets of a stream one record carries (RFC 8446 §5.1).
const maxRecord = 16 << 10

// RecordSize is for MPA, which makes its FPDUs as long.
func (c *tlsConn) RecordSize() int { return maxRecord }

// Read reads as many records as are there.
func (c *tlsConn) Read(p []byte) (n int, err error) {
	n, err = c.Conn.Read(p)
	for err == nil && n > 0 && n < len(p) && c.below.hasRecord() {
		var more int
		more, err = c.Conn.Read(p[n:])
		n += more
	}
	if n > 0 {
		return n, nil // an error comes again
	}
	return 0, peerError(err)
}

// peerError names the alert by which a peer ends TLS: it may come after the handshake of a
// client has succeeded, if the server does not accept its certificate.
func peerError(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		return &TLSError{fmt.Errorf("the peer refuses: %w", op.Err)}
	}
	return err
}

// CloseWrite sends close_notify and then FIN (RFC 8446 §6.1). It waits for what was
// written before to leave, no longer than the write deadline allows.
func (c *tlsConn) CloseWrite() error {
	if err := c.Conn.CloseWrite(); err != nil {
		return err
	}
	if h, ok := c.below.Conn.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return nil
}

// SetLinger makes Close reset the connection if seconds is 0: without close_notify, and by
// RST if the connection below is one of TCP.
func (c *tlsConn) SetLinger(seconds int) error {
	c.abort.Store(seconds == 0)
	if l, ok := c.below.Conn.(interface{ SetLinger(int) error }); ok {
		return l.SetLinger(seconds)
	}
	return nil
}

// closeTimeout is how long Close waits to send close_notify, if CloseWrite has not.
const closeTimeout = 100 * time.Millisecond

// Close sends close_notify, if there is room for it soon, and closes the connection.
func (c *tlsConn) Close() error {
	if c.abort.Load() {
		return c.below.Conn.Close()
	}
	_ = c.below.Conn.SetWriteDeadline(time.Now().Add(closeTimeout)) // if it is closed, so be it
	return c.Conn.Close()
}

// SetDeadline, SetReadDeadline and SetWriteDeadline are those of the connection below.
func (c *tlsConn) SetDeadline(t time.Time) error      { return c.below.Conn.SetDeadline(t) }
func (c *tlsConn) SetReadDeadline(t time.Time) error  { return c.below.Conn.SetReadDeadline(t) }
func (c *tlsConn) SetWriteDeadline(t time.Time) error { return c.below.Conn.SetWriteDeadline(t) }
