// This file holds the errors of RDMAP: those it finds itself, those that a
// Terminate message brings, and the words for every code (RFC 5040 §4.8).

package rdmap

import (
	"fmt"
	"strings"

	"github.com/weft-rdma/weft/ddp"
)

// Layers of a Terminate message (RFC 5040 §4.8, Figure 9).
const (
	LayerRDMA uint8 = 0x0
	LayerDDP  uint8 = 0x1
	LayerLLP  uint8 = 0x2 // MPA
)

// Error Types of [LayerRDMA] (RFC 5040 §4.8, Figure 9).
const (
	LocalCatastrophic uint8 = 0x0 // has no codes: any value will do
	RemoteProtection  uint8 = 0x1
	RemoteOperation   uint8 = 0x2
)

// Error Codes of [LayerRDMA] (RFC 5040 §4.8, Figure 9).
const (
	CodeInvalidSTag      uint8 = 0x00 // of RemoteProtection
	CodeBounds           uint8 = 0x01 // of RemoteProtection
	CodeAccess           uint8 = 0x02 // of RemoteProtection
	CodeNotAssociated    uint8 = 0x03 // of RemoteProtection
	CodeWrap             uint8 = 0x04 // of RemoteProtection
	CodeVersion          uint8 = 0x05 // of RemoteOperation
	CodeOpcode           uint8 = 0x06 // of RemoteOperation
	CodeStream           uint8 = 0x07 // of RemoteOperation: catastrophic, localized to the stream
	CodeGlobal           uint8 = 0x08 // of RemoteOperation: catastrophic, global
	CodeCannotInvalidate uint8 = 0x09 // of both
	CodeUnspecified      uint8 = 0xFF // of both
)

// Error Codes of [LayerLLP], of which MPA has one type, 0 (RFC 5044 §8). An LLP
// names its errors with them; RDMAP passes them on.
const (
	CodeLLPLost         uint8 = 0x01
	CodeCRC             uint8 = 0x02
	CodeMarker          uint8 = 0x03
	CodeStartup         uint8 = 0x04
	CodeLLPCatastrophic uint8 = 0x05
	CodeInsufficientIRD uint8 = 0x06 // this and the next: RFC 6581 §8
	CodeNoRTR           uint8 = 0x07
)

// An Error is a fault that RDMAP found. It says what a Terminate message
// reports of it.
type Error struct {
	EType, Code uint8
	Fault       ddp.Fault // why an access by STag was refused; NoFault for all else

	detail string // what was received and what was expected
}

// NewError makes an Error of [LayerRDMA] whose text says what happened, to
// what, and what was expected.
func NewError(etype, code uint8, format string, args ...any) *Error {
	return &Error{EType: etype, Code: code, detail: fmt.Sprintf(format, args...)}
}

// NewProtectionError makes the Error for an access by STag that was refused on
// behalf of a Read Request, an Atomic Request or a Send with Invalidate.
func NewProtectionError(f ddp.Fault, format string, args ...any) *Error {
	e := NewError(RemoteProtection, faultCode(f), format, args...)
	e.Fault = f
	return e
}

// errLength: a header that is not as long as its message's payload has to be.
// The RFCs name no code for it.
func errLength(op Opcode, got, want int) error {
	return NewError(RemoteOperation, CodeUnspecified, "%s with %d octets of payload, expected %d", op, got, want)
}

// TerminateCode gives the three numbers that name the error in a Terminate
// message.
func (e *Error) TerminateCode() (layer, etype, code uint8) { return LayerRDMA, e.EType, e.Code }

func (e *Error) Error() string {
	return fmt.Sprintf("rdmap: %s: %s", numbered(name(LayerRDMA, e.EType, e.Code), LayerRDMA, e.EType, e.Code), e.detail)
}

// Is reports whether target is an Error of the same type and code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.EType == e.EType && t.Code == e.Code
}

