// The transport of a TCP connection on Linux: attempts that never wait, by readv
// and sendmsg on the non-blocking socket, and the runtime's network poller to
// wait in between. Package turns decides who reads and who waits.
//
// The poller is edge-triggered, and RawConn forgets that the socket was ready
// when it is entered. So an attempt that may be followed by a wait is made
// within RawConn, which waits when the attempt reports failure.

package mpa

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/internal/polled"
	"github.com/weft-rdma/weft/mpa/internal/fpdu"
	"github.com/weft-rdma/weft/mpa/internal/socket"
	"github.com/weft-rdma/weft/mpa/internal/turns"
)

// A tcp has three users at a time: the writer; the holder of the receiving half, which is
// the reader or a visitor; and the goroutine that waits for octets, the reader or the leader.
type tcp struct {
	nc    tcpConn
	rc    syscall.RawConn
	stats *counters
	turns *turns.Turns

	// The writer's, for tryWrite.
	writeFn func(fd uintptr) bool
	batch   *fpdu.Batch
	guard   Guard
	wait    bool
	written uint64 // frames, before this flush
	wvec    socket.Vector
	werr    error

	// Of the holder of the receiving half, for Try and tryLook.
	ahead   *readAhead
	lookFn  func(fd uintptr)
	looks   int // that found nothing, since the last that did
	seen    int
	lookErr error

	// The reader's, for tryPlace and tryPeek.
	placeFn func(fd uintptr) bool
	n       int
	rerr    error
	sink    Sink
	placing *placement // if sink is set
	behind  []byte     // what follows what is placed
	rvec    socket.Vector
	found   bool
	peekFn  func(fd uintptr)
	peekAt  int
	peeked  []byte
	noPeeks bool // the system does not peek at a position
}

// newDirect returns the fast path for nc, or nil if there is none.
func newDirect(nc net.Conn, stats *counters) direct {
	conn := asTCP(nc)
	if conn == nil {
		return nil
	}
	rc, err := conn.SyscallConn()
	if err != nil {
		return nil
	}
	yield := socket.Yield
	if !socket.Alone() {
		yield = nil
	}
	return newTCP(conn, rc, stats, yield)
}

// asTCP is nc if that is a TCP connection, or nil.
func asTCP(nc net.Conn) tcpConn {
	switch t := nc.(type) {
	case *net.TCPConn:
		return t
	case *polled.Conn:
		return t
	}
	return nil
}

func newTCP(nc tcpConn, rc syscall.RawConn, stats *counters, yield func()) *tcp {
	s := &tcp{nc: nc, rc: rc, stats: stats}
	s.turns = turns.New(s, yield)
	s.writeFn, s.placeFn, s.lookFn, s.peekFn = s.tryWrite, s.tryPlace, s.tryLook, s.tryPeek
	return s
}

func (s *tcp) share() *turns.Turns { return s.turns }
func (s *tcp) close()              { s.turns.Close() }

// --- turns.Source

// Read waits for octets; it is the reader's, and the leader's.
func (s *tcp) Read(step func(fd uintptr) bool) error { return s.rc.Read(step) }
func (s *tcp) Readable(fd uintptr) bool              { return socket.Readable(fd) }
func (s *tcp) SetReadDeadline(t time.Time) error     { return s.nc.SetReadDeadline(t) }

// --- The way out

func (s *tcp) flush(b *fpdu.Batch, g Guard, wait bool) error {
	s.batch, s.guard, s.wait, s.werr = b, g, wait, nil
	s.written = b.Written()
	if err := s.rc.Write(s.writeFn); err != nil {
		return err
	}
	return s.werr
}

// tryWrite writes until the batch is empty or the socket takes no more. False
// asks RawConn to wait and to call again.
func (s *tcp) tryWrite(fd uintptr) bool {
	for !s.batch.Empty() {
		if s.guard != nil && !s.guard.Acquire() {
			s.werr = ErrRevoked
			return true
		}
		n, errno := s.wvec.Write(fd, s.batch.Pending())
		var fault *MemoryError
		if errno == unix.EFAULT {
			fault = unreadable(s.batch)
		}
		if s.guard != nil {
			s.guard.Release()
		}
		switch errno {
		case 0:
			s.stats.writes.Add(1)
			s.batch.Wrote(n)
		case unix.EAGAIN:
			// Flush returns when a frame has left, so that it can be accounted for.
			return !s.wait || s.batch.Written() > s.written
		default:
			if s.werr = os.NewSyscallError("writev", errno); fault != nil {
				s.werr = fault
			}
			return true
		}
	}
	return true
}

