// FPDUs (RFC 5044 §4), written and read run by run between the places of markers.

package iwarptest

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// A Framing makes the FPDUs of one direction of a stream. It counts octets, because
// markers depend on the position in the stream.
type Framing struct {
	CRC     bool // the CRC field holds a CRC32C; otherwise zeros
	Markers bool

	MarkerError uint16 // is added to what each marker sent says

	pos uint64 // octets of the stream so far, markers included
}

const markerInterval = 512

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// pad returns the number of octets between a ULPDU of n octets and its CRC.
func pad(n int) int { return (4 - (2+n)%4) % 4 }

// markerDue reports whether a marker comes next.
func (f *Framing) markerDue() bool { return f.Markers && f.pos%markerInterval == 0 }

// untilMarker returns how many of n octets come before the next marker, which is
// not due now.
func (f *Framing) untilMarker(n int) int {
	if !f.Markers {
		return n
	}
	return min(n, markerInterval-int(f.pos%markerInterval))
}

// appendFPDU appends the FPDU of ulpdu to dst. ulpdu has at most 65535 octets.
func (f *Framing) appendFPDU(dst, ulpdu []byte) []byte {
	w := fpduWriter{f: f, start: -1}
	w.field(byte(len(ulpdu)>>8), byte(len(ulpdu)))
	w.field(ulpdu...)
	w.field(make([]byte, pad(len(ulpdu)))...)
	w.marker()
	sum := uint32(0)
	if f.CRC {
		sum = crc32.Checksum(w.raw, castagnoli)
	}
	f.pos += 4
	dst = append(dst, w.raw...)
	return binary.LittleEndian.AppendUint32(dst, sum) // RFC 3720: lowest octet first
}

// An fpduWriter is an FPDU that is being made.
type fpduWriter struct {
	f     *Framing
	raw   []byte
	start int // index of the length field in raw; negative before it
}

func (w *fpduWriter) marker() {
	if !w.f.markerDue() {
		return
	}
	pointer := 0
	if w.start >= 0 {
		pointer = len(w.raw) - w.start
	}
	w.raw = binary.BigEndian.AppendUint32(w.raw, uint32(uint16(pointer)+w.f.MarkerError))
	w.f.pos += 4
}

func (w *fpduWriter) field(octets ...byte) {
	for len(octets) > 0 {
		w.marker()
		if w.start < 0 {
			w.start = len(w.raw)
		}
		n := w.f.untilMarker(len(octets))
		w.raw = append(w.raw, octets[:n]...)
		octets = octets[n:]
		w.f.pos += uint64(n)
	}
}

// readFPDU reads one FPDU and returns its ULPDU. It is strict: pad octets have to be
// zero, markers and CRC right. The error is io.EOF if the stream ends before the
// FPDU, and wraps io.ErrUnexpectedEOF if it ends within.
func (f *Framing) readFPDU(from *bufio.Reader) ([]byte, error) {
	if _, err := from.Peek(1); err != nil {
		return nil, err
	}
	r := fpduReader{f: f, from: from, start: -1}
	length, err := r.field(2)
	if err != nil {
		return nil, fmt.Errorf("in the length of an FPDU: %w", err)
	}
	n := int(binary.BigEndian.Uint16(length))
	body, err := r.body(n)
	if err != nil {
		return nil, fmt.Errorf("in an FPDU whose ULPDU has %d octets: %w", n, err)
	}
	return body[:n:n], nil
}

// An fpduReader is an FPDU that is being read.
type fpduReader struct {
	f     *Framing
	from  *bufio.Reader
	raw   []byte
	start int // index of the length field in raw; negative before it
}

// body reads what follows the length field: a ULPDU of n octets, pad, and CRC.
func (r *fpduReader) body(n int) ([]byte, error) {
	body, err := r.field(n + pad(n))
	if err != nil {
		return nil, err
	}
	if err := r.marker(); err != nil {
		return nil, err
	}
	if err := r.crc(); err != nil {
		return nil, err
	}
	for _, b := range body[n:] {
		if b != 0 {
			return nil, fmt.Errorf("the pad is % x, expected zeros", body[n:])
		}
	}
	return body, nil
}

// field reads n octets, and the markers before and between them.
func (r *fpduReader) field(n int) (field []byte, err error) {
	for len(field) < n {
		if err := r.marker(); err != nil {
			return nil, err
		}
		if r.start < 0 {
			r.start = len(r.raw)
		}
		run, err := r.octets(r.f.untilMarker(n - len(field)))
		if err != nil {
			return nil, err
		}
		field = append(field, run...)
	}
	return field, nil
}

func (r *fpduReader) marker() error {
	if !r.f.markerDue() {
		return nil
	}
	expected := uint32(0)
	if r.start >= 0 {
		expected = uint32(len(r.raw) - r.start)
	}
	b, err := r.octets(4)
	if err != nil {
		return err
	}
	if got := binary.BigEndian.Uint32(b); got != expected {
		return fmt.Errorf("the marker at stream position %d is %08x, expected %08x", r.f.pos-4, got, expected)
	}
	return nil
}

func (r *fpduReader) crc() error {
	sum := crc32.Checksum(r.raw, castagnoli)
	b, err := r.octets(4)
	if err != nil {
		return err
	}
	if got := binary.LittleEndian.Uint32(b); r.f.CRC && got != sum {
		return fmt.Errorf("the CRC is %08x, expected %08x", got, sum)
	}
	return nil
}

// octets reads the next n octets of the stream.
func (r *fpduReader) octets(n int) ([]byte, error) {
	part := make([]byte, n)
	_, err := io.ReadFull(r.from, part)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	r.raw = append(r.raw, part...)
	r.f.pos += uint64(n)
	return part, err
}
