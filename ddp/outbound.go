// This file cuts the messages that the ULP submits into segments
// (RFC 5041 §5.2).

package ddp

// minMULPDU is the smallest MULPDU that a lower layer may announce
// (RFC 5044 §4.5).
const minMULPDU = 128

// Outbound is one message on its way out, being cut into segments. It holds no
// payload: it says which octets of the message each segment carries. The zero
// value is done; a Start method readies it for one message, and it can be used
// again for the next. Not safe for concurrent use.
//
// One message is submitted whole before the next begins, so segments leave in
// the order of the messages and in increasing TO or MO (RFC 5041 §5.3).
type Outbound struct {
	tagged   bool
	pending  bool // a segment is still to come: a message of no octets has one, too
	version  uint8
	rsvdULP  [5]byte
	stagOrQN uint32
	msn      uint32
	to       uint64 // of the message's first octet
	length   uint32
	sent     uint32 // octets in the segments cut so far
}

// StartTagged readies o for a message of length octets to (stag, to). The ULP
// gives the first TO; a message longer than 2^32-1 octets cannot be expressed
// (RFC 5041 §5.2).
func (o *Outbound) StartTagged(version, rsvdULP uint8, stag uint32, to uint64, length uint32) {
	// Field by field: a literal would be made apart and copied.
	o.tagged, o.pending, o.version, o.rsvdULP[0] = true, true, version, rsvdULP
	o.stagOrQN, o.to, o.length, o.sent = stag, to, length, 0
}

// StartUntagged readies o for message msn of length octets to queue qn.
// [Sequence] knows which msn comes next.
func (o *Outbound) StartUntagged(version uint8, rsvdULP [5]byte, qn, msn, length uint32) {
	o.tagged, o.pending, o.version, o.rsvdULP = false, true, version, rsvdULP
	o.stagOrQN, o.msn, o.length, o.sent = qn, msn, length, 0
}

// Done reports that every segment of the message has been cut.
func (o *Outbound) Done() bool { return !o.pending }

// Offset is how many octets of the message have been cut into segments: where
// the payload of the next one starts.
func (o *Outbound) Offset() uint32 { return o.sent }

// Remaining is the number of payload octets not yet cut into segments.
func (o *Outbound) Remaining() uint32 { return o.length - o.sent }

// Peek is the number of payload octets that Next would give the next segment,
// so that memory for them can be looked up before the segment is cut.
func (o *Outbound) Peek(mulpdu int) int {
	room := max(mulpdu, minMULPDU) - UntaggedLen
	if o.tagged {
		room += UntaggedLen - TaggedLen
	}
	if left := o.Remaining(); uint64(left) < uint64(room) {
		return int(left)
	}
	return room
}

// Next cuts the next segment, which with its header is no larger than mulpdu
// octets. It appends the DDP header to dst; the payload is octets
// [off, off+n) of the message. The MULPDU may differ from call to call: what
// was cut stays as it is (RFC 5041 §3). No LLP offers less than 128 octets, and
// less counts as 128. Next must not be called on a message that is done.
func (o *Outbound) Next(mulpdu int, dst []byte) (hdr []byte, off uint32, n int, last bool) {
	off, n = o.sent, o.Peek(mulpdu)
	hdr, last = o.head(n, dst)
	o.advance(n)
	return hdr, off, n, last
}

// head appends to dst the header of the next segment, of n octets of payload.
func (o *Outbound) head(n int, dst []byte) (hdr []byte, last bool) {
	off := o.sent
	// The segment that takes the last octet is the last, so that a zero-length
	// message is exactly one segment (RFC 5041 §5.2).
	last = off+uint32(n) == o.length
	if o.tagged {
		// RFC 5041 §5.2: initial TO plus the offset in the message. It ends
		// at 2^64, which is 0, for memory advertised at the very top.
		return appendTagged(dst, last, o.version, o.rsvdULP[0], o.stagOrQN, o.to+uint64(off)), last
	}
	return appendUntagged(dst, last, o.version, &o.rsvdULP, o.stagOrQN, o.msn, off), last
}

// advance goes on behind a segment of n octets of payload.
func (o *Outbound) advance(n int) {
	o.sent += uint32(n)
	o.pending = o.sent != o.length
}
