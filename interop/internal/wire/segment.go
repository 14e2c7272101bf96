// This file parses DDP segments.

package wire

import (
	"encoding/binary"
	"fmt"
)

// An Opcode is RDMAP's (RFC 5040 §4.3, RFC 7306 §4).
type Opcode byte

const (
	Write            Opcode = 0x0
	ReadRequest      Opcode = 0x1
	ReadResponse     Opcode = 0x2
	Send             Opcode = 0x3
	SendInvalidate   Opcode = 0x4
	SendSE           Opcode = 0x5
	SendSEInvalidate Opcode = 0x6
	Terminate        Opcode = 0x7
	Immediate        Opcode = 0x8
	ImmediateSE      Opcode = 0x9
	AtomicRequest    Opcode = 0xa
	AtomicResponse   Opcode = 0xb
)

var opcodeNames = [...]string{
	"RDMA Write", "RDMA Read Request", "RDMA Read Response", "Send", "Send with Invalidate",
	"Send with Solicited Event", "Send with Solicited Event and Invalidate", "Terminate",
	"Immediate Data", "Immediate Data with Solicited Event", "Atomic Request", "Atomic Response",
}

func (o Opcode) String() string {
	if int(o) < len(opcodeNames) {
		return opcodeNames[o]
	}
	return fmt.Sprintf("opcode %#x", byte(o))
}

// tagged reports whether the opcode uses the tagged buffer model.
func (o Opcode) tagged() bool { return o == Write || o == ReadResponse }

// queue is the DDP queue that an untagged opcode uses.
func (o Opcode) queue() uint32 {
	switch o {
	case ReadRequest, AtomicRequest:
		return 1
	case Terminate:
		return 2
	case AtomicResponse:
		return 3
	}
	return 0
}

func (o Opcode) invalidates() bool { return o == SendInvalidate || o == SendSEInvalidate }

// fixed is the payload length of opcodes that have only one, else -1.
func (o Opcode) fixed() int {
	switch o {
	case ReadRequest:
		return 28
	case Immediate, ImmediateSE:
		return 8
	case AtomicRequest:
		return 52
	case AtomicResponse:
		return 12
	}
	return -1
}

// A Segment is a DDP Segment with its RDMAP control (RFC 5041 §4, RFC 5040 §4).
type Segment struct {
	Tagged, Last bool
	DV, RV       byte
	Reserved     byte // the reserved bits of both control octets, or-ed
	Opcode       Opcode
	STag         uint32 // tagged
	TO           uint64 // tagged
	Invalidate   uint32 // untagged: Invalidate STag, or reserved
	QN, MSN, MO  uint32 // untagged
	Payload      []byte
}

func parseSegment(u []byte) (Segment, error) {
	if len(u) < 2 {
		return Segment{}, fmt.Errorf("a ULPDU of %d octets", len(u))
	}
	s := Segment{
		Tagged: u[0]&0x80 != 0, Last: u[0]&0x40 != 0, DV: u[0] & 0x03,
		RV: u[1] >> 6, Opcode: Opcode(u[1] & 0x0f),
		Reserved: u[0]&0x3c | u[1]&0x30,
	}
	header := 18
	if s.Tagged {
		header = 14
	}
	if len(u) < header {
		return s, fmt.Errorf("a ULPDU of %d octets, its header alone has %d", len(u), header)
	}
	if s.Tagged {
		s.STag, s.TO = binary.BigEndian.Uint32(u[2:]), binary.BigEndian.Uint64(u[6:])
	} else {
		s.Invalidate = binary.BigEndian.Uint32(u[2:])
		s.QN, s.MSN, s.MO = binary.BigEndian.Uint32(u[6:]), binary.BigEndian.Uint32(u[10:]), binary.BigEndian.Uint32(u[14:])
	}
	s.Payload = u[header:]
	return s, nil
}
