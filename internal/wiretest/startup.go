// This file makes start-up frames (RFC 5044 §7.1.1, RFC 6581 §9).

package wiretest

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The Keys of the two start-up frames.
const (
	RequestKey = "MPA ID Req Frame"
	ReplyKey   = "MPA ID Rep Frame"
)

// Bits of octet 16 of a start-up frame.
const (
	FlagMarkers  = 0x80
	FlagCRC      = 0x40
	FlagReject   = 0x20
	FlagEnhanced = 0x10
)

// StartFrame is a start-up frame with whatever it is told to hold.
func StartFrame(key string, flags, revision byte, private ...byte) []byte {
	b := append([]byte(key), flags, revision)
	b = binary.BigEndian.AppendUint16(b, uint16(len(private)))
	return append(b, private...)
}

// A Startup is what a Peer says in its start-up frame.
type Startup struct {
	Markers  bool // wants markers in what it receives
	CRC      bool
	Enhanced []byte // the 4 octets of RFC 6581 §9; revision 2 then, otherwise 1
	Private  []byte

	Consortium bool // revision 0
}

func (s Startup) frame(key string) []byte {
	flags, revision := byte(0), byte(1)
	if s.Markers {
		flags |= FlagMarkers
	}
	if s.CRC {
		flags |= FlagCRC
	}
	if s.Enhanced != nil {
		flags, revision = flags|FlagEnhanced, 2
	}
	if s.Consortium {
		revision = 0
	}
	return StartFrame(key, flags, revision, append(append([]byte(nil), s.Enhanced...), s.Private...)...)
}

// Initiate sends a Request and reads the Reply, which it returns.
func (p *Peer) Initiate(s Startup) (reply []byte, err error) {
	if _, err := p.Write(s.frame(RequestKey)); err != nil {
		return nil, err
	}
	if reply, err = p.StartFrame(ReplyKey); err != nil {
		return reply, err
	}
	p.terms(s, reply)
	return reply, nil
}

// Respond reads a Request, which it returns, and sends a Reply.
func (p *Peer) Respond(s Startup) (request []byte, err error) {
	if request, err = p.StartFrame(RequestKey); err != nil {
		return request, err
	}
	p.terms(s, request)
	_, err = p.Write(s.frame(ReplyKey))
	return request, err
}

// terms are those of RFC 5044 §7.1.1: markers each way as the receiver asked,
// CRC if anybody asked.
func (p *Peer) terms(own Startup, other []byte) {
	crc := own.CRC || other[16]&FlagCRC != 0
	p.In = Framing{CRC: crc, Markers: own.Markers}
	p.Out = Framing{CRC: crc, Markers: other[16]&FlagMarkers != 0}
}

// StartFrame reads a start-up frame.
func (p *Peer) StartFrame(key string) ([]byte, error) {
	b := make([]byte, 20)
	if n, err := io.ReadFull(p.r, b); err != nil {
		return b[:n], err
	}
	if string(b[:16]) != key {
		return b, fmt.Errorf("key %q, expected %q", b[:16], key)
	}
	private := make([]byte, binary.BigEndian.Uint16(b[18:]))
	n, err := io.ReadFull(p.r, private)
	return append(b, private[:n]...), err
}
