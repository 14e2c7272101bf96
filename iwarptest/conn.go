// This file is a connection in memory whose faults the test orders.

package iwarptest

import (
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// DefaultBuffer is how many octets each direction of a Pipe holds before its writer
// has to wait.
const DefaultBuffer = 64 << 10

// A Conn is one end of a connection in memory that can be made to fail. In
// other respects it is like a *net.TCPConn: each direction has a buffer of bounded
// size, and its own end; Close with unread input resets the connection.
//
// Faults of what an end sends are ordered at that end: Delay, Hold, Corrupt,
// FinAfter, ResetAfter. ReadSizes is for the end that reads. They may be ordered at
// any time, and apply to what is sent or read afterwards. All methods may be called
// by any goroutine. Waiting uses condition variables and timers, no goroutines of its
// own, so that a test in a bubble of [testing/synctest] needs no real time.
type Conn struct {
	name    string
	in, out *stream
	peer    *Conn
	linger  atomic.Bool // SetLinger(0) was called
}

var _ net.Conn = (*Conn)(nil)

// Pipe returns both ends of a connection in memory, with buffers of DefaultBuffer
// octets.
func Pipe() (a, b *Conn) { return BufferedPipe(DefaultBuffer) }

// BufferedPipe is Pipe with buffers of limit octets, at least one.
func BufferedPipe(limit int) (a, b *Conn) {
	limit = max(limit, 1)
	there, back := newStream(limit), newStream(limit)
	a = &Conn{name: "a", in: back, out: there}
	b = &Conn{name: "b", in: there, out: back}
	a.peer, b.peer = b, a
	return a, b
}

// An Addr names one end of a Pipe.
type Addr string

// Network returns "memory".
func (Addr) Network() string  { return "memory" }
func (a Addr) String() string { return string(a) }

// LocalAddr returns an Addr.
func (c *Conn) LocalAddr() net.Addr { return Addr(c.name) }

// RemoteAddr returns an Addr.
func (c *Conn) RemoteAddr() net.Addr { return Addr(c.peer.name) }

// Read waits for at least one octet.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	if err == syscall.ECONNRESET {
		c.out.do(func() {
			if c.out.end == nil {
				c.out.end = err // a reset ends both directions
			}
		})
	}
	return n, c.wrap("read", err)
}

// Write waits until the peer's buffer has taken all of p.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, c.wrap("write", err)
}

// wrap returns err as package net would.
func (c *Conn) wrap(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// CloseWrite ends the sending direction: the other end reads io.EOF after everything
// else.
func (c *Conn) CloseWrite() error {
	c.out.closeWrite(syscall.EPIPE)
	return nil
}

// Close ends both directions. The other end reads what was written and then io.EOF,
// or ECONNRESET if this end had unread input, as with TCP. After SetLinger(0) Close
// is Reset.
func (c *Conn) Close() error {
	if c.linger.Load() {
		return c.Reset()
	}
	var again, unread bool
	c.in.do(func() {
		again, unread = c.in.closed, c.in.used > 0
		c.in.closed = true
	})
	if again {
		return c.wrap("close", net.ErrClosed)
	}
	if unread {
		c.out.do(func() { c.out.finish(syscall.ECONNRESET) })
	}
	c.out.closeWrite(net.ErrClosed)
	return nil
}

// Reset ends both directions at once, as a TCP RST does: what the other end has not
// read is lost, and it gets ECONNRESET.
func (c *Conn) Reset() error {
	var again bool
	c.in.do(func() {
		again = c.in.closed
		c.in.closed = true
	})
	if again {
		return c.wrap("close", net.ErrClosed)
	}
	c.out.reset()
	c.out.do(func() { c.out.end = net.ErrClosed })
	return nil
}

// SetLinger(0) makes Close a Reset, as with TCP.
func (c *Conn) SetLinger(seconds int) error {
	c.linger.Store(seconds == 0)
	return nil
}

// SetDeadline limits Read and Write.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline limits how long Read waits; the zero time is no limit.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.readLimit, t)
	return nil
}

// SetWriteDeadline limits how long Write waits; the zero time is no limit.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writeLimit, t)
	return nil
}

// ReadSizes limits each Read of this end to the number of octets that size returns,
// at least one. nil is no limit.
func (c *Conn) ReadSizes(size func() int) { c.in.do(func() { c.in.sizes = size }) }

// Sizes returns a function for ReadSizes that repeats these sizes.
func Sizes(sizes ...int) func() int {
	i := -1
	return func() int {
		i = (i + 1) % len(sizes)
		return sizes[i]
	}
}

// RandomSizes returns a function for ReadSizes that returns random sizes from 1 to
// most, the same for the same seed.
func RandomSizes(seed uint64, most int) func() int {
	rng := rand.New(rand.NewPCG(seed, 0))
	return func() int { return 1 + rng.IntN(most) }
}

// Delay makes what this end writes from now on arrive after d.
func (c *Conn) Delay(d time.Duration) { c.out.do(func() { c.out.delay = d }) }

// Hold withholds from the other end what this end has written and it has not read,
// and what this end writes, until Resume; several writes then arrive as one. The
// buffer fills meanwhile, so to this end the other seems to have stopped reading.
func (c *Conn) Hold() { c.out.do(func() { c.out.held = true }) }

// Resume ends Hold.
func (c *Conn) Resume() { c.out.do(func() { c.out.held = false }) }

// Corrupt XORs octet number n of what this end sends with mask. Octets count from 0,
// from the beginning of the connection; octet n must not have been written yet.
func (c *Conn) Corrupt(n uint64, mask byte) { c.out.do(func() { c.out.faults[n] ^= mask }) }

// FinAfter makes the other end read io.EOF after n octets of this end, counted from
// the beginning of the connection. What is written beyond is lost without an error.
func (c *Conn) FinAfter(n uint64) {
	c.out.do(func() { c.out.cutOff(n, io.EOF) })
}

// ResetAfter is FinAfter with ECONNRESET in place of io.EOF.
func (c *Conn) ResetAfter(n uint64) {
	c.out.do(func() { c.out.cutOff(n, syscall.ECONNRESET) })
}

// Written returns how many octets this end has written.
func (c *Conn) Written() (n uint64) {
	c.out.do(func() { n = c.out.written })
	return n
}

// Unread returns how many octets this end can read, or will after a delay.
func (c *Conn) Unread() (n int) {
	c.in.do(func() { n = c.in.used })
	return n
}
