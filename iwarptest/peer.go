// This file is the peer: what it sends and receives on one connection.

package iwarptest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// DefaultTimeout is the time limit of a Peer that has no other.
const DefaultTimeout = 10 * time.Second

// A Peer is one end of an iWARP connection, under the control of a test. Start-up
// comes first: [Peer.Initiate], or [Peer.Accept] or [Peer.Respond], which set In and
// Out. After that the Peer sends and receives FPDUs.
//
// One goroutine at a time may send, and another one at a time may receive.
type Peer struct {
	// Conn is the connection. Its deadlines are set by the Peer.
	net.Conn

	// In and Out frame what the Peer receives and sends. They may be changed
	// between messages.
	In, Out Framing

	// Timeout limits each wait for the other side, to send or to receive; 0 is
	// DefaultTimeout. A wait that takes longer fails with os.ErrDeadlineExceeded.
	Timeout time.Duration

	// Trickle makes Send and SendRaw write one octet at a time.
	Trickle bool

	r *bufio.Reader
}

// NewPeer returns a Peer that uses one end of a connection.
func NewPeer(nc net.Conn) *Peer {
	p := &Peer{Conn: nc}
	p.r = bufio.NewReader(limitedReader{p})
	return p
}

// A limitedReader reads from a Peer's connection within its Timeout.
type limitedReader struct{ p *Peer }

func (l limitedReader) Read(b []byte) (int, error) {
	_ = l.p.SetReadDeadline(l.p.deadline()) // without deadlines a failing test hangs, no worse
	return l.p.Conn.Read(b)
}

func (p *Peer) deadline() time.Time {
	if p.Timeout > 0 {
		return time.Now().Add(p.Timeout)
	}
	return time.Now().Add(DefaultTimeout)
}

// Read reads octets as they are: of start-up frames or FPDUs, or what is neither.
func (p *Peer) Read(b []byte) (int, error) { return p.r.Read(b) }

// Buffered returns how many octets the Peer has received that have not been read yet.
func (p *Peer) Buffered() int { return p.r.Buffered() }

// Write sends octets as they are, in one write.
func (p *Peer) Write(b []byte) (int, error) {
	_ = p.SetWriteDeadline(p.deadline()) // as for reading
	return p.Conn.Write(b)
}

// Frame returns the FPDUs of ulpdus without sending them. With markers they are
// the next of the stream, and must be sent before others.
func (p *Peer) Frame(ulpdus ...[]byte) (fpdus []byte) {
	for _, u := range ulpdus {
		fpdus = p.Out.appendFPDU(fpdus, u)
	}
	return fpdus
}

// Send sends the FPDUs of ulpdus, all of them in one write.
func (p *Peer) Send(ulpdus ...[]byte) error { return p.SendRaw(p.Frame(ulpdus...)) }

// SendRaw sends octets as they are.
func (p *Peer) SendRaw(octets []byte) error {
	if !p.Trickle {
		_, err := p.Write(octets)
		return err
	}
	for i := range octets {
		if _, err := p.Write(octets[i : i+1]); err != nil {
			return err
		}
	}
	return nil
}

// Next receives the next FPDU and returns its ULPDU. The error is io.EOF for a FIN
// between FPDUs, and io.ErrUnexpectedEOF for a FIN within one; it says what is
// wrong with a CRC, marker or pad that is not right.
func (p *Peer) Next() ([]byte, error) { return p.In.readFPDU(p.r) }

// Rest receives FPDUs up to the FIN and returns their ULPDUs.
func (p *Peer) Rest() (ulpdus [][]byte, err error) {
	for {
		u, err := p.Next()
		if err == io.EOF {
			return ulpdus, nil
		}
		if err != nil {
			return ulpdus, fmt.Errorf("after %d FPDUs: %w", len(ulpdus), err)
		}
		ulpdus = append(ulpdus, u)
	}
}

// NextMessage receives the segments of one message and returns the first one, with
// the payload of all. Each segment has to continue the one before it.
func (p *Peer) NextMessage() (Segment, error) {
	var m Segment
	for n := 0; !m.Last; n++ {
		u, err := p.Next()
		if err != nil {
			return m, err
		}
		s, err := Parse(u)
		if err != nil {
			return m, err
		}
		if n == 0 {
			m = s
			continue
		}
		if !m.continuedBy(s) {
			return m, fmt.Errorf("segment %d (%v) does not continue its message (%v)", n, s, m)
		}
		m.Payload = append(m.Payload, s.Payload...)
		m.Last = s.Last
	}
	return m, nil
}

// CloseWrite sends a FIN and leaves the other direction open, on a connection that
// can do so: TCP, TLS, a Unix socket, a Pipe.
func (p *Peer) CloseWrite() error {
	half, ok := p.Conn.(interface{ CloseWrite() error })
	if !ok {
		return fmt.Errorf("a %T can't close one direction: %w", p.Conn, errors.ErrUnsupported)
	}
	return half.CloseWrite()
}

// Reset ends the connection with a TCP RST, on a connection that can do so: TCP or
// a Pipe.
func (p *Peer) Reset() error {
	lingering, ok := p.Conn.(interface{ SetLinger(seconds int) error })
	if !ok {
		return fmt.Errorf("a %T can't be reset: %w", p.Conn, errors.ErrUnsupported)
	}
	if err := lingering.SetLinger(0); err != nil {
		return err
	}
	return p.Close()
}
