// This file holds segments and the chunks that they make (RFC 8166 §3.4), with
// the arithmetic of XDR roundup.

package wire

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Sizes on the wire, in octets.
const (
	segmentLen     = 16
	ReadSegmentLen = 20
)

// A Segment is a range of the requester's registered memory (RFC 8166 §3.4.3).
// In octets: 0-3 handle, 4-7 length, 8-15 offset.
type Segment struct {
	Handle uint32 // STag
	Length uint32 // octets; zero is an empty segment
	Offset uint64 // tagged offset of the first octet
}

func (s Segment) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, s.Handle)
	dst = binary.BigEndian.AppendUint32(dst, s.Length)
	return binary.BigEndian.AppendUint64(dst, s.Offset)
}

// parseSegment reads the first 16 octets of b.
func parseSegment(b []byte) Segment {
	return Segment{
		Handle: binary.BigEndian.Uint32(b),
		Length: binary.BigEndian.Uint32(b[4:]),
		Offset: binary.BigEndian.Uint64(b[8:]),
	}
}

// wraps reports whether the segment goes beyond the last tagged offset.
func (s Segment) wraps() bool {
	return s.Length > 0 && s.Offset+uint64(s.Length-1) < s.Offset
}

// Cut returns n octets of s that begin at octet from.
func (s Segment) Cut(from, n int) Segment {
	return Segment{Handle: s.Handle, Length: uint32(n), Offset: s.Offset + uint64(from)}
}

// A ReadSegment is an entry of the Read list. All entries of equal Position, in
// list order, are one Read chunk (RFC 8166 §3.4.5). In octets: 0-3 position,
// 4-19 segment.
type ReadSegment struct {
	Position uint32 // of the chunk's first octet in the unreduced Payload stream
	Segment
}

// A WriteChunk is memory for one result, or for a whole reply. With no segments
// it is empty; with segments that are all of length zero it is unused, or
// offers nothing (RFC 8166 §3.4.6).
type WriteChunk []Segment

// Length returns the octets in all segments.
func (c WriteChunk) Length() (n uint64) {
	for _, s := range c {
		n += uint64(s.Length)
	}
	return n
}

// SortReads sorts the entries of a Read list by position. Those of one position
// stay in list order, which is the order of their octets.
func SortReads(list []ReadSegment) {
	byPosition := func(a, b ReadSegment) int { return cmp.Compare(a.Position, b.Position) }
	if !slices.IsSortedFunc(list, byPosition) {
		slices.SortStableFunc(list, byPosition)
	}
}

// NextChunk cuts the first Read chunk off a sorted list, which has one, and
// counts its octets.
func NextChunk(sorted []ReadSegment) (chunk, rest []ReadSegment, octets uint64) {
	n := 0
	for n < len(sorted) && sorted[n].Position == sorted[0].Position {
		octets += uint64(sorted[n].Length)
		n++
	}
	return sorted[:n], sorted[n:], octets
}

// Pad returns the 0 to 3 octets of roundup that follow n octets in XDR.
func Pad(n uint64) int { return int(-n & 3) }

// Holds reports whether a chunk of the given length holds an item whose count
// word is count: without its roundup, or with it (RFC 8166 §3.4.5.2; of Write
// chunks RFC 5666 §3.7 wants it with, RFC 8166 §3.4.6.2 without).
func Holds(length uint64, count uint32) bool {
	return length == uint64(count) || length == uint64(count)+uint64(Pad(uint64(count)))
}

// ReadChunkLength returns the length of the Read chunk to send for an item of
// count octets. The only chunk of a call goes without its roundup (RFC 8166
// §3.4.5.2: SHOULD NOT). Where another chunk follows or precedes it, a position
// zero chunk too, roundup goes with it, because Linux's server puts none
// between chunks that it fetches.
func ReadChunkLength(count uint32, only bool) uint64 {
	if only {
		return uint64(count)
	}
	return uint64(count) + uint64(Pad(uint64(count)))
}
