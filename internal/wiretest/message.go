// This file makes the ULPDUs of RDMA messages of one segment, and bends them
// (RFC 5040 §4, RFC 7306 §5.2, §6.2).

package wiretest

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Tagged is a tagged segment, the last of its message.
func Tagged(opcode byte, stag uint32, to uint64, payload ...byte) []byte {
	u := []byte{0xC1, 0x40 | opcode}
	u = binary.BigEndian.AppendUint32(u, stag)
	u = binary.BigEndian.AppendUint64(u, to)
	return append(u, payload...)
}

// Untagged is an untagged segment, the last of its message.
func Untagged(opcode byte, invalidate, qn, msn, mo uint32, payload ...byte) []byte {
	u := []byte{0x41, 0x40 | opcode}
	for _, v := range []uint32{invalidate, qn, msn, mo} {
		u = binary.BigEndian.AppendUint32(u, v)
	}
	return append(u, payload...)
}

// Write is an RDMA Write.
func Write(stag uint32, to uint64, payload ...byte) []byte { return Tagged(0, stag, to, payload...) }

// ReadResponse is an RDMA Read Response.
func ReadResponse(stag uint32, to uint64, payload ...byte) []byte {
	return Tagged(2, stag, to, payload...)
}

// Send is a Send.
func Send(msn uint32, payload ...byte) []byte { return Untagged(3, 0, 0, msn, 0, payload...) }

// SendInvalidate is a Send with Invalidate.
func SendInvalidate(msn, stag uint32, payload ...byte) []byte {
	return Untagged(4, stag, 0, msn, 0, payload...)
}

// A Read is what an RDMA Read Request asks for.
type Read struct {
	SinkSTag   uint32
	SinkTO     uint64
	Size       uint32
	SourceSTag uint32
	SourceTO   uint64
}

// ReadRequest is an RDMA Read Request.
func ReadRequest(msn uint32, r Read) []byte {
	b := binary.BigEndian.AppendUint32(nil, r.SinkSTag)
	b = binary.BigEndian.AppendUint64(b, r.SinkTO)
	b = binary.BigEndian.AppendUint32(b, r.Size)
	b = binary.BigEndian.AppendUint32(b, r.SourceSTag)
	b = binary.BigEndian.AppendUint64(b, r.SourceTO)
	return Untagged(1, 0, 1, msn, 0, b...)
}

// An Atomic is what an Atomic Request asks for.
type Atomic struct {
	AOpCode, ID, STag                uint32
	TO                               uint64
	Data, Mask, Compare, CompareMask uint64
}

// AtomicRequest is an Atomic Request.
func AtomicRequest(msn uint32, a Atomic) []byte {
	var b []byte
	for _, v := range []uint32{a.AOpCode, a.ID, a.STag} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	for _, v := range []uint64{a.TO, a.Data, a.Mask, a.Compare, a.CompareMask} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return Untagged(0xA, 0, 1, msn, 0, b...)
}

// AtomicResponse is an Atomic Response.
func AtomicResponse(msn, id uint32, original uint64) []byte {
	b := binary.BigEndian.AppendUint32(nil, id)
	return Untagged(0xB, 0, 3, msn, 0, binary.BigEndian.AppendUint64(b, original)...)
}

// Immediate is Immediate Data.
func Immediate(msn uint32, data ...byte) []byte { return Untagged(8, 0, 0, msn, 0, data...) }

// Terminate is a Terminate message.
func Terminate(payload ...byte) []byte { return Untagged(7, 0, 2, 1, 0, payload...) }

// Headers says what a Terminate tells of the segment at fault.
type Headers byte

// The values of HdrCt that RFC 5040 Figure 10 knows: M, D, R.
const (
	NoHeaders  Headers = 0x00
	DDPHeader  Headers = 0xC0 // its length and DDP header
	ReadHeader Headers = 0xE0 // and the Read Request's own
)

// TerminateOf is the Terminate message that reports culprit, after RFC 5040
// §4.8.
func TerminateOf(layer, etype, code byte, h Headers, culprit []byte) []byte {
	p := []byte{layer<<4 | etype, code, byte(h), 0}
	if h != NoHeaders {
		n := HeaderLen(culprit)
		p = binary.BigEndian.AppendUint16(p, uint16(len(culprit)))
		p = append(p, culprit[:n]...)
		if h == ReadHeader {
			p = append(p, culprit[n:n+28]...)
		}
	}
	return Terminate(p...)
}

// With is u with other octets from at on.
func With(u []byte, at int, octets ...byte) []byte {
	u = slices.Clone(u)
	copy(u[at:], octets)
	return u
}

// More is u without its L bit: more segments of the message are to follow.
func More(u []byte) []byte { return With(u, 0, u[0]&^0x40) }

// Cut cuts a message of one segment into segments of at most n octets of
// payload.
func Cut(u []byte, n int) (segments [][]byte) {
	h := HeaderLen(u)
	for off := 0; ; off += n {
		end := min(off+n, len(u)-h)
		s := slices.Concat(u[:h], u[h+off:h+end])
		if s[0]&0x80 != 0 {
			binary.BigEndian.PutUint64(s[6:], binary.BigEndian.Uint64(s[6:])+uint64(off))
		} else {
			binary.BigEndian.PutUint32(s[14:], binary.BigEndian.Uint32(s[14:])+uint32(off))
		}
		if end == len(u)-h {
			return append(segments, s)
		}
		segments = append(segments, More(s))
	}
}

// Fill is n times the octet b.
func Fill(n int, b byte) []byte { return bytes.Repeat([]byte{b}, n) }
