package cm

import (
	"errors"
	"fmt"
	"math"
	"net"
	"syscall"
)

// A Socket holds the options of TCP that decide how fast a connection can be and
// that the system would otherwise choose. The zero value leaves them all to the
// system; docs/performance.md says when another one pays.
//
// Dial and Listen set them before the connection begins, as TCP settles in its
// handshake how large windows may become. Connect and NewListener, which get
// sockets that exist, set them there; whoever opens sockets for them does better
// to set them from the beginning, with Control.
type Socket struct {
	// Congestion names the congestion control of what is sent: reno, cubic or
	// bbr, say. Empty leaves the system's. Only Linux lets a program choose;
	// elsewhere a name is an error that is errors.ErrUnsupported.
	Congestion string

	// SendBuffer and ReceiveBuffer are the octets that the system may keep of
	// what was sent and is not acknowledged, or has arrived and was not read. 0
	// leaves them to the system, which makes them as large as the path needs;
	// another value is fixed, and bounds the connection to so many octets in
	// each round trip. More than the system allows is an error.
	SendBuffer, ReceiveBuffer int
}

// Control sets the options of a socket that is neither connected nor listens
// yet: it has the form of the Control of net.Dialer and net.ListenConfig. The
// connections of a listener have its options.
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

// Apply sets the options of a socket that exists, a *net.TCPConn or
// *net.TCPListener, say. Of a listener they are those of the connections that
// begin from then on. When it fails some may have been set.
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

// SocketOf tells the options that a socket has at present, in the units of
// Socket. Those that the system does not tell are zero.
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

// check refuses what no system could be asked for.
func (s *Socket) check() error {
	for _, b := range [...]struct {
		what string
		size int
	}{{"send buffer", s.SendBuffer}, {"receive buffer", s.ReceiveBuffer}} {
		if b.size < 0 || b.size > math.MaxInt32 {
			return fmt.Errorf("%s of %d octets: it is 0, for the system's choice, to %d", b.what, b.size, math.MaxInt32)
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
	limit  string // where the system says how large it may be
}

// setBuffer makes a buffer so large, or fails: systems that allow less mostly
// do not say so.
func setBuffer(fd uintptr, kind bufferKind, octets int) error {
	err := setBufferOption(fd, kind, octets)
	got := octets
	if err == nil {
		got, err = getBuffer(fd, kind)
	}
	return kind.granted(octets, got, err)
}

// granted is the error, if there is one, when so many octets were asked for and the
// system answered with others, or with an error.
func (kind bufferKind) granted(octets, got int, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s of %d octets: %w; %s is the limit", kind.name, octets, err, kind.limit)
	case got < octets:
		return fmt.Errorf("%s of %d octets: the system allows %d, which %s says: ask for less, or raise that", kind.name, octets, got, kind.limit)
	}
	return nil
}

// socketBelow is the socket that a connection is made of, or nil.
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

// applyBelow applies s to what nc is made of.
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

var errNoSocket = errors.New("cm: socket: there is no socket below to have options: leave Socket empty")
