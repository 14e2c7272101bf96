package mpa

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

import (
	"encoding/binary"
	"fmt"
)

const (
	lengthSize = 2

	// maxFPDU is the longest frame, in octets: one of MaxMULPDU octets with
	// the most markers.
	maxFPDU = 65288

	// fuseFrom, in octets: in longer ULPDUs payload is digested as it is copied.
	// In shorter ones one digest of all is cheaper than three of parts.
	fuseFrom = 512
)

// padding is the number of PAD octets behind a ULPDU of n octets.
func padding(n int) int { return -(n + lengthSize) & 3 }

// rawSize is the length of the FPDU of n ULPDU octets, without markers.
func rawSize(n int) int { return (lengthSize+n+3)&^3 + crcSize }

// fpduSize is its length on the wire when it begins at stream position pos.
func fpduSize(pos uint64, n int, markers bool) int {
	size := rawSize(n)
	if markers {
		size += markerSize * markersIn(pos, size)
	}
	return size
}

// putFPDU fills f, of fpduSize octets, with the FPDU whose ULPDU is header and
// payload, n octets together.
func putFPDU(f []byte, pos uint64, n int, header []byte, payload [][]byte, markers, crc bool) {
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
	end := len(f) - crcSize
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

// putFused is putFPDU that digests payload while it is copied.
func putFused(f []byte, n int, header []byte, payload [][]byte) {
	at := putStart(f, n, header)
	end := len(f) - crcSize
	sum := updateCRC(0, f[:at])
	for _, p := range payload {
		sum = copyCRC(sum, f[at:], p)
		at += len(p)
	}
	clear(f[at:end])
	storeCRC(f[end:], updateCRC(sum, f[at:end]))
}

// putStart puts what stands before the payload when there are no markers.
func putStart(f []byte, n int, header []byte) int {
	binary.BigEndian.PutUint16(f, uint16(n))
	return lengthSize + copy(f[lengthSize:], header)
}

// fpduAt finds the frame at the front of b, which is at stream position pos:
// the length of its ULPDU and of all of it. ok is false while b is too short
// to tell.
func fpduAt(b []byte, pos uint64, markers bool) (n, size int, ok bool) {
	if markers && pos%markerSpacing == 0 {
		if len(b) < markerSize+lengthSize {
			return 0, 0, false
		}
		n = int(binary.BigEndian.Uint16(b[markerSize:]))
	} else {
		if len(b) < lengthSize {
			return 0, 0, false
		}
		n = int(binary.BigEndian.Uint16(b))
	}
	return n, fpduSize(pos, n, markers), true
}

// open validates the whole frame f of n ULPDU octets, which begins at pos, and
// returns its ULPDU, a part of f. With markers, f is changed.
func open(f []byte, pos uint64, n int, markers, crc bool) ([]byte, error) {
	// RFC 5044 §8: markers and lengths are compared only once the CRC held.
	if crc && !crcHolds(f) {
		return nil, crcError(f, pos, n)
	}
	if !markers {
		return f[lengthSize:][:n:n], nil
	}
	u, agree := stripMarkers(f, pos, n)
	if !agree {
		return nil, markerError(pos, n)
	}
	return u, nil
}

func lengthError(pos uint64, n int) error {
	return &Error{Code: CodeMarker, Detail: fmt.Sprintf(
		"FPDU at stream position %d: ULPDU length %d, expected at most %d", pos, n, MaxMULPDU)}
}

func crcError(f []byte, pos uint64, n int) error {
	at := len(f) - crcSize
	return &Error{Code: CodeCRC, Detail: fmt.Sprintf(
		"FPDU at stream position %d, ULPDU length %d: CRC field %08x, expected %08x", pos, n,
		binary.LittleEndian.Uint32(f[at:]), updateCRC(0, f[:at]))}
}

func markerError(pos uint64, n int) error {
	return &Error{Code: CodeMarker, Detail: fmt.Sprintf(
		"FPDU at stream position %d, ULPDU length %d: a marker in it does not point to its length field", pos, n)}
}
