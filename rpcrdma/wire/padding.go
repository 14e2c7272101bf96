// This file holds the arithmetic of RDMA_MSGP, whose sender puts pads before
// the data of long opaque items, so that a receiver whose buffers are chained
// finds the data aligned (RFC 5666 §3.9). RFC 8166 §4.6.1 has no one send it.

package wire

// MaxAlign is the largest alignment that an RDMA_MSGP may have, in octets.
const MaxAlign = 64 << 10

// Padding says where the pads of an RDMA_MSGP are. They stand between the count
// word and the data of variable-length opaque and string items of arguments,
// never in a credential or verifier. Only a receiver that knows the items can find them.
type Padding struct {
	Align     uint32 // of the data, in octets from the first octet of the Send; 0 and 1 pad nothing
	Threshold uint32 // the item size from which on pads are put
	Header    int    // octets of the header

	// Above pads only what is longer than Threshold. RFC 5666 says "at or
	// above" in one place and "exceeds" in another; a receiver that has not
	// used up the message exactly may try the other reading.
	Above bool
}

// Padding returns the padding of an RDMA_MSGP, by the reading "at or above".
func (h *Header) Padding() Padding {
	return Padding{Align: h.Align, Threshold: h.Threshold, Header: h.Len()}
}

// Pad returns the octets of padding before the data of an item of count octets,
// which without it would be at offset in what follows the header, earlier pads
// included. The pad of an item is less than Align.
func (p Padding) Pad(offset int, count uint32) int {
	if p.Align <= 1 || count < p.Threshold || p.Above && count == p.Threshold {
		return 0
	}
	align := uint64(p.Align)
	return int((align - (uint64(p.Header)+uint64(offset))%align) % align)
}

// MSGPThreshold returns a threshold by which item alone is padded, whichever
// way it is read: it is above other, the longest of all other opaque items and
// of the credential and verifier, and below item, the longest. There is none
// unless item is longer by two octets; the message goes as RDMA_MSG then.
func MSGPThreshold(other, item uint32) (threshold uint32, ok bool) {
	if item < 2 || other > item-2 {
		return 0, false
	}
	return other + 1, true
}