// faultCode turns a refused access into its Remote Protection code.
func faultCode(f ddp.Fault) uint8 {
	switch f {
	case ddp.FaultSTag:
		return CodeInvalidSTag
	case ddp.FaultBounds:
		return CodeBounds
	case ddp.FaultAccess, ddp.FaultDisabled, ddp.FaultMemory:
		return CodeAccess
	case ddp.FaultAssociation:
		return CodeNotAssociated
	case ddp.FaultWrap:
		return CodeWrap
	}
	return CodeUnspecified
}

// A TerminateError is the end of a stream by a Terminate message, the peer's or
// our own.
type TerminateError struct {
	Layer, EType, Code uint8

	Remote bool  // the peer sent the message
	Err    error // what made us send it, if we did

	SegmentLength uint16       // length of the DDP segment at fault, 0 if unknown
	DDPHeader     []byte       // header of that segment, 14 or 18 octets, nil if unknown
	ReadRequest   *ReadRequest // the Read Request at fault and what was left of it, nil if unknown

	Swapped bool   // the message came in the bit order described at Terminate
	Raw     []byte // the message's payload as received
}

// NewTerminateError makes the error for a Terminate message that the peer sent,
// of which raw is the payload. It makes the best of a message that is malformed:
// the raw octets are kept (a copy) in any case.
func NewTerminateError(raw []byte) *TerminateError {
	e := &TerminateError{Remote: true, Raw: append([]byte(nil), raw...)}
	var t Terminate
	if !t.Parse(e.Raw) {
		// The peer terminated the stream without saying why.
		e.Layer, e.EType, e.Code = LayerRDMA, RemoteOperation, CodeUnspecified
		return e
	}
	e.Layer, e.EType, e.Code, e.Swapped = t.Layer, t.EType, t.Code, t.Swapped
	if t.M {
		e.SegmentLength = t.SegmentLength
	}
	e.DDPHeader = t.DDPHeader
	if t.R {
		e.ReadRequest = &t.ReadRequest
	}
	return e
}

// TerminateCode gives the three numbers of the message.
func (e *TerminateError) TerminateCode() (layer, etype, code uint8) {
	return e.Layer, e.EType, e.Code
}

func (e *TerminateError) Error() string {
	switch {
	case !e.Remote && e.Err != nil:
		return "this side terminated the stream: " + numbered(e.Err.Error(), e.Layer, e.EType, e.Code)
	case !e.Remote:
		return "this side terminated the stream: " + Describe(e.Layer, e.EType, e.Code)
	case len(e.Raw) < terminateControlLen:
		return fmt.Sprintf("the peer terminated the stream without saying why: %d octets, expected at least %d", len(e.Raw), terminateControlLen)
	}
	s := "the peer terminated the stream: " + Describe(e.Layer, e.EType, e.Code) + e.about()
	if e.Swapped {
		s += fmt.Sprintf(", received in swapped bit order as % x", e.Raw[:terminateControlLen])
	}
	return s
}

// about names the message at fault, as far as the peer identified it.
func (e *TerminateError) about() string {
	var tagged ddp.Tagged
	var untagged ddp.Untagged
	switch {
	case e.ReadRequest != nil:
		return ", about the " + e.ReadRequest.words()
	case tagged.Parse(e.DDPHeader):
		_, op := ParseControl(tagged.RsvdULP)
		return fmt.Sprintf(", about %s at offset %#x of STag 0x%08x", op, tagged.TO, tagged.STag)
	case !untagged.Parse(e.DDPHeader):
		return ""
	}
	_, op, _ := ParseControlUntagged(untagged.RsvdULP)
	s := fmt.Sprintf(", about %s, message %d on queue %d", op, untagged.MSN, untagged.QN)
	if hint := opcodes[op&opcodeMask].hint; hint != "" && e.is(LayerRDMA, RemoteOperation, CodeStream) {
		s += ": " + hint
	}
	return s
}

func (e *TerminateError) is(layer, etype, code uint8) bool {
	return e.Layer == layer && e.EType == etype && e.Code == code
}

// Unwrap is what made us send the message.
func (e *TerminateError) Unwrap() error { return e.Err }

