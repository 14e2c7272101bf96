// This file says what DDP asks of the protocol above it.

package ddp

// ULP is the receiving side of the protocol above DDP. [Receiver] calls it, from
// the one goroutine that receives. Headers it is given are valid until the
// method returns.
//
// An error that a method returns ends the reception: the Receiver returns it unchanged to
// its caller, and drops everything that arrives later. [Receiver.Offending] is the segment
// at fault.
type ULP interface {
	// AdmitTagged sees every tagged segment of n payload octets after its
	// length and version were found good, before anything else is looked at:
	// the ULP checks its own octet. When n is 0 the STag and TO must not be
	// looked at (RFC 5041 §5.2).
	AdmitTagged(h *Tagged, n int) error

	// AdmitUntagged sees every untagged segment after its length, version and
	// queue number were found good, before its MSN is looked at and before a
	// buffer is asked for.
	AdmitUntagged(h *Untagged, n int) error

	// PlaceTagged appends to dst the memory for exactly n octets at (STag, TO)
	// and holds it until Release or Idle; or it returns a Fault, and nothing is
	// held. It checks the STag, its association, the rights, and then that
	// [TO, TO+n) neither wraps nor leaves the bounds. Never called with n 0.
	PlaceTagged(dst [][]byte, h *Tagged, n int) ([][]byte, Fault)

	// Buffer readies the untagged buffer of queue qn for message msn and
	// returns its size in octets; ok is false when there is none. It is called
	// once a message, at its first segment, empty messages included.
	Buffer(qn, msn uint32) (size uint64, ok bool, err error)

	// PlaceUntagged appends to dst the memory for exactly n octets at offset
	// h.MO of the buffer that queue h.QN has in use, and holds it until Release or Idle;
	// with an error nothing is held. [MO, MO+n) is within the size that Buffer
	// returned. Never called with n 0.
	PlaceUntagged(dst [][]byte, h *Untagged, n int) ([][]byte, error)

	// Unwritable reports that memory which PlaceUntagged gave cannot be written, and
	// why. It returns the error that ends the reception. For memory of PlaceTagged the
	// error is a [FaultMemory].
	Unwritable(h *Untagged, cause error) error

	// Release ends every hold. It is called before the LLP waits for the peer
	// in the middle of a segment. Between whole segments the ULP may keep
	// holds until Idle.
	Release()

	// DeliverTagged reports that a tagged message is wholly in place: h is the
	// header of its last segment, n that segment's payload. It carries the
	// RsvdULP and STag, as RFC 5041 §4.2 asks.
	DeliverTagged(h *Tagged, n int) error

	// DeliverUntagged reports that an untagged message of length octets is wholly
	// in place: h is the header of its last segment (RFC 5041 §5.4).
	DeliverUntagged(h *Untagged, length uint32) error

	// Idle reports that all that has arrived was handed over and the stream is
	// about to wait for more.
	Idle()
}
