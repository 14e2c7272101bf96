// This file is the connection: a net.Conn over a descriptor. wait_linux.go is how it waits.

package polled

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/internal/panics"
)

// A Conn is a TCP connection. Methods may be called by any goroutine.
type Conn struct {
	fd            int
	local, remote net.Addr
	in, out       half

	mu      sync.Mutex // guards all below, and the fields of the halves but lock
	unused  sync.Cond  // there is no user
	users   int        // of the descriptor
	held    int        // of these, by Hold
	id      int32
	receive func() bool // see ReceiveWith

	state  atomic.Int32 // a state: read without mu, changed under it
	visits atomic.Uint32
	known  uint32 // of visits, when the timer expired last
}

// A half is one direction of a connection.
type half struct {
	lock    sync.Mutex // held by its user, while that works and waits
	events  uint32     // of epoll, that end a wait
	waits   bool
	again   bool          // the next wait is over before it begins
	ready   chan struct{} // capacity 1: the wait is over
	until   time.Time     // the deadline
	expired bool          // it has passed
	timer   *time.Timer   // of the deadline
}

var _ net.Conn = (*Conn)(nil)

// New takes over the socket of nc, which is closed, unless New fails.
func New(nc *net.TCPConn) (*Conn, error) {
	fd, err := duplicate(nc)
	if err != nil {
		return nil, err
	}
	c := &Conn{fd: fd, local: nc.LocalAddr(), remote: nc.RemoteAddr()}
	c.unused.L = &c.mu
	c.in = half{events: unix.EPOLLIN | unix.EPOLLRDHUP, ready: make(chan struct{}, 1)}
	c.out = half{events: unix.EPOLLOUT, ready: make(chan struct{}, 1)}
	if err := thePoller.add(c); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	_ = nc.Close() // its socket lives on in fd
	return c, nil
}

// duplicate returns another descriptor of nc's socket, which does not block.
func duplicate(nc *net.TCPConn) (fd int, err error) {
	rc, err := nc.SyscallConn()
	if err != nil {
		return 0, err
	}
	cerr := rc.Control(func(of uintptr) { fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(cerr, os.NewSyscallError("fcntl", err))
}

// LocalAddr and RemoteAddr return the addresses.
func (c *Conn) LocalAddr() net.Addr  { return c.local }
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SyscallConn returns the socket as [syscall.RawConn]. The functions given to its Read and
// Write must not wait.
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return (*raw)(c), nil }

// A raw is a Conn as its descriptor.
type raw Conn

func (r *raw) Control(f func(fd uintptr)) error {
	c := (*Conn)(r)
	if err := c.use(); err != nil {
		return err
	}
	defer c.unuse()
	f(uintptr(c.fd))
	return nil
}

func (r *raw) Read(f func(fd uintptr) bool) error {
	c := (*Conn)(r)
	return c.try(&c.in, f)
}

func (r *raw) Write(f func(fd uintptr) bool) error {
	c := (*Conn)(r)
	return c.try(&c.out, f)
}

// SetDeadline, SetReadDeadline and SetWriteDeadline are those of [net.Conn].
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.limit(&c.in, t), c.limit(&c.out, t))
}
func (c *Conn) SetReadDeadline(t time.Time) error  { return c.limit(&c.in, t) }
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.limit(&c.out, t) }

func (c *Conn) limit(h *half, until time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.is(closed) {
		return net.ErrClosed
	}
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	h.until, h.expired = until, false
	if until.IsZero() {
		return nil
	}
	if left := time.Until(until); left > 0 {
		h.timer = time.AfterFunc(left, func() {
			defer panics.Recover()
			c.pass(h, until)
		})
		return nil
	}
	h.expired = true
	h.wake()
	return nil
}

// pass notes that the half's deadline has passed, unless it has changed.
func (c *Conn) pass(h *half, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.until.Equal(until) {
		h.expired = true
		h.wake()
	}
}

// Read and Write are those of [net.Conn].
func (c *Conn) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	terr := c.try(&c.in, func(fd uintptr) bool {
		n, err = retry(func() (int, error) { return unix.Read(int(fd), p) })
		return err != unix.EAGAIN
	})
	switch {
	case terr != nil:
		return 0, c.failure("read", terr)
	case err != nil:
		return 0, c.failure("read", os.NewSyscallError("read", err))
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (c *Conn) Write(p []byte) (written int, err error) {
	terr := c.try(&c.out, func(fd uintptr) bool {
		for written < len(p) {
			var n int
			if n, err = retry(func() (int, error) { return unix.Write(int(fd), p[written:]) }); err != nil {
				return err != unix.EAGAIN
			}
			written += n
		}
		return true
	})
	if terr != nil {
		return written, c.failure("write", terr)
	}
	return written, c.failure("write", os.NewSyscallError("write", err))
}

// retry repeats a call that was interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// failure returns the error of an operation.
func (c *Conn) failure(op string, err error) error {
	if err == nil {
		return nil
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// CloseWrite ends the sending half (FIN).
func (c *Conn) CloseWrite() error {
	err := error(nil)
	cerr := (*raw)(c).Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_WR) })
	return c.failure("close", errors.Join(cerr, os.NewSyscallError("shutdown", err)))
}

// SetNoDelay and SetLinger are those of [net.TCPConn].
func (c *Conn) SetNoDelay(on bool) error {
	value := 0
	if on {
		value = 1
	}
	return c.set(func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, value) })
}

func (c *Conn) SetLinger(sec int) error {
	l := unix.Linger{}
	if sec >= 0 {
		l = unix.Linger{Onoff: 1, Linger: int32(sec)}
	}
	return c.set(func(fd int) error { return unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &l) })
}

func (c *Conn) set(option func(fd int) error) (err error) {
	cerr := (*raw)(c).Control(func(fd uintptr) { err = option(int(fd)) })
	return c.failure("set", errors.Join(cerr, os.NewSyscallError("setsockopt", err)))
}

// Close closes the connection, and waits until nobody uses the descriptor.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apply(closing) != wake {
		return c.failure("close", net.ErrClosed)
	}
	for _, h := range [...]*half{&c.in, &c.out} {
		h.wake()
		if h.timer != nil {
			h.timer.Stop()
		}
	}
	if c.users > 0 {
		_ = unix.Shutdown(c.fd, unix.SHUT_RD) // wakes visitors that wait for it
	}
	for c.users > 0 {
		c.unused.Wait()
	}
	thePoller.remove(c)
	return c.failure("close", os.NewSyscallError("close", unix.Close(c.fd)))
}
