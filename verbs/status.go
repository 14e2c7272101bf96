// This file is the status of a completion (Verbs §9.5.2).

package verbs

import "fmt"

// A Status says how a work request ended (Verbs §9.5.2). The zero value is
// success.
type Status uint8

const (
	Success                Status = iota
	Flushed                       // the queue pair left RTS before the request completed
	InvalidWQE                    // the request itself is malformed
	LocalCatastrophic             // the queue pair failed
	RemoteTermination             // the peer terminated the stream because of this request
	InvalidSTag                   // an SGE's STag does not exist or is not valid
	BaseBounds                    // outside the region, or the message is longer than the receive
	AccessViolation               // the STag lacks the right, or this program has none to the memory
	InvalidPD                     // the STag belongs to another protection domain
	WrapError                     // tagged offset + length exceeds 2^64
	InvalidateRefused             // STag to Invalidate had Invalid PD or Access Rights
	ZeroReadResources             // an RDMA Read or atomic on a queue pair with ORD 0
	NotPrivileged                 // QP Not In Privileged Mode
	STagNotInvalid                // STag Not In Invalid State
	InvalidPageSize               //
	InvalidBufferSize             // Invalid Physical Buffer Size
	InvalidBufferListEntry        // Invalid Physical Buffer List entry
	InvalidFBO                    // Invalid First Byte Offset
	InvalidFRLength               // Invalid Length of a Fast-Register
	InvalidFRAccess               // Invalid Access Rights of a Fast-Register
	BufferListTooLong             // Physical Buffer List too long
	InvalidVA                     // Invalid Virtual Address
	InvalidRegion                 //
	InvalidWindow                 //
	InvalidLength                 // the SGL's total is above the maximum, 2^32-1
)

var statusNames = [...]string{
	Success:                "success",
	Flushed:                "flushed",
	InvalidWQE:             "invalid WQE",
	LocalCatastrophic:      "local QP catastrophic error",
	RemoteTermination:      "remote termination error",
	InvalidSTag:            "invalid STag",
	BaseBounds:             "base and bounds violation",
	AccessViolation:        "access violation",
	InvalidPD:              "invalid PD ID",
	WrapError:              "wrap error",
	InvalidateRefused:      "STag to invalidate had invalid PD or access rights",
	ZeroReadResources:      "zero RDMA Read resources",
	NotPrivileged:          "QP not in privileged mode",
	STagNotInvalid:         "STag not in Invalid state",
	InvalidPageSize:        "invalid page size",
	InvalidBufferSize:      "invalid physical buffer size",
	InvalidBufferListEntry: "invalid physical buffer list entry",
	InvalidFBO:             "invalid first byte offset",
	InvalidFRLength:        "invalid length of a Fast-Register",
	InvalidFRAccess:        "invalid access rights specified",
	BufferListTooLong:      "physical buffer list too long",
	InvalidVA:              "invalid virtual address",
	InvalidRegion:          "invalid region",
	InvalidWindow:          "invalid window",
	InvalidLength:          "invalid length",
}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "unknown status"
}

// Error is String: it makes a Status usable as an error, and with errors.Is.
func (s Status) Error() string { return s.String() }

// Err returns nil for Success, and otherwise an error that is s to errors.Is.
// [WC.Err] says why as well.
func (s Status) Err() error {
	if s == Success {
		return nil
	}
	return fmt.Errorf("work request ended: %w", s)
}
