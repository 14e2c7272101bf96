// Start-up frames (RFC 5044 §7.1.1, RFC 6581 §9).

package iwarptest

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

// Flags of a start-up frame, its octet 16.
const (
	FlagMarkers  = 0x80
	FlagCRC      = 0x40
	FlagReject   = 0x20
	FlagEnhanced = 0x10 // private data begins with the 4 octets of RFC 6581 §9
)

// StartFrame returns a start-up frame with these contents, valid or not.
func StartFrame(key string, flags, revision byte, private ...byte) []byte {
	b := append([]byte(key), flags, revision)
	b = binary.BigEndian.AppendUint16(b, uint16(len(private)))
	return append(b, private...)
}

// A Startup is what a Peer says in its start-up frame.
type Startup struct {
	Markers bool // asks for markers in what the Peer receives
	CRC     bool // asks for CRCs both ways
	Private []byte

	// Enhanced are the 4 octets of RFC 6581 §9: IRD, then ORD, of 14 bits each,
	// with the control flags A and B above the one, C and D above the other. If it
	// is nil the frame is of revision 1, otherwise of revision 2.
	Enhanced []byte

	// Consortium makes the frame one of revision 0, the RDMA Consortium's.
	Consortium bool
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

// Initiate makes the Peer the Initiator: it sends a Request frame and reads the
// Reply, which it returns. The Initiator has to send the first FPDU (RFC 5044 §7.1.2
// rule 4).
func (p *Peer) Initiate(s Startup) (reply []byte, err error) {
	if _, err := p.Write(s.frame(RequestKey)); err != nil {
		return nil, err
	}
	if reply, err = p.ReadStartFrame(ReplyKey); err != nil {
		return reply, err
	}
	p.setFraming(s, reply)
	return reply, nil
}

// Respond makes the Peer the Responder: it reads a Request frame, which it returns,
// and sends s in the Reply.
func (p *Peer) Respond(s Startup) (request []byte, err error) {
	if request, err = p.ReadStartFrame(RequestKey); err != nil {
		return request, err
	}
	return request, p.reply(s, request)
}

// Accept makes the Peer a Responder that agrees to everything: it reads a Request
// frame, which it returns, and sends a Reply of the same revision, with CRC and
// markers as asked for, IRD and ORD that match, and no private data.
func (p *Peer) Accept() (request []byte, err error) {
	if request, err = p.ReadStartFrame(RequestKey); err != nil {
		return request, err
	}
	flags := request[16]
	s := Startup{Markers: flags&FlagMarkers != 0, CRC: flags&FlagCRC != 0, Consortium: request[17] == 0}
	if request[17] == 2 && flags&FlagEnhanced != 0 && len(request) >= 24 {
		s.Enhanced = mirror([4]byte(request[20:24]))
	}
	return request, p.reply(s, request)
}

// mirror exchanges IRD and ORD, and leaves the control flags where they are.
func mirror(e [4]byte) []byte {
	const flags = 0xC0
	return []byte{e[0]&flags | e[2]&^flags, e[3], e[2]&flags | e[0]&^flags, e[1]}
}

func (p *Peer) reply(s Startup, request []byte) error {
	p.setFraming(s, request)
	_, err := p.Write(s.frame(ReplyKey))
	return err
}

// setFraming applies RFC 5044 §7.1.1: markers each way as the receiver asked, CRC if
// either side asked.
func (p *Peer) setFraming(own Startup, other []byte) {
	crc := own.CRC || other[16]&FlagCRC != 0
	p.In = Framing{CRC: crc, Markers: own.Markers}
	p.Out = Framing{CRC: crc, Markers: other[16]&FlagMarkers != 0}
}

// ReadStartFrame reads a start-up frame with the key expected. It leaves In and Out
// alone; a test that answers by hand, with [StartFrame], sets them.
func (p *Peer) ReadStartFrame(key string) ([]byte, error) {
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
