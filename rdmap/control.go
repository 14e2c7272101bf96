// This file is the codec of what RDMAP puts into the octets that DDP reserves
// for it (RFC 5040 §4.1).

package rdmap

import "encoding/binary"

// RDMAP versions, the RV field (RFC 5040 §4.1). A stream has one, which follows
// from the MPA revision (RFC 5044 appendix C).
const (
	VersionConsortium uint8 = 0 // the RDMA Consortium's specification
	VersionIETF       uint8 = 1 // RFC 5040 and RFC 7306
)

// The RDMAP Control Field, the first octet of RsvdULP in every segment
// (RFC 5040 §4.1, Figure 3):
//
//	 0   1   2   3   4   5   6   7
//	+---+---+---+---+---+---+---+---+
//	|  RV   |  Rsv  |    Opcode     |
//	+---+---+---+---+---+---+---+---+
//
// Rsv is zero when sent and ignored when received.
const (
	versionShift = 6
	opcodeMask   = 0x0F
)

// Control is the RDMAP Control Field for version and op, both below their
// field's limit: the whole RsvdULP of a tagged segment.
func Control(version uint8, op Opcode) uint8 { return version<<versionShift | uint8(op)&opcodeMask }

// ParseControl takes the RDMAP Control Field apart.
func ParseControl(c uint8) (version uint8, op Opcode) {
	return c >> versionShift, Opcode(c & opcodeMask)
}

// ControlUntagged is the RsvdULP of an untagged segment: the RDMAP Control
// Field and the Invalidate STag, which is zero unless op carries one.
func ControlUntagged(version uint8, op Opcode, invalidate uint32) (rsvdULP [5]byte) {
	rsvdULP[0] = Control(version, op)
	if op.Invalidates() {
		binary.BigEndian.PutUint32(rsvdULP[1:], invalidate)
	}
	return rsvdULP
}

// ParseControlUntagged takes the RsvdULP of an untagged segment apart. The
// Invalidate STag of an op that carries none is ignored: it reads as zero.
func ParseControlUntagged(rsvdULP [5]byte) (version uint8, op Opcode, invalidate uint32) {
	version, op = ParseControl(rsvdULP[0])
	if op.Invalidates() {
		invalidate = binary.BigEndian.Uint32(rsvdULP[1:])
	}
	return version, op, invalidate
}
