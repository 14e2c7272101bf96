// This file holds the errors that DDP finds in inbound segments, with the
// numbers of RFC 5041 §7.2.

package ddp

import "fmt"

// Error Types (RFC 5041 §7.2).
const (
	LocalCatastrophic uint8 = 0x0
	TaggedBuffer      uint8 = 0x1
	UntaggedBuffer    uint8 = 0x2
)

// Error Codes of [TaggedBuffer] (RFC 5041 §7.2).
const (
	CodeInvalidSTag   uint8 = 0x00
	CodeBounds        uint8 = 0x01
	CodeNotAssociated uint8 = 0x02 // also stands for a missing right, which has no code of its own
	CodeWrap          uint8 = 0x03
	CodeTaggedVersion uint8 = 0x04
)

// Error Codes of [UntaggedBuffer] (RFC 5041 §7.2).
const (
	CodeInvalidQN       uint8 = 0x01
	CodeNoBuffer        uint8 = 0x02
	CodeMSNRange        uint8 = 0x03
	CodeInvalidMO       uint8 = 0x04
	CodeTooLong         uint8 = 0x05
	CodeUntaggedVersion uint8 = 0x06
)

// layerDDP is DDP's number in a Terminate message (RFC 5040 §4.8).
const layerDDP = 1

// An Error is a fault that DDP found in an inbound segment. It ends reception
// on the stream and carries what a Terminate message reports (RFC 5041 §7.1:
// the header, the type of error and the segment's length).
type Error struct {
	EType, Code uint8
	Fault       Fault // why an access by STag was refused; NoFault for all else

	// Ahead is, of CodeMSNRange, by how much the MSN exceeded the one expected,
	// modulo 2^32: so many messages are missing, if that is not absurd.
	Ahead uint32

	// SegmentLength is the length of the segment, header included, in octets.
	SegmentLength int

	header    [UntaggedLen]byte
	headerLen uint8
	detail    string // what was received and what was expected
}

// Header is the DDP header of the segment as it was received, 14 or 18 octets;
// nil when the segment was too short to have one.
func (e *Error) Header() []byte {
	if e.headerLen == 0 {
		return nil
	}
	return e.header[:e.headerLen]
}

// TerminateCode gives the three numbers that name the error in a Terminate
// message (RFC 5040 §4.8).
func (e *Error) TerminateCode() (layer, etype, code uint8) { return layerDDP, e.EType, e.Code }

func (e *Error) Error() string {
	return fmt.Sprintf("ddp: %s: %s", errorName(e.EType, e.Code), e.detail)
}

// Is reports whether target is a DDP Error of the same type and code, whatever
// segment it was found in.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.EType == e.EType && t.Code == e.Code
}

var (
	taggedNames = [...]string{
		CodeInvalidSTag:   "invalid STag",
		CodeBounds:        "base or bounds violation",
		CodeNotAssociated: "no access",
		CodeWrap:          "TO wrap",
		CodeTaggedVersion: "invalid DDP version",
	}
	untaggedNames = [...]string{
		CodeInvalidQN:       "invalid QN",
		CodeNoBuffer:        "invalid MSN, no buffer available",
		CodeMSNRange:        "invalid MSN, MSN range is not valid",
		CodeInvalidMO:       "invalid MO",
		CodeTooLong:         "message too long for the available buffer",
		CodeUntaggedVersion: "invalid DDP version",
	}
)

func errorName(etype, code uint8) string {
	switch {
	case etype == LocalCatastrophic:
		return "local catastrophic error"
	case etype == TaggedBuffer && int(code) < len(taggedNames):
		return "tagged buffer error: " + taggedNames[code]
	case etype == UntaggedBuffer && code > 0 && int(code) < len(untaggedNames):
		return "untagged buffer error: " + untaggedNames[code]
	}
	return fmt.Sprintf("error of type %#x, code %#02x", etype, code)
}

// faultCode turns a refused access into its code (RFC 5041 §7.1, §7.2). Rights
// have no code of their own there; they are part of the association between
// the STag and the stream.
func faultCode(f Fault) uint8 {
	switch f {
	case FaultBounds:
		return CodeBounds
	case FaultAccess, FaultAssociation, FaultDisabled, FaultMemory:
		return CodeNotAssociated
	case FaultWrap:
		return CodeWrap
	}
	return CodeInvalidSTag
}
