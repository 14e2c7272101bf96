package wiretest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Patience is how long a Peer or a Side waits for any one thing before its test has
// failed.
const Patience = 10 * time.Second

// A Peer is the other end of a stream, made by hand. One goroutine at a time
// may send and one receive.
type Peer struct {
	net.Conn
	In, Out Framing

	Dribble bool // every octet is a write of its own

	r *bufio.Reader
}

// NewPeer makes a Peer of one end of a connection.
func NewPeer(nc net.Conn) *Peer {
	p := &Peer{Conn: nc}
	p.r = bufio.NewReader(p)
	return p
}

// Read reads what the other end sends, and waits no longer than Patience for it.
func (p *Peer) Read(b []byte) (int, error) {
	_ = p.SetReadDeadline(time.Now().Add(Patience)) // without it a failing test hangs: no worse
	return p.Conn.Read(b)
}

// Write sends octets as they are. The other end has to take them within Patience.
func (p *Peer) Write(b []byte) (int, error) {
	_ = p.SetWriteDeadline(time.Now().Add(Patience)) // as above
	return p.Conn.Write(b)
}

// Frame makes the FPDUs of ulpdus, the next ones of the stream.
func (p *Peer) Frame(ulpdus ...[]byte) (fpdus []byte) {
	for _, u := range ulpdus {
		fpdus = p.Out.Append(fpdus, u)
	}
	return fpdus
}

// Send sends the FPDUs of ulpdus as one write.
func (p *Peer) Send(ulpdus ...[]byte) error { return p.Raw(p.Frame(ulpdus...)) }

// Raw sends octets as they are.
func (p *Peer) Raw(octets []byte) error {
	if !p.Dribble {
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

// Next reads the next FPDU and returns its ULPDU; io.EOF is a FIN before it.
func (p *Peer) Next() ([]byte, error) { return p.In.Read(p.r) }

// Rest reads FPDUs up to the FIN and returns their ULPDUs.
func (p *Peer) Rest() (ulpdus [][]byte, err error) {
	for {
		u, err := p.Next()
		if errors.Is(err, io.EOF) {
			return ulpdus, nil
		}
		if err != nil {
			return ulpdus, fmt.Errorf("after %d FPDUs: %w", len(ulpdus), err)
		}
		ulpdus = append(ulpdus, u)
	}
}

// Message reads the segments of one message and returns the first with the
// payload of all. They have to follow each other without a gap.
func (p *Peer) Message() (Segment, error) {
	var m Segment
	for n := 0; ; n++ {
		u, err := p.Next()
		if err != nil {
			return m, err
		}
		s, err := Parse(u)
		if err != nil {
			return m, err
		}
		off := len(m.Payload)
		switch {
		case n == 0:
			m = s
		case s.Tagged && (s.STag != m.STag || s.TO != m.TO+uint64(off)),
			!s.Tagged && (s.QN != m.QN || s.MSN != m.MSN || s.MO != uint32(off)), s.Opcode != m.Opcode:
			return m, fmt.Errorf("segment %d: %v does not continue %v", n, s, m)
		default:
			m.Payload = append(m.Payload, s.Payload...)
		}
		if s.Last {
			m.Last = true
			return m, nil
		}
	}
}

// CloseWrite ends the Peer's half of the connection.
func (p *Peer) CloseWrite() error {
	return p.Conn.(interface{ CloseWrite() error }).CloseWrite()
}

// Reset ends the connection at once.
func (p *Peer) Reset() error {
	if err := p.Conn.(interface{ SetLinger(int) error }).SetLinger(0); err != nil {
		return err
	}
	return p.Conn.Close()
}
