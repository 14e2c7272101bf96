package nettest

import (
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// DefaultBuffer is how many octets each direction of a Pipe takes before its
// writer has to wait.
const DefaultBuffer = 64 << 10

// A Conn is one end of a connection in memory. It behaves as a *net.TCPConn
// does, as far as tests care: writes wait for room only, ends come one by one,
// and closing with unread input resets. Its methods may be called by any
// goroutine; faults may be ordered at any time and count for what comes after.
type Conn struct {
	name    string
	in, out *stream
	peer    *Conn
	linger  atomic.Bool // SetLinger(0) was called
}

var _ net.Conn = (*Conn)(nil)

// Pipe makes a connection with DefaultBuffer octets of room each way.
func Pipe() (a, b *Conn) { return BufferedPipe(DefaultBuffer) }

// BufferedPipe makes a connection with room for limit octets each way, at least one.
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

// Network is "memory".
func (Addr) Network() string  { return "memory" }
func (a Addr) String() string { return string(a) }

// LocalAddr is an Addr.
func (c *Conn) LocalAddr() net.Addr { return Addr(c.name) }

// RemoteAddr is an Addr.
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

// wrap makes of err what the net package would.
func (c *Conn) wrap(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// CloseWrite ends the sending direction: the peer reads io.EOF after all else.
func (c *Conn) CloseWrite() error {
	c.out.closeWrite(syscall.EPIPE)
	return nil
}

// Close ends both directions. The peer reads what was written and then io.EOF,
// or ECONNRESET if this end had not read all of its input, as TCP does it. After
// SetLinger(0) it is Reset.
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

// Reset ends both directions at once, as a TCP RST does: what is under way is
// lost, and the peer gets ECONNRESET.
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

// SetLinger makes Close a Reset if seconds is 0, as it does with TCP.
func (c *Conn) SetLinger(seconds int) error {
	c.linger.Store(seconds == 0)
	return nil
}

// SetDeadline limits Read and Write.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline limits how long Read waits; the zero time means for ever.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.readLimit, t)
	return nil
}

// SetWriteDeadline limits how long Write waits; the zero time means for ever.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writeLimit, t)
	return nil
}

// ReadSizes bounds each Read of this end to what size returns then, at least
// one octet. nil means no bound.
func (c *Conn) ReadSizes(size func() int) { c.in.do(func() { c.in.sizes = size }) }

// Sizes yields the sizes in turn, again and again.
func Sizes(sizes ...int) func() int {
	i := -1
	return func() int {
		i = (i + 1) % len(sizes)
		return sizes[i]
	}
}

// RandomSizes yields sizes from 1 to most, the same for the same seed.
func RandomSizes(seed uint64, most int) func() int {
	rng := rand.New(rand.NewPCG(seed, 0))
	return func() int { return 1 + rng.IntN(most) }
}

// Delay makes what this end writes from now on arrive d later.
func (c *Conn) Delay(d time.Duration) { c.out.do(func() { c.out.delay = d }) }

// Hold keeps what this end writes, and has written and was not read yet, from
// the peer until Resume: several writes arrive merged then. The buffer's limit
// stays, so that to the writer the peer looks as if it had stopped reading.
func (c *Conn) Hold() { c.out.do(func() { c.out.held = true }) }

// Resume ends Hold.
func (c *Conn) Resume() { c.out.do(func() { c.out.held = false }) }

// Corrupt makes the peer receive octet number n of this end, counted from 0
// since the beginning, XORed with mask. It has to be ordered before the octet
// is written.
func (c *Conn) Corrupt(n uint64, mask byte) { c.out.do(func() { c.out.faults[n] ^= mask }) }

// FinAfter makes the peer read io.EOF after octet number n-1 of this end. What
// is written beyond is lost, and the writer is not told.
func (c *Conn) FinAfter(n uint64) {
	c.out.do(func() { c.out.cutOff(n, io.EOF) })
}

// ResetAfter makes the peer get ECONNRESET after octet number n-1 of this end.
// What is written beyond is lost, and the writer is not told.
func (c *Conn) ResetAfter(n uint64) {
	c.out.do(func() { c.out.cutOff(n, syscall.ECONNRESET) })
}

// Written counts the octets that this end has written.
func (c *Conn) Written() (n uint64) {
	c.out.do(func() { n = c.out.written })
	return n
}

// Unread counts the octets that this end could read, or will after a delay.
func (c *Conn) Unread() (n int) {
	c.in.do(func() { n = c.in.used })
	return n
}
