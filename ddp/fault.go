// This file is the vocabulary for refused accesses to memory.

package ddp

// A Fault says why an access to memory by STag and offset was refused. It is
// the common language of the layers about protection: DDP turns it into a
// Tagged Buffer error (RFC 5041 §7.2), RDMAP into a Remote Protection error
// (RFC 5040 §4.8), the Verbs into a completion status (Verbs §9.5.2).
type Fault uint8

const (
	NoFault          Fault = iota
	FaultSTag              // no such STag, or it is not valid
	FaultBounds            // outside the octets registered
	FaultAccess            // the STag or the stream lacks the right
	FaultAssociation       // the STag is not of this stream or protection domain
	FaultWrap              // offset + length exceeds 2^64
	FaultDisabled          // the stream takes no access of this kind at all
	FaultMemory            // the system refuses the access: a page that is not mapped, or lacks the right
)

var faultNames = [...]string{
	NoFault:          "no fault",
	FaultSTag:        "invalid STag",
	FaultBounds:      "base or bounds violation",
	FaultAccess:      "access rights violation",
	FaultAssociation: "STag not associated with the stream",
	FaultWrap:        "tagged offset wraps",
	FaultDisabled:    "access not enabled on the stream",
	FaultMemory:      "the memory itself cannot be accessed",
}

var faultReasons = [...]string{
	NoFault:          "nothing is wrong",
	FaultSTag:        "no memory has this STag, or not any more",
	FaultBounds:      "the memory does not have all of these octets",
	FaultAccess:      "the memory lacks the right",
	FaultAssociation: "the memory is of another protection domain or stream",
	FaultWrap:        "offset and length exceed 2^64",
	FaultDisabled:    "the queue pair does not enable it",
	FaultMemory:      "the memory itself cannot be accessed: a page is not mapped, or lacks the right",
}

// Reason says what is wrong, as the end of a sentence about an access.
func (f Fault) Reason() string {
	if int(f) < len(faultReasons) {
		return faultReasons[f]
	}
	return f.String()
}

func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return "unknown fault"
}
