// The private data of RPC-over-RDMA peers (RFC 8797).

package wire

import "bytes"

// PrivateDataLen is the length of the message in octets.
const PrivateDataLen = 8

const (
	privateVersion = 1
	flagR          = 0x01 // the sender supports Remote Invalidation

	sizeUnit = 1024 // octets
)

// privateMagic is the format identifier 0xf6ab0e18 (RFC 8797 §4).
var privateMagic = []byte{0xf6, 0xab, 0x0e, 0x18}

// MaxPrivateSize is the largest size in octets that PrivateData can express.
const MaxPrivateSize = 256 * sizeUnit

// PrivateData describes a peer in its MPA private data (RFC 8797 §4). In octets: 0-3
// format identifier, 4 version, 5 flags (bit 0, the least, is R), 6 send size and 7
// receive size, each in units of 1024 octets, minus one.
type PrivateData struct {
	RemoteInvalidation bool   // R: the sender supports it
	SendSize           uint32 // octets of the longest message that the sender sends
	ReceiveSize        uint32 // octets of the longest message that the sender takes
}

// DefaultPrivateData is assumed for a peer that sends none (RFC 8797 §5.1).
var DefaultPrivateData = PrivateData{SendSize: MinThreshold, ReceiveSize: MinThreshold}

// Append appends the message's 8 octets to dst. Sizes are rounded down to
// multiples of 1024 octets, and brought within 1024 and [MaxPrivateSize].
func (d PrivateData) Append(dst []byte) []byte {
	var flags byte // RFC 8797 §4: the reserved bits are zero
	if d.RemoteInvalidation {
		flags |= flagR
	}
	dst = append(dst, privateMagic...)
	return append(dst, privateVersion, flags, encodeSize(d.SendSize), encodeSize(d.ReceiveSize))
}

// RoundSize returns the size in octets that private data states for n: a
// multiple of 1024, from 1024 to [MaxPrivateSize].
func RoundSize(n int) int { return min(max(n, sizeUnit), MaxPrivateSize) / sizeUnit * sizeUnit }

func encodeSize(octets uint32) byte {
	return byte(min(max(octets, sizeUnit), MaxPrivateSize)/sizeUnit - 1)
}

func decodeSize(b byte) uint32 { return (uint32(b) + 1) * sizeUnit }

// ParsePrivateData looks for the message in b, the private data that came with
// a connection, at any alignment and among what may be others' (RFC 8797 §5.2).
// It takes the first that is whole and of version 1; without one it returns
// [DefaultPrivateData] and false.
func ParsePrivateData(b []byte) (d PrivateData, found bool) {
	for {
		i := bytes.Index(b, privateMagic)
		if i < 0 || len(b)-i < PrivateDataLen {
			return DefaultPrivateData, false
		}
		m := b[i : i+PrivateDataLen]
		if m[4] == privateVersion {
			return PrivateData{
				RemoteInvalidation: m[5]&flagR != 0, // the other bits are ignored
				SendSize:           decodeSize(m[6]),
				ReceiveSize:        decodeSize(m[7]),
			}, true
		}
		b = b[i+len(privateMagic):]
	}
}

// Threshold returns the inline threshold in octets from a side with the private data d to
// one with the private data peer (RFC 8797 §4.2).
func (d PrivateData) Threshold(peer PrivateData) uint32 {
	return threshold(d.SendSize, peer.ReceiveSize)
}

// Invalidates reports whether a responder with the private data d may send replies to peer
// by Send with Invalidate: both have to support it (RFC 8797 §4.1).
func (d PrivateData) Invalidates(peer PrivateData) bool {
	return d.RemoteInvalidation && peer.RemoteInvalidation
}
