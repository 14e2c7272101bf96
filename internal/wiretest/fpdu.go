// This file frames and unframes ULPDUs after the text of RFC 5044 §4, run by run
// between the places where markers go.

package wiretest

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// A Framing is one direction of a stream of FPDUs.
type Framing struct {
	CRC     bool // the CRC field holds a CRC32C; otherwise zeros
	Markers bool

	Skew uint16 // is added to what each marker sent says: they lie

	pos uint64 // octets of the stream so far, markers included
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Append appends the FPDU of ulpdu to dst.
func (f *Framing) Append(dst, ulpdu []byte) []byte {
	fpdu := len(dst)
	start := -1 // index of the length field
	mark := func() {
		if !f.Markers || f.pos%512 != 0 {
			return
		}
		pointer := 0
		if start >= 0 {
			pointer = len(dst) - start
		}
		dst = binary.BigEndian.AppendUint32(dst, uint32(uint16(pointer)+f.Skew))
		f.pos += 4
	}
	put := func(octets ...byte) {
		for len(octets) > 0 {
			mark()
			if start < 0 {
				start = len(dst)
			}
			n := f.run(len(octets))
			dst = append(dst, octets[:n]...)
			octets = octets[n:]
			f.pos += uint64(n)
		}
	}
	put(byte(len(ulpdu)>>8), byte(len(ulpdu)))
	put(ulpdu...)
	put(make([]byte, pad(len(ulpdu)))...)
	mark()
	sum := uint32(0)
	if f.CRC {
		sum = crc32.Checksum(dst[fpdu:], castagnoli)
	}
	f.pos += 4
	return binary.LittleEndian.AppendUint32(dst, sum) // RFC 3720: lowest octet first
}

// run is how many of n octets come before the next marker, which is not due now.
func (f *Framing) run(n int) int {
	if !f.Markers {
		return n
	}
	return min(n, 512-int(f.pos%512))
}

// pad is the number of octets between a ULPDU of n octets and its CRC.
func pad(n int) int { return (4 - (2+n)%4) % 4 }

// Read reads one FPDU and returns its ULPDU. It is strict: pad and reserved
// octets have to be zero, markers and CRC right. The error is io.EOF if the
// stream has ended before the FPDU.
func (f *Framing) Read(r *bufio.Reader) ([]byte, error) {
	if _, err := r.Peek(1); err != nil {
		return nil, err
	}
	var raw []byte
	start := -1
	take := func(n int) error {
		part := make([]byte, n)
		_, err := io.ReadFull(r, part)
		raw = append(raw, part...)
		f.pos += uint64(n)
		return err
	}
	mark := func() error {
		if !f.Markers || f.pos%512 != 0 {
			return nil
		}
		want := uint32(0)
		if start >= 0 {
			want = uint32(len(raw) - start)
		}
		if err := take(4); err != nil {
			return err
		}
		if got := binary.BigEndian.Uint32(raw[len(raw)-4:]); got != want {
			return fmt.Errorf("marker at stream position %d is %08x, expected %08x", f.pos-4, got, want)
		}
		return nil
	}
	field := func(n int) (octets []byte, err error) {
		for len(octets) < n {
			if err = mark(); err != nil {
				return nil, err
			}
			if start < 0 {
				start = len(raw)
			}
			run := f.run(n - len(octets))
			if err = take(run); err != nil {
				return nil, err
			}
			octets = append(octets, raw[len(raw)-run:]...)
		}
		return octets, nil
	}
	length, err := field(2)
	if err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(length))
	body, err := field(n + pad(n))
	if err == nil {
		err = mark()
	}
	if err != nil {
		return nil, fmt.Errorf("in an FPDU of %d octets: %w", n, err)
	}
	sum := crc32.Checksum(raw, castagnoli)
	if err := take(4); err != nil {
		return nil, err
	}
	if got := binary.LittleEndian.Uint32(raw[len(raw)-4:]); f.CRC && got != sum {
		return nil, fmt.Errorf("CRC of an FPDU of %d octets is %08x, expected %08x", n, got, sum)
	}
	for _, b := range body[n:] {
		if b != 0 {
			return nil, fmt.Errorf("pad of an FPDU of %d octets is % x, expected zeros", n, body[n:])
		}
	}
	return body[:n:n], nil
}
