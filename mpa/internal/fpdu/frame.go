// The frame of Full Operation (RFC 5044 §4.1), without the markers that may
// stand in and before it:
//
//	 0                   1                   2                   3
//	+-------------------------------+-------------------------------+
//	|         ULPDU_Length          |                               |
//	+-------------------------------+                               +
//	~                             ULPDU                             ~
//	+                               +-------------------------------+
//	|                               |     PAD (0-3 octets, zero)    |
//	+-------------------------------+-------------------------------+
//	|                              CRC                              |
//	+---------------------------------------------------------------+

package fpdu

import (
	"encoding/binary"
	"fmt"
)

const (
	LengthSize = 2 // octets of the ULPDU_Length field

	// MaxULPDU is the longest ULPDU, in octets.
	MaxULPDU = 64768

	// MaxSize is the longest frame, in octets: one of MaxULPDU octets with
	// the most markers.
	MaxSize = 65288

	// fuseFrom, in octets: in longer ULPDUs payload is digested as it is copied.
	// In shorter ones one digest of all is cheaper than three of parts.
	fuseFrom = 512
)

// Padding is the number of PAD octets behind a ULPDU of n octets.
func Padding(n int) int { return -(n + LengthSize) & 3 }

// rawSize is the length of the FPDU of n ULPDU octets, without markers.
func rawSize(n int) int { return (LengthSize+n+3)&^3 + CRCSize }

// Size is the length on the wire, in octets, of the FPDU of n ULPDU octets that begins at
// stream position pos.
func Size(pos uint64, n int, markers bool) int {
	size := rawSize(n)
	if markers {
		size += MarkerSize * markersIn(pos, size)
	}
	return size
}

// put fills f, of Size octets, with the FPDU whose ULPDU is header and
// payload, n octets together.
func put(f []byte, pos uint64, n int, header []byte, payload [][]byte, markers, crc bool) {
	if markers {
		putMarked(f, pos, n, header, payload)
		putCRC(f, crc)
		return
	}
	if crc && n >= fuseFrom {
		putFused(f, n, header, payload)
		return
	}
	at := putStart(f, n, header)
	end := len(f) - CRCSize
	for _, p := range payload {
		at += copy(f[at:], p)
	}
	clear(f[at:end])
	sum := uint32(0)
	if crc {
		sum = updateCRC(0, f[:end])
	}
	storeCRC(f[end:], sum)
}

// putFused is put that digests payload while it is copied.
func putFused(f []byte, n int, header []byte, payload [][]byte) {
	at := putStart(f, n, header)
	end := len(f) - CRCSize
	sum := updateCRC(0, f[:at])
	for _, p := range payload {
		sum = copyCRC(sum, f[at:], p)
		at += len(p)
	}
	if pad := f[at:end]; len(pad) > 0 {
		clear(pad)
		sum = updateCRC(sum, pad)
	}
	storeCRC(f[end:], sum)
}

// putStart puts what stands before the payload when there are no markers.
func putStart(f []byte, n int, header []byte) int {
	binary.BigEndian.PutUint16(f, uint16(n))
	return LengthSize + copy(f[LengthSize:], header)
}

// At finds the frame at the front of b, which is at stream position pos:
// the length of its ULPDU and of all of it. ok is false while b is too short
// to tell.
func At(b []byte, pos uint64, markers bool) (n, size int, ok bool) {
	if markers && pos%MarkerSpacing == 0 {
		if len(b) < MarkerSize+LengthSize {
			return 0, 0, false
		}
		n = int(binary.BigEndian.Uint16(b[MarkerSize:]))
	} else {
		if len(b) < LengthSize {
			return 0, 0, false
		}
		n = int(binary.BigEndian.Uint16(b))
	}
	return n, Size(pos, n, markers), true
}

// Open validates the whole frame f of n ULPDU octets, which begins at pos, and
// returns its ULPDU, a part of f. With markers, f is changed.
func Open(f []byte, pos uint64, n int, markers, crc bool) ([]byte, error) {
	// RFC 5044 §8: markers and lengths are compared only once the CRC held.
	if crc && !crcHolds(f) {
		return nil, crcError(f, pos, n)
	}
	if !markers {
		return f[LengthSize:][:n:n], nil
	}
	u, agree := stripMarkers(f, pos, n)
	if !agree {
		return nil, markerError(pos, n)
	}
	return u, nil
}

func crcError(f []byte, pos uint64, n int) error {
	at := len(f) - CRCSize
	return &Damage{CRC: true, Detail: fmt.Sprintf(
		"FPDU at stream position %d, ULPDU length %d: CRC field %08x, expected %08x", pos, n,
		binary.LittleEndian.Uint32(f[at:]), updateCRC(0, f[:at]))}
}

func markerError(pos uint64, n int) error {
	return &Damage{Detail: fmt.Sprintf(
		"FPDU at stream position %d, ULPDU length %d: a marker in it does not point to its length field", pos, n)}
}

// A Damage is what is wrong with a frame: its CRC does not hold, or a marker does not agree
// with its length.
type Damage struct {
	CRC    bool
	Detail string
}

func (d *Damage) Error() string { return d.Detail }
