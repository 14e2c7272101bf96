// Parsing of DDP segments and of the messages in them (RFC 5041 §4, RFC 5040 §4).

package iwarptest

import (
	"encoding/binary"
	"fmt"
)

// Opcodes of RDMAP (RFC 5040 §4.3, RFC 7306 §4).
const (
	OpWrite            = 0x0
	OpReadRequest      = 0x1
	OpReadResponse     = 0x2
	OpSend             = 0x3
	OpSendInvalidate   = 0x4
	OpSendSE           = 0x5
	OpSendInvalidateSE = 0x6
	OpTerminate        = 0x7
	OpImmediate        = 0x8
	OpImmediateSE      = 0x9
	OpAtomicRequest    = 0xA
	OpAtomicResponse   = 0xB
)

// A Segment is a ULPDU taken apart.
type Segment struct {
	Tagged, Last bool
	DV, RV       byte // versions of DDP and RDMAP
	Reserved     byte // the reserved bits of both control fields, which should be 0
	Opcode       byte

	STag uint32 // of a tagged segment, like TO
	TO   uint64

	Invalidate  uint32 // Invalidate STag of an untagged segment, like QN, MSN and MO
	QN, MSN, MO uint32

	Payload []byte
	Raw     []byte // the whole ULPDU
}

// Parse takes a ULPDU apart.
func Parse(u []byte) (Segment, error) {
	if len(u) < 2 || len(u) < HeaderLen(u) {
		return Segment{}, fmt.Errorf("ULPDU of %d octets is too short for a DDP segment: % x", len(u), u)
	}
	h := HeaderLen(u)
	s := Segment{
		Tagged: u[0]&0x80 != 0, Last: u[0]&0x40 != 0, DV: u[0] & 3,
		RV: u[1] >> 6, Opcode: u[1] & 0xF, Reserved: u[0]&0x3C | u[1]&0x30,
		Payload: u[h:len(u):len(u)], Raw: u,
	}
	if s.Tagged {
		s.STag, s.TO = binary.BigEndian.Uint32(u[2:]), binary.BigEndian.Uint64(u[6:])
		return s, nil
	}
	s.Invalidate = binary.BigEndian.Uint32(u[2:])
	s.QN, s.MSN, s.MO = binary.BigEndian.Uint32(u[6:]), binary.BigEndian.Uint32(u[10:]), binary.BigEndian.Uint32(u[14:])
	return s, nil
}

// HeaderLen returns the length in octets of the DDP header that u begins with: 14
// tagged, 18 untagged. u is not empty.
func HeaderLen(u []byte) int {
	if u[0]&0x80 != 0 {
		return 14
	}
	return 18
}

// continuedBy reports whether next is the segment that follows s, whose payload is
// all that came of the message so far.
func (s Segment) continuedBy(next Segment) bool {
	if next.Opcode != s.Opcode || next.Tagged != s.Tagged {
		return false
	}
	n := len(s.Payload)
	if s.Tagged {
		return next.STag == s.STag && next.TO == s.TO+uint64(n)
	}
	return next.QN == s.QN && next.MSN == s.MSN && next.MO == s.MO+uint32(n)
}

func (s Segment) String() string {
	if e, ok := s.Terminate(); ok {
		return fmt.Sprintf("Terminate %v", e)
	}
	if s.Tagged {
		return fmt.Sprintf("opcode %x, STag %08x, TO %#x, last %t, %d octets", s.Opcode, s.STag, s.TO, s.Last, len(s.Payload))
	}
	return fmt.Sprintf("opcode %x, QN %d, MSN %d, MO %d, last %t, %d octets", s.Opcode, s.QN, s.MSN, s.MO, s.Last, len(s.Payload))
}

// An ErrorCode is what a Terminate message reports (RFC 5040 §4.8, Figure 9).
type ErrorCode struct{ Layer, EType, Code byte }

// String returns the numbers as the RFCs' tables have them: 1/1/00.
func (e ErrorCode) String() string { return fmt.Sprintf("%d/%d/%02X", e.Layer, e.EType, e.Code) }

// Terminate returns what a Terminate message reports; ok is false for other messages.
func (s Segment) Terminate() (e ErrorCode, ok bool) {
	if s.Tagged || s.Opcode != OpTerminate || len(s.Payload) < 4 {
		return e, false
	}
	return ErrorCode{s.Payload[0] >> 4, s.Payload[0] & 0xF, s.Payload[1]}, true
}

// Read returns what a Read Request asks for; ok is false for other messages.
func (s Segment) Read() (r Read, ok bool) {
	if s.Tagged || s.Opcode != OpReadRequest || len(s.Payload) != 28 {
		return r, false
	}
	b := s.Payload
	return Read{
		SinkSTag:   binary.BigEndian.Uint32(b),
		SinkTO:     binary.BigEndian.Uint64(b[4:]),
		Size:       binary.BigEndian.Uint32(b[12:]),
		SourceSTag: binary.BigEndian.Uint32(b[16:]),
		SourceTO:   binary.BigEndian.Uint64(b[20:]),
	}, true
}
