package mpa

// MPA's framing once more, octet by octet as RFC 5044 words it, slow and
// plain: what the fast code is compared with.

import "encoding/binary"

// refCRC is CRC32c bit by bit.
type refCRC uint32

func newRefCRC() refCRC { return ^refCRC(0) }

// addIf saves the time when nobody looks at the sum.
func (c *refCRC) addIf(use bool, b byte) {
	if use {
		c.add(b)
	}
}

func (c *refCRC) add(b byte) {
	*c ^= refCRC(b)
	for range 8 {
		if *c&1 != 0 {
			*c = *c>>1 ^ 0x82F63B78
		} else {
			*c >>= 1
		}
	}
}

func (c refCRC) sum() uint32 { return uint32(^c) }

// A refStream is one direction of a stream.
type refStream struct {
	markers, crc bool
	pos          uint64
}

// send is the wire octets of one ULPDU.
func (s *refStream) send(ulpdu []byte) []byte {
	var wire []byte
	sum := newRefCRC()
	start := uint64(0)
	begun := false
	emit := func(b byte) {
		wire = append(wire, b)
		sum.addIf(s.crc, b)
		s.pos++
	}
	mark := func() {
		if !s.markers || s.pos%512 != 0 {
			return
		}
		ptr := uint64(0)
		if begun {
			ptr = s.pos - start
		}
		emit(0)
		emit(0)
		emit(byte(ptr >> 8))
		emit(byte(ptr))
	}
	put := func(b byte) {
		mark()
		if !begun {
			begun, start = true, s.pos
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
	field := sum.sum()
	if !s.crc {
		field = 0
	}
	wire = binary.LittleEndian.AppendUint32(wire, field)
	s.pos += 4
	return wire
}

// receive takes the ULPDUs out of wire. code is what ends them: 0 for the end
// between FPDUs, else MPA's error code.
func (s *refStream) receive(wire []byte) (ulpdus [][]byte, code Code) {
	type short struct{}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case short:
			code = CodeClosed
		default:
			panic(e)
		}
	}()
	for len(wire) > 0 {
		sum := newRefCRC()
		start := uint64(0)
		begun, agree := false, true
		octet := func() byte {
			if len(wire) == 0 {
				panic(short{})
			}
			b := wire[0]
			wire = wire[1:]
			s.pos++
			return b
		}
		mark := func() {
			if !s.markers || s.pos%512 != 0 {
				return
			}
			at := s.pos
			var m [4]byte
			for i := range m {
				m[i] = octet()
				sum.addIf(s.crc, m[i])
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
				begun, start = true, s.pos
			}
			b := octet()
			sum.addIf(s.crc, b)
			return b
		}
		n := int(take()) << 8
		n |= int(take())
		if n > 64768 {
			return ulpdus, CodeMarker
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
		if s.crc && binary.LittleEndian.Uint32(field[:]) != sum.sum() {
			return ulpdus, CodeCRC
		}
		if !agree {
			return ulpdus, CodeMarker
		}
		ulpdus = append(ulpdus, u)
	}
	return ulpdus, 0
}
