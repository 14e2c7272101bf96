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
)

// A Conn is a TCP connection. Methods may be called by any goroutine.
type Conn struct {
	fd            int
	local, remote net.Addr
	in, out       half

	mu     sync.Mutex // of all below, and of the fields of the halves that are not lock
	unused sync.Cond  // there is no user
	users  int        // of the descriptor
	held   int        // of these, by Hold
	closed bool
	id     int32
	attend func() bool // receives in place of a read that waits; see Attend

	visits atomic.Uint32
	leased atomic.Bool // octets are left to visitors; changes under mu
	known  uint32      // of visits; the poller's
}

// A half is one direction of a connection.
type half struct {
	lock    sync.Mutex // held by who reads, or writes
	events  uint32     // of epoll, that end a wait
	waits   bool
	again   bool          // the next wait is over before it begins
	ready   chan struct{} // capacity 1: the wait is over
	until   time.Time     // what is called later fails
	expired bool
	timer   *time.Timer
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
	if err := watch.add(c); err != nil {
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

// SyscallConn returns the socket as [syscall.RawConn]. What its Read and Write call must
// not wait.
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return (*raw)(c), nil }

// A raw is a Conn as its descriptor.
type raw Conn

func (r *raw) Control(f func(fd uintptr)) error {
	c := (*Conn)(r)
	if err := c.use(); err != nil {
		return err
	}
	defer c.leave()
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

// use and leave are called before and after the descriptor is used.
func (c *Conn) use() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.users++
	return nil
}

func (c *Conn) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users--; c.users == 0 {
		c.unused.Broadcast()
	}
}

// Hold returns the descriptor, which stays open until Drop. Close makes it readable, and
// waits for Drop. It reports false if the connection is closed.
func (c *Conn) Hold() (fd uintptr, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, false
	}
	c.users++
	c.held++
	return uintptr(c.fd), true
}

// Drop ends a Hold.
func (c *Conn) Drop() {
	c.mu.Lock()
	c.held--
	c.mu.Unlock()
	c.leave()
}

// try calls f until it reports true, and waits in between.
func (c *Conn) try(h *half, f func(fd uintptr) bool) error {
	if err := c.use(); err != nil {
		return err
	}
	defer c.leave()
	h.lock.Lock()
	defer h.lock.Unlock()
	for {
		if err := c.over(h); err != nil {
			return err
		}
		if f(uintptr(c.fd)) {
			return nil
		}
		if err := c.wait(h); err != nil {
			return err
		}
	}
}

// over is why nothing can be waited for any more, or nil.
func (c *Conn) over(h *half) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended(h)
}

// ended is over; needs mu.
func (c *Conn) ended(h *half) error {
	switch {
	case c.closed:
		return net.ErrClosed
	case h.expired:
		return os.ErrDeadlineExceeded
	}
	return nil
}

// wait waits until the half may be ready.
func (c *Conn) wait(h *half) error {
	c.mu.Lock()
	if err := c.ended(h); err != nil {
		c.mu.Unlock()
		return err
	}
	if h.again {
		h.again = false
		c.mu.Unlock()
		return nil
	}
	h.waits = true
	err := error(nil)
	if c.wanted() != 0 {
		err = watch.arm(c)
	}
	if err != nil {
		h.waits = false
	}
	c.mu.Unlock()
	if err == nil {
		<-h.ready
	}
	return err
}

// wake ends a wait; needs mu.
func (h *half) wake() {
	if h.waits {
		h.waits = false
		h.ready <- struct{}{}
	}
}

// wanted are the events that are waited for; needs mu.
func (c *Conn) wanted() (events uint32) {
	if c.in.waits && !c.leased.Load() {
		events = c.in.events
	}
	if c.out.waits {
		events |= c.out.events
	}
	return events
}

// happened wakes who waits for these events.
func (c *Conn) happened(events uint32) {
	done, left := false, false
	if events&(c.in.events|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		done, left = c.attended()
	}
	if done {
		events &^= c.in.events | unix.EPOLLHUP | unix.EPOLLERR
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if left {
		c.look()
	}
	for _, h := range [...]*half{&c.in, &c.out} {
		if events&(h.events|unix.EPOLLHUP|unix.EPOLLERR) != 0 && (h == &c.out || !c.leased.Load()) {
			h.wake()
		}
	}
	if c.wanted() != 0 { // the event was the last
		if watch.arm(c) != nil {
			c.in.wake()
			c.out.wake()
		}
	}
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
	if c.closed {
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
		h.timer = time.AfterFunc(left, func() { c.expire(h, until) })
		return nil
	}
	h.expired = true
	h.wake()
	return nil
}

// expire ends the half's time, unless its limit has changed.
func (c *Conn) expire(h *half, until time.Time) {
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
		n, err = again(func() (int, error) { return unix.Read(int(fd), p) })
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
			if n, err = again(func() (int, error) { return unix.Write(int(fd), p[written:]) }); err != nil {
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

// again makes a call again that was interrupted.
func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// failure is the error of an operation.
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

// Close closes the connection, and waits until nobody uses it.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.failure("close", net.ErrClosed)
	}
	c.closed = true
	for _, h := range [...]*half{&c.in, &c.out} {
		h.wake()
		if h.timer != nil {
			h.timer.Stop()
		}
	}
	if c.users > 0 {
		_ = unix.Shutdown(c.fd, unix.SHUT_RD) // for those who hold it
	}
	for c.users > 0 {
		c.unused.Wait()
	}
	watch.remove(c)
	return c.failure("close", os.NewSyscallError("close", unix.Close(c.fd)))
}