// unreadable says which frame the system could not read.
func unreadable(b *fpdu.Batch) *MemoryError {
	if frame, err := b.Unreadable(); err != nil {
		return &MemoryError{Frame: frame, Err: err}
	}
	return nil
}

// --- The way in

func (s *tcp) read(a *readAhead, alone bool) (int, error) {
	if alone {
		s.sink, s.placing, s.behind = nil, nil, a.room()
		return s.place()
	}
	s.ahead = a
	return s.turns.Read(s)
}

// Try reads once (see [turns.Reader]).
func (s *tcp) Try(fd uintptr) (int, error) {
	n, errno := socket.Read(fd, s.ahead.room())
	if errno == unix.EAGAIN {
		return 0, turns.ErrNothing
	}
	return s.got(n, errno)
}

// Rest gives back the buffer, as the wait may be long.
func (s *tcp) Rest() { s.ahead.rest() }

// got is the result of a read that found octets, their end, or an error.
func (s *tcp) got(n int, errno syscall.Errno) (int, error) {
	switch {
	case errno != 0:
		return 0, os.NewSyscallError("readv", errno)
	case n == 0:
		return 0, io.EOF
	}
	s.stats.reads.Add(1)
	return n, nil
}

func (s *tcp) look(a *readAhead) (int, error) {
	s.ahead, s.seen, s.lookErr = a, 0, nil
	if err := s.rc.Control(s.lookFn); err != nil {
		return 0, nil // it is closed, which Receive reports
	}
	return s.seen, s.lookErr
}

// looksToYield is the number of looks without octets after which a visitor lets other threads
// run: the peer may be waiting for this processor. One on another processor answers sooner.
const looksToYield = 16

// tryLook reads once, for a visitor.
func (s *tcp) tryLook(fd uintptr) {
	n, err := s.Try(fd)
	if err != turns.ErrNothing {
		s.seen, s.lookErr, s.looks = n, err, 0
	} else if s.looks++; s.looks%looksToYield == 0 {
		socket.Yield()
	}
}

func (s *tcp) readWindows(sink Sink, p *placement, more []byte) (int, error) {
	s.sink, s.placing, s.behind = sink, p, more
	return s.place()
}

func (s *tcp) peek(at int, b []byte) bool {
	if s.noPeeks {
		return false
	}
	s.peekAt, s.peeked, s.found = at, b, false
	if err := s.rc.Control(s.peekFn); err != nil {
		return false // it is closed, which the next read reports
	}
	return s.found
}

// tryPeek peeks once.
func (s *tcp) tryPeek(fd uintptr) {
	n, errno := socket.PeekAt(fd, s.peekAt, s.peeked)
	s.found = n == len(s.peeked)
	s.noPeeks = errno == unix.EOPNOTSUPP
}

// place reads in the middle of a ULPDU that is being placed, which is the reader's alone.
func (s *tcp) place() (int, error) {
	defer s.turns.Hurried()
	for s.n, s.rerr = 0, nil; ; {
		// Each time anew, for a deadline or the end of the connection.
		if err := s.rc.Read(s.placeFn); err != nil {
			return 0, err
		}
		if s.found {
			return s.n, s.rerr
		}
	}
}

// tryPlace reads once. False asks RawConn to wait and to call again; true without anything found
// has place try again.
func (s *tcp) tryPlace(fd uintptr) bool {
	s.found = s.placeOnce(fd)
	return s.found || s.turns.Hurry()
}

// placeOnce reads once. It reports false if there were no octets.
func (s *tcp) placeOnce(fd uintptr) bool {
	if s.sink == nil {
		n, errno := socket.Read(fd, s.behind)
		if errno != unix.EAGAIN {
			s.n, s.rerr = s.got(n, errno)
		}
		return errno != unix.EAGAIN
	}
	pieces, err := s.placing.place(s.sink, s.behind)
	if err != nil {
		s.rerr = windowError{err}
		return true
	}
	defer s.placing.release(s.sink)
	n, errno := s.rvec.Read(fd, pieces)
	switch errno {
	case unix.EAGAIN:
		return false
	case unix.EFAULT:
		s.rerr = windowError{s.placing.unwritable(s.sink)}
	default:
		s.n, s.rerr = s.got(n, errno)
	}
	return true
}
