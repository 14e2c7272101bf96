// Messages of one segment, and variants of them (RFC 5040 §4, RFC 7306 §5.2, §6.2).

package iwarptest

import (
	"encoding/binary"
	"slices"
)

// Tagged returns a tagged segment, the last of its message: version 1 of DDP and
// RDMAP, and whatever opcode.
func Tagged(opcode byte, stag uint32, to uint64, payload ...byte) []byte {
	u := []byte{0xC1, 0x40 | opcode}
	u = binary.BigEndian.AppendUint32(u, stag)
	u = binary.BigEndian.AppendUint64(u, to)
	return append(u, payload...)
}

// Untagged returns an untagged segment, the last of its message: version 1 of DDP
// and RDMAP, and whatever opcode.
func Untagged(opcode byte, invalidate, qn, msn, mo uint32, payload ...byte) []byte {
	u := []byte{0x41, 0x40 | opcode}
	for _, v := range []uint32{invalidate, qn, msn, mo} {
		u = binary.BigEndian.AppendUint32(u, v)
	}
	return append(u, payload...)
}

// Write returns an RDMA Write.
func Write(stag uint32, to uint64, payload ...byte) []byte {
	return Tagged(OpWrite, stag, to, payload...)
}

// ReadResponse returns an RDMA Read Response.
func ReadResponse(stag uint32, to uint64, payload ...byte) []byte {
	return Tagged(OpReadResponse, stag, to, payload...)
}

// Send returns a Send. The MSNs of Sends and Immediate Data count from 1, together.
func Send(msn uint32, payload ...byte) []byte { return Untagged(OpSend, 0, 0, msn, 0, payload...) }

// SendInvalidate returns a Send with Invalidate.
func SendInvalidate(msn, stag uint32, payload ...byte) []byte {
	return Untagged(OpSendInvalidate, stag, 0, msn, 0, payload...)
}

// A Read is what an RDMA Read Request asks for: Size octets from the source, which
// is the other side's memory, to the sink, which is the sender's.
type Read struct {
	SinkSTag   uint32
	SinkTO     uint64
	Size       uint32
	SourceSTag uint32
	SourceTO   uint64
}

// ReadRequest returns an RDMA Read Request. The MSNs of Read and Atomic Requests
// count from 1, together.
func ReadRequest(msn uint32, r Read) []byte {
	b := binary.BigEndian.AppendUint32(nil, r.SinkSTag)
	b = binary.BigEndian.AppendUint64(b, r.SinkTO)
	b = binary.BigEndian.AppendUint32(b, r.Size)
	b = binary.BigEndian.AppendUint32(b, r.SourceSTag)
	b = binary.BigEndian.AppendUint64(b, r.SourceTO)
	return Untagged(OpReadRequest, 0, 1, msn, 0, b...)
}

// An Atomic is what an Atomic Request asks for: AOpCode 0 is FetchAdd, 2 is CmpSwap (RFC
// 7306 §5.2). ID comes back in the response.
type Atomic struct {
	AOpCode, ID, STag                uint32
	TO                               uint64
	Data, Mask, Compare, CompareMask uint64
}

// AtomicRequest returns an Atomic Request.
func AtomicRequest(msn uint32, a Atomic) []byte {
	var b []byte
	for _, v := range []uint32{a.AOpCode, a.ID, a.STag} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	for _, v := range []uint64{a.TO, a.Data, a.Mask, a.Compare, a.CompareMask} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return Untagged(OpAtomicRequest, 0, 1, msn, 0, b...)
}

// AtomicResponse returns an Atomic Response.
func AtomicResponse(msn, id uint32, original uint64) []byte {
	b := binary.BigEndian.AppendUint32(nil, id)
	return Untagged(OpAtomicResponse, 0, 3, msn, 0, binary.BigEndian.AppendUint64(b, original)...)
}

// Immediate returns Immediate Data, which is 8 octets if it is right.
func Immediate(msn uint32, data ...byte) []byte {
	return Untagged(OpImmediate, 0, 0, msn, 0, data...)
}

// Headers are what a Terminate message repeats of the segment that it reports: the
// values of HdrCt that RFC 5040 Figure 10 allows.
type Headers byte

// Which headers a Terminate message has.
const (
	NoHeaders  Headers = 0x00
	DDPHeader  Headers = 0xC0 // the segment's length and DDP header
	ReadHeader Headers = 0xE0 // and the header of a Read Request
)

// Terminate returns a Terminate message, which reports an error (RFC 5040 §4.8) and
// repeats the headers of culprit that h names. With [NoHeaders] culprit may be nil.
func Terminate(layer, etype, code byte, h Headers, culprit []byte) []byte {
	p := []byte{layer<<4 | etype, code, byte(h), 0}
	if h != NoHeaders {
		n := HeaderLen(culprit)
		p = binary.BigEndian.AppendUint16(p, uint16(len(culprit)))
		p = append(p, culprit[:n]...)
		if h == ReadHeader {
			p = append(p, culprit[n:n+28]...)
		}
	}
	return Untagged(OpTerminate, 0, 2, 1, 0, p...)
}

// Overwrite returns a copy of b, a ULPDU or FPDUs, with other octets from index at on.
func Overwrite(b []byte, at int, octets ...byte) []byte {
	b = slices.Clone(b)
	copy(b[at:], octets)
	return b
}

// FlipBit returns a copy of b, a ULPDU or FPDUs, with the lowest bit of one octet
// flipped. A negative index counts from the end: -1 is in the CRC of an FPDU.
func FlipBit(b []byte, at int) []byte {
	if at < 0 {
		at += len(b)
	}
	return Overwrite(b, at, b[at]^1)
}

// ClearLast returns a copy of u without its L flag: more segments of the message are
// to follow.
func ClearLast(u []byte) []byte { return Overwrite(u, 0, u[0]&^0x40) }

// Split cuts a message of one segment into segments of at most n octets of payload.
func Split(u []byte, n int) (segments [][]byte) {
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
		segments = append(segments, ClearLast(s))
	}
}
