// This file takes DDP segments apart (RFC 5041 §4, RFC 5040 §4.1).

package wiretest

import (
	"encoding/binary"
	"fmt"
)

// A Segment is a ULPDU taken apart.
type Segment struct {
	Tagged, Last bool
	DV, RV       byte
	Reserved     byte // the reserved bits of both control fields, which are to be 0
	Opcode       byte

	STag uint32 // of tagged segments
	TO   uint64

	Invalidate   uint32 // of untagged segments
	QN, MSN, MO  uint32
	Payload, Raw []byte
}

// Parse takes a ULPDU apart.
func Parse(u []byte) (Segment, error) {
	if len(u) < 2 || len(u) < HeaderLen(u) {
		return Segment{}, fmt.Errorf("ULPDU of %d octets is no DDP segment: % x", len(u), u)
	}
	s := Segment{
		Tagged: u[0]&0x80 != 0, Last: u[0]&0x40 != 0, DV: u[0] & 3,
		RV: u[1] >> 6, Opcode: u[1] & 0xF, Reserved: u[0]&0x3C | u[1]&0x30,
		Payload: u[HeaderLen(u):], Raw: u,
	}
	if s.Tagged {
		s.STag, s.TO = binary.BigEndian.Uint32(u[2:]), binary.BigEndian.Uint64(u[6:])
		return s, nil
	}
	s.Invalidate = binary.BigEndian.Uint32(u[2:])
	s.QN, s.MSN, s.MO = binary.BigEndian.Uint32(u[6:]), binary.BigEndian.Uint32(u[10:]), binary.BigEndian.Uint32(u[14:])
	return s, nil
}

// HeaderLen is the length of the DDP header that u begins with, in octets.
func HeaderLen(u []byte) int {
	if u[0]&0x80 != 0 {
		return 14
	}
	return 18
}

func (s Segment) String() string {
	if s.Tagged {
		return fmt.Sprintf("opcode %x, STag %08x, TO %#x, last %t, %d octets", s.Opcode, s.STag, s.TO, s.Last, len(s.Payload))
	}
	return fmt.Sprintf("opcode %x, QN %d, MSN %d, MO %d, last %t, %d octets", s.Opcode, s.QN, s.MSN, s.MO, s.Last, len(s.Payload))
}
