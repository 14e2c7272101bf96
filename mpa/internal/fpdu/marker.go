// Markers (RFC 5044 §4.2, §4.3): four octets at every multiple of 512 of the
// stream position, which counts all octets of Full Operation in one direction,
// markers included, from 0.
//
//	 0                   1                   2                   3
//	+-------------------------------+-------------------------------+
//	|         Reserved (0)          |            FPDUPTR            |
//	+-------------------------------+-------------------------------+
//
// FPDUPTR counts the octets from the ULPDU_Length field of the FPDU to the
// marker; it is 0 in a marker between two FPDUs, which belongs to the second.
// Every field of an FPDU but the ULPDU is aligned to four octets, so a marker
// never splits a length or a CRC.

package fpdu

import "encoding/binary"

const (
	MarkerSize    = 4
	MarkerSpacing = 512
)

// markersIn is the number of markers in an FPDU of raw octets (markers not
// counted) that begins at stream position pos, one that leads it included.
func markersIn(pos uint64, raw int) int {
	gap := toMarker(pos)
	if raw <= gap {
		return 0
	}
	return 1 + (raw-gap-1)/(MarkerSpacing-MarkerSize)
}

// toMarker is the number of octets from pos to the next marker, 0 when one is
// due at pos.
func toMarker(pos uint64) int {
	return int(-pos % MarkerSpacing)
}

func putMarker(b []byte, fpduptr int) {
	binary.BigEndian.PutUint16(b, 0)
	binary.BigEndian.PutUint16(b[2:], uint16(fpduptr))
}

// fpduptr reads a marker. Its reserved half is ignored, the two low bits of
// the pointer are taken as zero (RFC 5044 §4.2).
func fpduptr(marker []byte) int {
	return int(binary.BigEndian.Uint16(marker[2:]) &^ 3)
}

// A markedFrame is filled from the front, a marker put wherever one is due.
type markedFrame struct {
	b     []byte
	at    int // octets filled
	next  int // offset of the next marker
	start int // offset of the ULPDU_Length field
}

func (m *markedFrame) mark() {
	if m.at == m.next {
		putMarker(m.b[m.at:], m.at-m.start)
		m.at += MarkerSize
		m.next += MarkerSpacing
	}
}

func (m *markedFrame) put(x []byte) {
	for len(x) > 0 {
		m.mark()
		k := copy(m.b[m.at:min(m.next, len(m.b))], x)
		m.at += k
		x = x[k:]
	}
}

// putMarked fills f with the FPDU that begins at pos, up to its CRC field.
func putMarked(f []byte, pos uint64, n int, header []byte, payload [][]byte) {
	m := markedFrame{b: f, next: toMarker(pos)}
	m.mark()
	m.start = m.at
	var field [4]byte
	binary.BigEndian.PutUint16(field[:], uint16(n))
	m.put(field[:LengthSize])
	m.put(header)
	for _, p := range payload {
		m.put(p)
	}
	clear(field[:])
	m.put(field[:Padding(n)])
	m.mark() // RFC 5044 §4.3: one due right before the CRC is still inside
}

// stripMarkers takes the whole frame f, which begins at pos with a ULPDU of n
// octets, and closes the gaps that the markers leave in the ULPDU, in place.
// agree is false if a marker points elsewhere than to the length field.
func stripMarkers(f []byte, pos uint64, n int) (ulpdu []byte, agree bool) {
	agree = true
	start := 0
	next := toMarker(pos)
	if next == 0 {
		agree = fpduptr(f) == 0
		start = MarkerSize
		next = MarkerSpacing
	}
	from := start + LengthSize
	end := len(f) - CRCSize
	to := from
	for next < end {
		to += copy(f[to:], f[from:next])
		agree = agree && fpduptr(f[next:]) == next-start
		from = next + MarkerSize
		next += MarkerSpacing
	}
	copy(f[to:], f[from:end])
	return f[start+LengthSize:][:n:n], agree
}