// Is reports whether target is a TerminateError with the same layer, type and
// code, whichever side sent it.
func (e *TerminateError) Is(target error) bool {
	t, ok := target.(*TerminateError)
	return ok && t.Layer == e.Layer && t.EType == e.EType && t.Code == e.Code
}

// etypeWords are the layers' Error Types, and codeWords their codes: RFC 5040
// Figure 9, RFC 5041 §7.2, RFC 5044 §8 and RFC 6581 §8.
var etypeWords = map[[2]uint8]string{
	{LayerRDMA, LocalCatastrophic}:    "RDMA local catastrophic error",
	{LayerRDMA, RemoteProtection}:     "RDMA remote protection error",
	{LayerRDMA, RemoteOperation}:      "RDMA remote operation error",
	{LayerDDP, ddp.LocalCatastrophic}: "DDP local catastrophic error",
	{LayerDDP, ddp.TaggedBuffer}:      "DDP tagged buffer error",
	{LayerDDP, ddp.UntaggedBuffer}:    "DDP untagged buffer error",
	{LayerLLP, 0}:                     "MPA error",
}

var codeWords = map[[3]uint8]string{
	{LayerRDMA, RemoteProtection, CodeInvalidSTag}:      "invalid STag",
	{LayerRDMA, RemoteProtection, CodeBounds}:           "base or bounds violation",
	{LayerRDMA, RemoteProtection, CodeAccess}:           "no access",
	{LayerRDMA, RemoteProtection, CodeNotAssociated}:    "STag not associated with RDMAP stream",
	{LayerRDMA, RemoteProtection, CodeWrap}:             "TO wrap",
	{LayerRDMA, RemoteProtection, CodeCannotInvalidate}: "STag cannot be invalidated",
	{LayerRDMA, RemoteProtection, CodeUnspecified}:      "unspecified error",

	{LayerRDMA, RemoteOperation, CodeVersion}:          "invalid RDMAP version",
	{LayerRDMA, RemoteOperation, CodeOpcode}:           "unexpected opcode",
	{LayerRDMA, RemoteOperation, CodeStream}:           "catastrophic error, localized to RDMAP stream",
	{LayerRDMA, RemoteOperation, CodeGlobal}:           "catastrophic error, global",
	{LayerRDMA, RemoteOperation, CodeCannotInvalidate}: "STag cannot be invalidated",
	{LayerRDMA, RemoteOperation, CodeUnspecified}:      "unspecified error",

	{LayerDDP, ddp.LocalCatastrophic, 0}: "",

	{LayerDDP, ddp.TaggedBuffer, ddp.CodeInvalidSTag}:   "invalid STag",
	{LayerDDP, ddp.TaggedBuffer, ddp.CodeBounds}:        "base or bounds violation",
	{LayerDDP, ddp.TaggedBuffer, ddp.CodeNotAssociated}: "no access",
	{LayerDDP, ddp.TaggedBuffer, ddp.CodeWrap}:          "TO wrap",
	{LayerDDP, ddp.TaggedBuffer, ddp.CodeTaggedVersion}: "invalid DDP version",

	{LayerDDP, ddp.UntaggedBuffer, ddp.CodeInvalidQN}:       "invalid QN",
	{LayerDDP, ddp.UntaggedBuffer, ddp.CodeNoBuffer}:        "invalid MSN, no buffer available",
	{LayerDDP, ddp.UntaggedBuffer, ddp.CodeMSNRange}:        "invalid MSN, MSN range is not valid",
	{LayerDDP, ddp.UntaggedBuffer, ddp.CodeInvalidMO}:       "invalid MO",
	{LayerDDP, ddp.UntaggedBuffer, ddp.CodeTooLong}:         "message too long for available buffer",
	{LayerDDP, ddp.UntaggedBuffer, ddp.CodeUntaggedVersion}: "invalid DDP version",

	{LayerLLP, 0, CodeLLPLost}:         "TCP connection closed, terminated or lost",
	{LayerLLP, 0, CodeCRC}:             "CRC mismatch",
	{LayerLLP, 0, CodeMarker}:          "marker and ULPDU length mismatch",
	{LayerLLP, 0, CodeStartup}:         "invalid MPA request or reply frame",
	{LayerLLP, 0, CodeLLPCatastrophic}: "local catastrophic error",
	{LayerLLP, 0, CodeInsufficientIRD}: "insufficient IRD resources",
	{LayerLLP, 0, CodeNoRTR}:           "no matching RTR option",
}

