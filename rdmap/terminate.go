// This file is the codec of the Terminate header and decides what it reports of
// which error (RFC 5040 §4.8).

package rdmap

import (
	"encoding/binary"
	"math"

	"github.com/weft-rdma/weft/ddp"
)

// Sizes of the Terminate header in octets.
const (
	terminateControlLen = 4
	terminateLengthLen  = 2

	// MaxTerminateLen is the longest Terminate header, and so the longest
	// payload of a Terminate message: with an untagged DDP header and a Read
	// Request header.
	MaxTerminateLen = terminateControlLen + terminateLengthLen + ddp.UntaggedLen + ReadRequestLen
)

// HdrCt, the header control bits in octet 2 (RFC 5040 §4.8, Figure 8).
const (
	flagLength  = 0x80 // M: DDP Segment Length valid
	flagDDP     = 0x40 // D: DDP header included
	flagRequest = 0x20 // R: RDMAP header included
)

// The same bits as Linux's siw on little-endian hosts places them.
const (
	swappedLength  = 0x01
	swappedDDP     = 0x02
	swappedRequest = 0x04
)

// Terminate is the Terminate header (RFC 5040 §4.8, Figures 7 and 8):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| Layer | EType |   Error Code  |M|D|R|        Reserved         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  DDP Segment Length  (if any) |                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+                               +
//	//                Terminated DDP Header (if any)               //
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	//               Terminated RDMA Header (if any)               //
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// Linux's siw on little-endian hosts swaps the nibbles of the first octet and
// places M, D and R in the low bits of the third. Such a message is recognised
// when what it says in the RFC's order is not defined, or when headers follow
// that only the flags in siw's places promise.
type Terminate struct {
	Layer, EType, Code uint8

	M             bool   // SegmentLength is valid
	SegmentLength uint16 // of the DDP segment at fault, header included

	DDPHeader []byte // D: header of the segment at fault, 14 or 18 octets, or nil

	R           bool // the segment was a Read Request
	ReadRequest ReadRequest

	Swapped   bool // received in the bit order of siw
	Truncated bool // received without parts that M, D or R promise
}

// NewTerminate decides what a Terminate reports of the error
// (layer, etype, code), which the segment with the given DDP header and length
// in octets caused. header is nil for an error that no incoming segment caused;
// read is the Read Request it carried, if it was one that arrived whole, and is
// nil otherwise. The Terminate keeps header.
//
// M, D and R follow RFC 5040 Figure 10. R comes with a Remote Protection Error
// of a Read Request alone: no other message has an RDMA header to report.
// Numbers outside the table are not sent (RFC 5040 §4.8); they become an
// unspecified error.
func NewTerminate(layer, etype, code uint8, header []byte, length int, read *ReadRequest) Terminate {
	if !Defined(layer, etype, code) {
		if layer != LayerRDMA || etype > RemoteOperation {
			layer, etype = LayerRDMA, RemoteOperation
		}
		code = CodeUnspecified
	}
	t := Terminate{Layer: layer, EType: etype, Code: code}
	// Local Catastrophic Error is type 0 of both layers.
	if len(header) == 0 || layer == LayerLLP || etype == LocalCatastrophic {
		return t
	}
	t.M = true
	t.SegmentLength = uint16(min(length, math.MaxUint16))
	t.DDPHeader = header
	if layer == LayerRDMA && etype == RemoteProtection && read != nil && isReadRequest(header) {
		t.R, t.ReadRequest = true, *read
	}
	return t
}

func isReadRequest(header []byte) bool {
	_, op := ParseControl(header[1])
	return op == OpReadRequest && !ddp.IsTagged(header)
}

// Append appends the header to dst: 4 to 52 octets.
func (t *Terminate) Append(dst []byte) []byte {
	var flags byte
	if t.M {
		flags |= flagLength
	}
	if t.DDPHeader != nil {
		flags |= flagDDP
	}
	if t.R {
		flags |= flagRequest
	}
	dst = append(dst, t.Layer<<4|t.EType&0xF, t.Code, flags, 0)
	if t.M || t.DDPHeader != nil {
		// RFC 5040 §4.8: present whenever D is set.
		dst = binary.BigEndian.AppendUint16(dst, t.SegmentLength)
	}
	dst = append(dst, t.DDPHeader...)
	if t.R {
		dst = t.ReadRequest.Append(dst)
	}
	return dst
}

// Parse reads the header from b, the payload of a Terminate message, which the
// DDPHeader then refers to. It is liberal, as what it reports is all that will
// ever be known of the stream's end: parts that M, D and R do not promise are
// ignored, and promised parts that are missing are left out and make t
// Truncated. It reports false, with t empty, when b is shorter than 4 octets.
func (t *Terminate) Parse(b []byte) bool {
	*t = Terminate{}
	if len(b) < terminateControlLen {
		return false
	}
	t.Layer, t.EType, t.Code = b[0]>>4, b[0]&0xF, b[1]
	m, d, r := b[2]&flagLength != 0, b[2]&flagDDP != 0, b[2]&flagRequest != 0
	if swapped(b) {
		t.Swapped = true
		t.Layer, t.EType = t.EType, t.Layer
		m, d, r = b[2]&swappedLength != 0, b[2]&swappedDDP != 0, b[2]&swappedRequest != 0
	}
	rest := b[terminateControlLen:]
	if r && !d && len(b) == MaxTerminateLen {
		// Every part is there, the absent ones as zeros.
		t.R = t.ReadRequest.Parse(b[MaxTerminateLen-ReadRequestLen:]) == nil
		r = false
	}
	if m || d {
		part, ok := t.cut(&rest, terminateLengthLen)
		if t.M = m && ok; t.M {
			t.SegmentLength = binary.BigEndian.Uint16(part)
		}
	}
	if d && len(rest) > 0 {
		t.DDPHeader, _ = t.cut(&rest, ddp.HeaderLen(rest))
	}
	if r {
		if part, ok := t.cut(&rest, ReadRequestLen); ok {
			t.R = t.ReadRequest.Parse(part) == nil
		}
	}
	t.Truncated = t.Truncated || d && t.DDPHeader == nil
	return true
}

// swapped reports that the control word in b is in siw's order: what it says in
// the RFC's order is not defined, or headers follow that only its flags in
// siw's order promise.
func swapped(b []byte) bool {
	first, second, code, flags := b[0]>>4, b[0]&0xF, b[1], b[2]
	if !Defined(second, first, code) {
		return false
	}
	return !Defined(first, second, code) ||
		len(b) > terminateControlLen && flags&(flagLength|flagDDP|flagRequest) == 0 && flags&swappedDDP != 0
}

// cut takes n octets off rest. If there are fewer it drops them all, as what follows
// cannot be found either.
func (t *Terminate) cut(rest *[]byte, n int) (part []byte, ok bool) {
	if len(*rest) < n {
		t.Truncated = true
		*rest = nil
		return nil, false
	}
	part, *rest = (*rest)[:n:n], (*rest)[n:]
	return part, true
}
