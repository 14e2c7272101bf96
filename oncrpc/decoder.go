// This file holds the Decoder: XDR data read from a slice (RFC 4506 §4).

package oncrpc

import (
	"encoding/binary"
	"fmt"
)

// A Decoder reads XDR data from a slice. It copies strings and allocates nothing
// else: the opaque data that it returns are part of the slice. It checks every
// count against its limit and against the octets that are left.
//
// The first error sticks. After it every method returns zero or an empty value,
// counts are zero, lists end, and [Decoder.Err] returns the error, so code that
// decodes fields needs no error branches. A Decoder is for one goroutine.
type Decoder struct {
	b    []byte
	off  int // of the next item; never beyond len(b)
	what string
	err  *DecodeError
}

// NewDecoder returns a Decoder that reads b from its start. Errors name the data
// by what, such as "WRITE arguments".
func NewDecoder(b []byte, what string) Decoder { return Decoder{b: b, what: what} }

// Pos is the number of octets decoded so far: the XDR position of the next item, or
// after an error that of the item in error.
func (d *Decoder) Pos() int { return d.off }

// Left is the number of octets not yet decoded, 0 after an error.
func (d *Decoder) Left() int {
	if d.err != nil {
		return 0
	}
	return len(d.b) - d.off
}

// Err is the first error, a [*DecodeError], or nil.
func (d *Decoder) Err() error {
	if d.err != nil { // a nil *DecodeError in an error would not be nil
		return d.err
	}
	return nil
}

// End returns the first error, or an error if octets are left.
func (d *Decoder) End() error {
	if left := d.Left(); left > 0 {
		d.fail(ErrTrailing, "%d octets left over", left)
	}
	return d.Err()
}

// Rest returns all that is left, undecoded.
func (d *Decoder) Rest() []byte {
	n := d.Left()
	p := d.b[d.off : d.off+n : d.off+n]
	d.off += n
	return p
}

// Uint32 decodes an unsigned integer or an enumeration (RFC 4506 §4.2, §4.3). The
// caller checks an enumeration's value.
func (d *Decoder) Uint32() uint32 {
	if d.Left() < 4 {
		d.short(4, "unsigned integer")
		return 0
	}
	v := binary.BigEndian.Uint32(d.b[d.off:])
	d.off += 4
	return v
}

// Int32 decodes an integer (RFC 4506 §4.1).
func (d *Decoder) Int32() int32 { return int32(d.Uint32()) }

// Uint64 decodes an unsigned hyper integer (RFC 4506 §4.5).
func (d *Decoder) Uint64() uint64 {
	if d.Left() < 8 {
		d.short(8, "unsigned hyper integer")
		return 0
	}
	v := binary.BigEndian.Uint64(d.b[d.off:])
	d.off += 8
	return v
}

// Int64 decodes a hyper integer (RFC 4506 §4.5).
func (d *Decoder) Int64() int64 { return int64(d.Uint64()) }

// Bool decodes a boolean; only 0 and 1 are valid (RFC 4506 §4.4).
func (d *Decoder) Bool() bool {
	at := d.off
	v := d.Uint32()
	if v > 1 {
		d.failAt(at, ErrValue, "boolean is %#x, expected 0 or 1", v)
	}
	return v == 1
}

// Optional decodes the word that says whether optional data follow (RFC 4506
// §4.19). A list of optional data ends within the slice, because each entry has
// at least four octets.
func (d *Decoder) Optional() bool { return d.Bool() }

// Fixed decodes n octets of fixed-length opaque data and their roundup (RFC 4506
// §4.9). It ignores the value of the roundup, which senders have to set to zero.
func (d *Decoder) Fixed(n int) []byte {
	return d.opaque(d.off, uint64(n), "fixed opaque") // a negative n is beyond any slice
}

// Opaque decodes variable-length opaque data of at most limit octets, with count
// and roundup (RFC 4506 §4.10).
func (d *Decoder) Opaque(limit uint32) []byte {
	at := d.off
	n := d.length(limit, "opaque")
	return d.opaque(at, uint64(n), "opaque")
}

// String decodes a string of at most limit octets, of any encoding (RFC 4506
// §4.11). It returns a copy; [Decoder.Opaque] reads a string without one.
func (d *Decoder) String(limit uint32) string {
	at := d.off
	n := d.length(limit, "string")
	return string(d.opaque(at, uint64(n), "string"))
}

// Length decodes the count word of opaque data of at most limit octets, without the
// data: they travel in a chunk (RFC 8166 §3.4.4), or the caller decodes them. It does
// not check the count against what is left.
func (d *Decoder) Length(limit uint32) uint32 { return d.length(limit, "opaque") }

// Count decodes the count word of an array of at most limit elements (RFC 4506
// §4.13). Each element has at least size octets, or four if size is less. Count
// checks that so many fit in what is left, so the caller may allocate for them.
func (d *Decoder) Count(limit uint32, size int) int {
	at := d.off
	n := d.Uint32()
	if n > limit {
		d.failAt(at, ErrLimit, "array of %d elements, at most %d are allowed", n, limit)
		return 0
	}
	if n == 0 { // or after an error
		return 0
	}
	size = max(size, 4) // RFC 4506 §4.12: elements are multiples of four octets
	if left := d.Left(); uint64(n) > uint64(left/size) {
		d.failAt(at, ErrShort, "array of %d elements of at least %d octets, %d octets are left", n, size, left)
		return 0
	}
	return int(n)
}

// Fail makes the Decoder fail with an error of the kind [ErrValue], unless it
// has failed before. Callers use it to refuse a value, which began at at.
func (d *Decoder) Fail(at int, format string, args ...any) {
	d.failAt(at, ErrValue, format, args...)
}

// length decodes a count word.
func (d *Decoder) length(limit uint32, what string) uint32 {
	at := d.off
	n := d.Uint32()
	if n > limit {
		d.failAt(at, ErrLimit, "%s of %d octets, at most %d are allowed", what, n, limit)
		return 0
	}
	return n
}

// opaque decodes n octets and their roundup, of an item that began at at.
func (d *Decoder) opaque(at int, n uint64, what string) []byte {
	if d.err != nil {
		return nil
	}
	// In 64 bits: n is up to 2^32-1, and int may have 32 bits.
	if left := uint64(d.Left()); n > left || n+uint64(Padding(int(n&3))) > left {
		d.failAt(at, ErrShort, "%s of %d octets, %d octets are left", what, int64(n), left)
		return nil
	}
	p := d.b[d.off : d.off+int(n) : d.off+int(n)]
	d.off += RoundUp(int(n))
	return p
}

func (d *Decoder) short(want int, what string) {
	d.fail(ErrShort, "%s of %d octets, %d octets are left", what, want, d.Left())
}

func (d *Decoder) fail(kind error, format string, args ...any) {
	d.failAt(d.off, kind, format, args...)
}

func (d *Decoder) failAt(at int, kind error, format string, args ...any) {
	if d.err == nil {
		d.off = at
		d.err = &DecodeError{What: d.what, Offset: at, Kind: kind, Detail: fmt.Sprintf(format, args...)}
	}
}
