// This file parses start-up frames.

package wire

import (
	"encoding/binary"
	"fmt"
)

const (
	requestKey = "MPA ID Req Frame"
	replyKey   = "MPA ID Rep Frame"

	startupHeader  = 20
	maxPrivateData = 512
	notNegotiated  = 0x3fff // IRD or ORD: leave it to the peer (RFC 6581 §9.1)
)

// A Startup is an MPA Request or Reply Frame (RFC 5044 §7.1.1, RFC 6581 §6).
type Startup struct {
	Packet                 int // that completed it
	Markers, CRC, Rejected bool
	Enhanced               bool // the S bit, at revision 2
	Reserved               byte // the bits that must be zero
	Revision               byte
	PrivateData            []byte // the enhanced frame's four octets included

	// Of an enhanced frame only (RFC 6581 §9):
	IRD, ORD                   uint16
	PeerToPeer                 bool
	RTRSend, RTRWrite, RTRRead bool
}

// parseStartup reads the frame at the beginning of b and says how long it is.
func parseStartup(b []byte, key string) (Startup, int, error) {
	if len(b) < startupHeader {
		return Startup{}, 0, fmt.Errorf("%d octets, a start-up frame has at least %d", len(b), startupHeader)
	}
	if string(b[:16]) != key {
		return Startup{}, 0, fmt.Errorf("key %q instead of %q", b[:16], key)
	}
	flags, length := b[16], int(binary.BigEndian.Uint16(b[18:]))
	if length > maxPrivateData {
		return Startup{}, 0, fmt.Errorf("%d octets of private data, at most %d are allowed", length, maxPrivateData)
	}
	if len(b) < startupHeader+length {
		return Startup{}, 0, fmt.Errorf("the frame ends after %d of %d octets of private data", len(b)-startupHeader, length)
	}
	s := Startup{
		Markers: flags&0x80 != 0, CRC: flags&0x40 != 0, Rejected: flags&0x20 != 0,
		Reserved: flags & 0x1f, Revision: b[17],
		PrivateData: b[startupHeader : startupHeader+length],
	}
	if s.Revision >= 2 {
		s.Enhanced, s.Reserved = flags&0x10 != 0, flags&0x0f
	}
	if s.Enhanced {
		if length < 4 {
			return Startup{}, 0, fmt.Errorf("an enhanced frame with %d octets of private data, it needs 4", length)
		}
		ird, ord := binary.BigEndian.Uint16(s.PrivateData), binary.BigEndian.Uint16(s.PrivateData[2:])
		s.IRD, s.ORD = ird&0x3fff, ord&0x3fff
		s.PeerToPeer, s.RTRSend = ird&0x8000 != 0, ird&0x4000 != 0
		s.RTRWrite, s.RTRRead = ord&0x8000 != 0, ord&0x4000 != 0
	}
	return s, startupHeader + length, nil
}
