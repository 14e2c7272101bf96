// Package fpdutest is MPA's framing once more, octet by octet as RFC 5044 words it, slow and
// plain: what the fast code is compared with.
package fpdutest

import "encoding/binary"

// CRC is CRC32c bit by bit.
type CRC uint32

// NewCRC is that of no octets.
func NewCRC() CRC { return ^CRC(0) }

// addIf skips the sum if it is not needed.
func (c *CRC) addIf(use bool, b byte) {
	if use {
		c.Add(b)
	}
}

// Add adds an octet.
func (c *CRC) Add(b byte) {
	*c ^= CRC(b)
	for range 8 {
		if *c&1 != 0 {
			*c = *c>>1 ^ 0x82F63B78
		} else {
			*c >>= 1
		}
	}
}

// Sum is the value of the CRC field.
func (c CRC) Sum() uint32 { return uint32(^c) }

// A Stream is one direction of a stream.
type Stream struct {
	Markers, CRC bool
	Pos          uint64
}

// Send is the wire octets of one ULPDU.
func (s *Stream) Send(ulpdu []byte) []byte {
	var wire []byte
	sum := NewCRC()
	start := uint64(0)
	begun := false
	emit := func(b byte) {
		wire = append(wire, b)
		sum.addIf(s.CRC, b)
		s.Pos++
	}
	mark := func() {
		if !s.Markers || s.Pos%512 != 0 {
			return
		}
		ptr := uint64(0)
		if begun {
			ptr = s.Pos - start
		}
		emit(0)
		emit(0)
		emit(byte(ptr >> 8))
		emit(byte(ptr))
	}
	put := func(b byte) {
		mark()
		if !begun {
			begun, start = true, s.Pos
		}
		emit(b)
	}
	put(byte(len(ulpdu) >> 8))
	put(byte(len(ulpdu)))
	for _, b := range ulpdu {
		put(b)
	}
	for n := len(ulpdu) + 2; n%4 != 0; n++ {
		put(0)
	}
	mark()
	field := sum.Sum()
	if !s.CRC {
		field = 0
	}
	wire = binary.LittleEndian.AppendUint32(wire, field)
	s.Pos += 4
	return wire
}

// An End is how a stream ends.
type End int

const (
	Whole      End = iota // between FPDUs
	Cut                   // within one
	Damaged               // by a CRC that does not hold
	Misaligned            // by a marker or a length that cannot be
)

// Receive takes the ULPDUs out of wire.
func (s *Stream) Receive(wire []byte) (ulpdus [][]byte, end End) {
	type short struct{}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case short:
			end = Cut
		default:
			panic(e)
		}
	}()
	for len(wire) > 0 {
		sum := NewCRC()
		start := uint64(0)
		begun, agree := false, true
		octet := func() byte {
			if len(wire) == 0 {
				panic(short{})
			}
			b := wire[0]
			wire = wire[1:]
			s.Pos++
			return b
		}
		mark := func() {
			if !s.Markers || s.Pos%512 != 0 {
				return
			}
			at := s.Pos
			var m [4]byte
			for i := range m {
				m[i] = octet()
				sum.addIf(s.CRC, m[i])
			}
			ptr := uint64(binary.BigEndian.Uint16(m[2:]) &^ 3)
			if !begun {
				agree = agree && ptr == 0
			} else {
				agree = agree && ptr == at-start
			}
		}
		take := func() byte {
			mark()
			if !begun {
				begun, start = true, s.Pos
			}
			b := octet()
			sum.addIf(s.CRC, b)
			return b
		}
		n := int(take()) << 8
		n |= int(take())
		if n > 64768 {
			return ulpdus, Misaligned
		}
		u := make([]byte, n)
		for i := range u {
			u[i] = take()
		}
		for i := n + 2; i%4 != 0; i++ {
			take()
		}
		mark()
		var field [4]byte
		for i := range field {
			field[i] = octet()
		}
		if s.CRC && binary.LittleEndian.Uint32(field[:]) != sum.Sum() {
			return ulpdus, Damaged
		}
		if !agree {
			return ulpdus, Misaligned
		}
		ulpdus = append(ulpdus, u)
	}
	return ulpdus, Whole
}