// hints say what a code of the peer's may mean, where its name does not say enough.
var hints = map[[3]uint8]string{
	{LayerRDMA, RemoteProtection, CodeInvalidSTag}:      "no memory has it, or not any more",
	{LayerRDMA, RemoteProtection, CodeBounds}:           "the region or window does not have all of the octets",
	{LayerRDMA, RemoteProtection, CodeAccess}:           "the region lacks Remote Read, or Remote Atomic of an atomic, or its queue pair does not enable them",
	{LayerRDMA, RemoteProtection, CodeNotAssociated}:    "it is of another domain or stream",
	{LayerRDMA, RemoteProtection, CodeWrap}:             "offset and length exceed 2^64",
	{LayerRDMA, RemoteProtection, CodeCannotInvalidate}: "it is of another domain or stream, is Shared, or has windows bound",
	{LayerRDMA, RemoteOperation, CodeCannotInvalidate}:  "it is of another domain or stream, is Shared, or has windows bound",
	{LayerRDMA, RemoteOperation, CodeOpcode}:            "the receiver does not know the message, or not there",

	{LayerDDP, ddp.TaggedBuffer, ddp.CodeInvalidSTag}:   "no memory has it, or not any more",
	{LayerDDP, ddp.TaggedBuffer, ddp.CodeBounds}:        "the region or window does not have all of the octets",
	{LayerDDP, ddp.TaggedBuffer, ddp.CodeNotAssociated}: "the region lacks Remote Write, its queue pair does not enable writes, or it is of another domain or stream",
	{LayerDDP, ddp.TaggedBuffer, ddp.CodeWrap}:          "offset and length exceed 2^64",

	{LayerDDP, ddp.UntaggedBuffer, ddp.CodeInvalidQN}: "there is no such queue, or its queue pair does not enable RDMA Reads",
	{LayerDDP, ddp.UntaggedBuffer, ddp.CodeNoBuffer}:  "no receive was posted",
	{LayerDDP, ddp.UntaggedBuffer, ddp.CodeMSNRange}:  "a message is missing, or more RDMA Reads and atomics are outstanding than its IRD",
	{LayerDDP, ddp.UntaggedBuffer, ddp.CodeTooLong}:   "the receive that was posted is shorter",
}

// Defined reports whether a specification defines (layer, etype, code). RDMAP's
// Local Catastrophic Error has no codes, and any value is acceptable.
func Defined(layer, etype, code uint8) bool {
	if layer == LayerRDMA && etype == LocalCatastrophic {
		return true
	}
	_, ok := codeWords[[3]uint8{layer, etype, code}]
	return ok
}

// Describe puts (layer, etype, code) into words, with what it may mean and the
// numbers behind them: "DDP untagged buffer error: invalid MSN, no buffer available:
// no receive was posted (1/2/02)".
func Describe(layer, etype, code uint8) string {
	words := name(layer, etype, code)
	if hint := hints[[3]uint8{layer, etype, code}]; hint != "" {
		words += ": " + hint
	}
	return numbered(words, layer, etype, code)
}

// numbered puts the numbers behind the words, unless they have them.
func numbered(words string, layer, etype, code uint8) string {
	numbers := fmt.Sprintf("(%d/%d/%02X)", layer, etype, code)
	if strings.Contains(words, numbers) {
		return words
	}
	return words + " " + numbers
}

// name is what the specifications call (layer, etype, code).
func name(layer, etype, code uint8) string {
	words, ok := etypeWords[[2]uint8{layer, etype}]
	switch {
	case !ok:
		words = "undefined error"
	case !Defined(layer, etype, code):
		words += ": undefined code"
	default:
		if w := codeWords[[3]uint8{layer, etype, code}]; w != "" {
			words += ": " + w
		}
	}
	return words
}
