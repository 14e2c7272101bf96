// This file is the options of sockets: buffers and congestion control.

package cm

import (
	"errors"
	"fmt"
	"math"
	"net"
	"syscall"
)

// A Socket holds TCP options that decide how fast a connection can be, and that
// the system otherwise chooses. The zero value leaves them all to the system;
// docs/performance.md says when another value pays.
//
// Dial and Listen set them before the connection begins, because TCP's handshake
// limits how large windows may become. Connect and NewListener set them on existing
// sockets; a program that opens those should set them from the beginning, with
// Control.
type Socket struct {
	// Congestion names the congestion control: reno, cubic or bbr, say. Empty is
	// the system's. Only Linux lets a program choose; elsewhere a name is an error
	// that wraps errors.ErrUnsupported.
	Congestion string

	// SendBuffer limits the octets that were sent and are not acknowledged,
	// ReceiveBuffer those that have arrived and were not read. 0 leaves the size to
	// the system, which adapts it to the path. Another value is fixed, and limits
	// the connection to so many octets in each round trip. More than the system
	// allows is an error.
	SendBuffer, ReceiveBuffer int
}

// Control sets the options of a socket that is not connected and does not listen
// yet. It is for the field Control of net.Dialer and net.ListenConfig. Connections
// inherit the options of their listener.
func (s Socket) Control(_, _ string, rc syscall.RawConn) error {
	if s == (Socket{}) {
		return nil
	}
	if err := s.check(); err != nil {
		return err
	}
	var err error
	cerr := rc.Control(func(fd uintptr) { err = s.set(fd) })
	return errors.Join(cerr, err)
}

// Apply sets the options of an existing socket, a *net.TCPConn or *net.TCPListener,
// say. Connections that a listener accepts later inherit them. If Apply fails, some
// options may have been set.
func (s Socket) Apply(c syscall.Conn) error {
	if s == (Socket{}) {
		return nil
	}
	rc, err := c.SyscallConn()
	if err == nil {
		err = s.Control("", "", rc)
	}
	if err != nil {
		return fmt.Errorf("cm: socket: %w", err)
	}
	return nil
}

// SocketOf returns the options that a socket has now. Those that the system does not
// report are zero.
func SocketOf(c syscall.Conn) (Socket, error) {
	var s Socket
	rc, err := c.SyscallConn()
	if err == nil {
		cerr := rc.Control(func(fd uintptr) { s, err = get(fd) })
		err = errors.Join(cerr, err)
	}
	if err != nil {
		return Socket{}, fmt.Errorf("cm: socket: %w", err)
	}
	return s, nil
}

// check returns an error for sizes that no system accepts.
func (s *Socket) check() error {
	for _, b := range [...]struct {
		what string
		size int
	}{{"send buffer", s.SendBuffer}, {"receive buffer", s.ReceiveBuffer}} {
		if b.size < 0 || b.size > math.MaxInt32 {
			return fmt.Errorf("%s of %d octets: expected 0 (the system's choice) to %d", b.what, b.size, math.MaxInt32)
		}
	}
	return nil
}

func (s *Socket) set(fd uintptr) error {
	if s.Congestion != "" {
		if err := setCongestion(fd, s.Congestion); err != nil {
			return err
		}
	}
	if s.SendBuffer > 0 {
		if err := setBuffer(fd, sendBuffer, s.SendBuffer); err != nil {
			return err
		}
	}
	if s.ReceiveBuffer > 0 {
		return setBuffer(fd, receiveBuffer, s.ReceiveBuffer)
	}
	return nil
}

func get(fd uintptr) (s Socket, err error) {
	if s.SendBuffer, err = getBuffer(fd, sendBuffer); err != nil {
		return s, err
	}
	if s.ReceiveBuffer, err = getBuffer(fd, receiveBuffer); err != nil {
		return s, err
	}
	s.Congestion, err = getCongestion(fd)
	return s, err
}

// A bufferKind is one of a socket's two buffers.
type bufferKind struct {
	name   string
	option int    // of SOL_SOCKET
	limit  string // where the system says how large the buffer may be
}

// setBuffer sets the size of a buffer. It fails if the system grants less, which most
// systems do silently.
func setBuffer(fd uintptr, kind bufferKind, octets int) error {
	err := setBufferOption(fd, kind, octets)
	got := octets
	if err == nil {
		got, err = getBuffer(fd, kind)
	}
	return kind.granted(octets, got, err)
}

// granted returns the error, if any, when octets were asked for and the system granted
// got, or failed with err.
func (kind bufferKind) granted(octets, got int, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s of %d octets: %w; %s is the limit", kind.name, octets, err, kind.limit)
	case got < octets:
		return fmt.Errorf("%s of %d octets: the system allows %d; ask for less, or raise the limit: %s", kind.name, octets, got, kind.limit)
	}
	return nil
}

// socketBelow returns the socket that nc is or wraps; nil if there is none.
func socketBelow(nc net.Conn) syscall.Conn {
	for {
		switch c := nc.(type) {
		case syscall.Conn:
			return c
		case interface{ NetConn() net.Conn }:
			nc = c.NetConn()
		default:
			return nil
		}
	}
}

// applyBelow applies s to the socket that nc is or wraps.
func (s Socket) applyBelow(nc net.Conn) error {
	if s == (Socket{}) {
		return nil
	}
	c := socketBelow(nc)
	if c == nil {
		return errNoSocket
	}
	return s.Apply(c)
}

var errNoSocket = errors.New("cm: socket: the connection has no socket; leave Socket empty")
