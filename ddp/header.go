// This file is the codec of the two DDP headers (RFC 5041 §4): pure functions
// on octets, which neither allocate nor do I/O.

package ddp

import (
	"encoding/binary"
	"slices"
)

// Lengths of the DDP headers in octets.
const (
	TaggedLen   = 14 // RFC 5041 §4.2
	UntaggedLen = 18 // RFC 5041 §4.3
)

// The DDP Control Field, the first octet of every header (RFC 5041 §4.1):
//
//	 0   1   2   3   4   5   6   7
//	+---+---+---+---+---+---+---+---+
//	| T | L |     Resrv     |  DV   |
//	+---+---+---+---+---+---+---+---+
//
// Resrv is zero when sent and never looked at when received.
const (
	flagTagged  = 0x80
	flagLast    = 0x40
	versionMask = 0x03
)

// IsTagged reports whether the segment u, which has at least one octet, begins
// with the header of a Tagged Buffer (T bit, RFC 5041 §4.1).
func IsTagged(u []byte) bool { return u[0]&flagTagged != 0 }

// HeaderLen is the length in octets of the DDP header that the segment u,
// which has at least one octet, begins with.
func HeaderLen(u []byte) int {
	if IsTagged(u) {
		return TaggedLen
	}
	return UntaggedLen
}

// Tagged is the header of a segment for a Tagged Buffer (RFC 5041 §4.2):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|T|L| Resrv | DV|   RsvdULP     |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                              STag                             |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                                                               |
//	+                               TO                              +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Tagged struct {
	Last    bool   // L: the last segment of its message
	Version uint8  // DV, 0 to 3
	RsvdULP uint8  // belongs to the ULP; DDP carries it unread
	STag    uint32 // steering tag of the Tagged Buffer at the Data Sink
	TO      uint64 // tagged offset of the payload's first octet
}

// Append appends the header's 14 octets to dst.
func (h *Tagged) Append(dst []byte) []byte {
	return appendTagged(dst, h.Last, h.Version, h.RsvdULP, h.STag, h.TO)
}

// appendTagged is Append for a header that is nowhere yet: it would have to be filled first.
func appendTagged(dst []byte, last bool, version, rsvdULP uint8, stag uint32, to uint64) []byte {
	dst, b := extend(dst, TaggedLen)
	b[0], b[1] = control(flagTagged, last, version), rsvdULP
	binary.BigEndian.PutUint32(b[2:], stag)
	binary.BigEndian.PutUint64(b[6:], to)
	return dst
}

// Parse reads the header from the start of u. It reports false, with h
// unchanged, when u is shorter than 14 octets or its T bit is not set.
func (h *Tagged) Parse(u []byte) bool {
	if len(u) < TaggedLen || !IsTagged(u) {
		return false
	}
	h.Last = u[0]&flagLast != 0
	h.Version = u[0] & versionMask
	h.RsvdULP = u[1]
	h.STag = binary.BigEndian.Uint32(u[2:])
	h.TO = binary.BigEndian.Uint64(u[6:])
	return true
}

// Untagged is the header of a segment for an Untagged Buffer (RFC 5041 §4.3):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|T|L| Resrv | DV|                RsvdULP                        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|    RsvdULP    |                   QN ...
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// In octets: 0 control, 1-5 RsvdULP, 6-9 QN, 10-13 MSN, 14-17 MO.
type Untagged struct {
	Last    bool    // L: the last segment of its message
	Version uint8   // DV, 0 to 3
	RsvdULP [5]byte // belongs to the ULP; DDP carries it unread
	QN      uint32  // queue number
	MSN     uint32  // message sequence number, from 1 on each queue
	MO      uint32  // message offset of the payload's first octet
}

// Append appends the header's 18 octets to dst.
func (h *Untagged) Append(dst []byte) []byte {
	return appendUntagged(dst, h.Last, h.Version, &h.RsvdULP, h.QN, h.MSN, h.MO)
}

// appendUntagged is to Untagged what appendTagged is to Tagged.
func appendUntagged(dst []byte, last bool, version uint8, rsvdULP *[5]byte, qn, msn, mo uint32) []byte {
	dst, b := extend(dst, UntaggedLen)
	b[0] = control(0, last, version)
	copy(b[1:], rsvdULP[:])
	binary.BigEndian.PutUint32(b[6:], qn)
	binary.BigEndian.PutUint32(b[10:], msn)
	binary.BigEndian.PutUint32(b[14:], mo)
	return dst
}

// extend makes dst longer by n octets, b, to be filled where they are: a copy of what has
// just been written octet by octet has to wait for it.
func extend(dst []byte, n int) (longer, b []byte) {
	at := len(dst)
	longer = slices.Grow(dst, n)[:at+n]
	return longer, longer[at:]
}

// Parse reads the header from the start of u. It reports false, with h
// unchanged, when u is shorter than 18 octets or its T bit is set.
func (h *Untagged) Parse(u []byte) bool {
	if len(u) < UntaggedLen || IsTagged(u) {
		return false
	}
	h.Last = u[0]&flagLast != 0
	h.Version = u[0] & versionMask
	h.RsvdULP = [5]byte(u[1:6])
	h.QN = binary.BigEndian.Uint32(u[6:])
	h.MSN = binary.BigEndian.Uint32(u[10:])
	h.MO = binary.BigEndian.Uint32(u[14:])
	return true
}

func control(tagged byte, last bool, version uint8) byte {
	c := tagged | version&versionMask
	if last {
		c |= flagLast
	}
	return c
}
