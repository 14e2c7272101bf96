// This file records what passes over one connection.

package capture

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// Conn returns a connection that behaves as nc does and records its traffic on w. Wrap
// only one end of a connection: with both ends on one Writer each octet is recorded
// twice.
//
// The result has NetConn() net.Conn, which returns nc, and CloseWrite() error
// if nc has it. Its methods may be called by any goroutine; concurrent Writes
// go one after the other, and so do concurrent Reads.
//
// Close is recorded as FIN; after SetLinger(0), or if nc had been closed below the
// wrapper, which is how it is reset there, as RST. A Read or Write that fails with
// ECONNRESET is recorded as the peer's RST.
func Conn(nc net.Conn, w *Writer) net.Conn {
	c := &conn{Conn: nc, flow: newFlow(w, nc.LocalAddr(), nc.RemoteAddr())}
	if half, ok := nc.(halfCloser); ok {
		return &halfConn{conn: c, half: half}
	}
	return c
}

type halfCloser interface{ CloseWrite() error }

// A conn records one connection.
type conn struct {
	net.Conn
	flow *flow

	reading, writing sync.Mutex // keep the record in the order of the octets

	mu     sync.Mutex
	linger bool // SetLinger(0) was called
	closed bool
}

// NetConn returns the recorded connection.
func (c *conn) NetConn() net.Conn { return c.Conn }

func (c *conn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.flow.data(remote, p[:n])
	}
	switch {
	case err == io.EOF:
		c.flow.finish(remote)
	case errors.Is(err, syscall.ECONNRESET):
		c.flow.abort(remote)
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.flow.data(local, p)
	n, err := c.Conn.Write(p)
	if n < len(p) {
		c.flow.unsent(local, len(p)-n)
	}
	if errors.Is(err, syscall.ECONNRESET) {
		c.flow.abort(remote)
	}
	return n, err
}

// SetLinger calls SetLinger of the recorded connection, if it has it.
func (c *conn) SetLinger(seconds int) error {
	l, ok := c.Conn.(interface{ SetLinger(int) error })
	if !ok {
		return errors.ErrUnsupported
	}
	c.mu.Lock()
	c.linger = seconds == 0
	c.mu.Unlock()
	return l.SetLinger(seconds)
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return err
	}
	c.closed = true
	if c.linger || errors.Is(err, net.ErrClosed) {
		c.flow.abort(local)
	} else {
		c.flow.finish(local)
	}
	c.flow.flush()
	return err
}

// A halfConn is a conn with CloseWrite.
type halfConn struct {
	*conn
	half halfCloser
}

func (c *halfConn) CloseWrite() error {
	err := c.half.CloseWrite()
	if err == nil {
		c.flow.finish(local)
	}
	return err
}
