// This file holds the atomic operations: the codecs of their headers and their
// arithmetic (RFC 7306 §5).

package rdmap

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Lengths of the atomic headers in octets, and of the whole payload of their
// messages. RFC 7306 §4 calls the response 32 octets long, which counts the
// headers below; its fields are 12.
const (
	AtomicRequestLen  = 52
	AtomicResponseLen = 12
)

// An AOpCode names an atomic operation (RFC 7306 §5.2.1, Figure 5).
type AOpCode uint8

// The atomic operations that RFC 7306 assigns.
const (
	AOpFetchAdd AOpCode = 0x0
	AOpCmpSwap  AOpCode = 0x2
)

// Defined reports whether RFC 7306 assigns a.
func (a AOpCode) Defined() bool { return a == AOpFetchAdd || a == AOpCmpSwap }

func (a AOpCode) String() string {
	switch a {
	case AOpFetchAdd:
		return "FetchAdd"
	case AOpCmpSwap:
		return "CmpSwap"
	}
	return fmt.Sprintf("unassigned atomic operation %#x", uint8(a))
}

// AtomicRequest is the Atomic Request header (RFC 7306 §5.2.1, Figure 4). In
// octets: 0-3 28 reserved bits and AOpCode, 4-7 Request Identifier, 8-11 Remote
// STag, 12-19 Remote Tagged Offset, 20-27 Add or Swap Data, 28-35 Add or Swap
// Mask, 36-43 Compare Data, 44-51 Compare Mask.
type AtomicRequest struct {
	AOpCode AOpCode
	ID      uint32 // Request Identifier: comes back in the response
	STag    uint32 // Remote STag
	TO      uint64 // Remote Tagged Offset: 8 octets, aligned as an address

	Data uint64 // Add Data or Swap Data
	Mask uint64 // Add Mask: top bits of the fields; Swap Mask: the bits to change

	// Of a CmpSwap. A FetchAdd has Compare 0 and CompareMask all ones on the
	// wire, whatever is set here (RFC 7306 §5.2.1).
	Compare, CompareMask uint64
}

// Append appends the header's 52 octets to dst.
func (r *AtomicRequest) Append(dst []byte) []byte {
	compare, mask := r.Compare, r.CompareMask
	if r.AOpCode == AOpFetchAdd {
		compare, mask = 0, math.MaxUint64
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(r.AOpCode)&0xF)
	dst = binary.BigEndian.AppendUint32(dst, r.ID)
	dst = binary.BigEndian.AppendUint32(dst, r.STag)
	dst = binary.BigEndian.AppendUint64(dst, r.TO)
	dst = binary.BigEndian.AppendUint64(dst, r.Data)
	dst = binary.BigEndian.AppendUint64(dst, r.Mask)
	dst = binary.BigEndian.AppendUint64(dst, compare)
	return binary.BigEndian.AppendUint64(dst, mask)
}

// Parse reads the header from b, the payload of an Atomic Request. Any length
// but 52 octets is an [*Error], with r unchanged. An AOpCode that is not
// [AOpCode.Defined] is left to the caller.
func (r *AtomicRequest) Parse(b []byte) error {
	if len(b) != AtomicRequestLen {
		return errLength(OpAtomicRequest, len(b), AtomicRequestLen)
	}
	r.AOpCode = AOpCode(b[3] & 0xF)
	r.ID = binary.BigEndian.Uint32(b[4:])
	r.STag = binary.BigEndian.Uint32(b[8:])
	r.TO = binary.BigEndian.Uint64(b[12:])
	r.Data = binary.BigEndian.Uint64(b[20:])
	r.Mask = binary.BigEndian.Uint64(b[28:])
	r.Compare = binary.BigEndian.Uint64(b[36:])
	r.CompareMask = binary.BigEndian.Uint64(b[44:])
	if r.AOpCode == AOpFetchAdd {
		r.Compare, r.CompareMask = 0, math.MaxUint64 // ignored on receipt
	}
	return nil
}

// Apply is the value that the operation, which must be [AOpCode.Defined],
// leaves in memory that held original. The response carries original in either
// case.
func (r *AtomicRequest) Apply(original uint64) uint64 {
	if r.AOpCode == AOpCmpSwap {
		return CmpSwap(original, r.Data, r.Mask, r.Compare, r.CompareMask)
	}
	return FetchAdd(original, r.Data, r.Mask)
}

// AtomicResponse is the Atomic Response header (RFC 7306 §5.2.2, Figure 6). In
// octets: 0-3 Original Request Identifier, 4-11 Original Remote Data Value.
type AtomicResponse struct {
	ID       uint32
	Original uint64
}

// Append appends the header's 12 octets to dst.
func (r *AtomicResponse) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, r.ID)
	return binary.BigEndian.AppendUint64(dst, r.Original)
}

// Parse reads the header from b, the payload of an Atomic Response. Any length
// but 12 octets is an [*Error], with r unchanged.
func (r *AtomicResponse) Parse(b []byte) error {
	if len(b) != AtomicResponseLen {
		return errLength(OpAtomicResponse, len(b), AtomicResponseLen)
	}
	r.ID = binary.BigEndian.Uint32(b)
	r.Original = binary.BigEndian.Uint64(b[4:])
	return nil
}

// FetchAdd adds field by field: each bit set in mask is the top bit of a field,
// and no carry leaves it (RFC 7306 §5.1.1). Marking bit 63 changes nothing;
// mask 0 is an addition modulo 2^64.
func FetchAdd(original, add, mask uint64) uint64 {
	// Without their top bits the fields cannot overflow into each other; a top
	// bit is the sum, without carry, of both operands' and the carry into it.
	return (original&^mask + add&^mask) ^ (original^add)&mask
}

// CmpSwap replaces the bits of original in swapMask by those of swap, if
// original and compare agree in all bits of compareMask (RFC 7306 §5.1.2).
func CmpSwap(original, swap, swapMask, compare, compareMask uint64) uint64 {
	if (original^compare)&compareMask != 0 {
		return original
	}
	return original&^swapMask | swap&swapMask
}
