// This file holds the Encoder: XDR data appended to a slice (RFC 4506 §4).

package oncrpc

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// An Encoder appends XDR data to a slice that its caller owns. It allocates only
// when the slice is too small. The first error sticks and is returned by
// [Encoder.Finish], so code that encodes fields needs no error branches. An Encoder
// is for one goroutine.
type Encoder struct {
	b     []byte
	start int // len of the slice when the Encoder was made
	err   error
}

// NewEncoder returns an Encoder that appends to dst.
func NewEncoder(dst []byte) Encoder { return Encoder{b: dst, start: len(dst)} }

// Pos is the number of octets appended so far: the XDR position of the next item.
func (e *Encoder) Pos() int { return len(e.b) - e.start }

// Err is the first error, or nil.
func (e *Encoder) Err() error { return e.err }

// Finish returns the slice with what was appended, or after an error as it was
// given to NewEncoder.
func (e *Encoder) Finish() ([]byte, error) {
	if e.err != nil {
		return e.b[:e.start], e.err
	}
	return e.b, nil
}

// Uint32 encodes an unsigned integer, or an enumeration (RFC 4506 §4.2, §4.3).
func (e *Encoder) Uint32(v uint32) { e.b = binary.BigEndian.AppendUint32(e.b, v) }

// Int32 encodes an integer (RFC 4506 §4.1).
func (e *Encoder) Int32(v int32) { e.Uint32(uint32(v)) }

// Uint64 encodes an unsigned hyper integer (RFC 4506 §4.5).
func (e *Encoder) Uint64(v uint64) { e.b = binary.BigEndian.AppendUint64(e.b, v) }

// Int64 encodes a hyper integer (RFC 4506 §4.5).
func (e *Encoder) Int64(v int64) { e.Uint64(uint64(v)) }

// Bool encodes a boolean (RFC 4506 §4.4).
func (e *Encoder) Bool(v bool) {
	var word uint32
	if v {
		word = 1
	}
	e.Uint32(word)
}

// Optional encodes the word that says whether optional data follow (RFC 4506
// §4.19). If they do, the caller encodes them next.
func (e *Encoder) Optional(present bool) { e.Bool(present) }

// Extend appends n octets, a multiple of 4, for the caller to fill, and returns them:
// integers of which there are many are encoded faster so. They are valid until the next
// call of a method.
func (e *Encoder) Extend(n int) []byte {
	at := len(e.b)
	e.b = slices.Grow(e.b, n)[:at+n]
	return e.b[at:]
}

// Fixed encodes fixed-length opaque data with their roundup (RFC 4506 §4.9).
func (e *Encoder) Fixed(p []byte) {
	if e.err == nil { // after an error nothing large is copied
		e.b = append(e.b, p...)
		e.Pad(len(p))
	}
}

// Opaque encodes variable-length opaque data of at most limit octets, with
// count and roundup (RFC 4506 §4.10).
func (e *Encoder) Opaque(p []byte, limit uint32) {
	e.count(len(p), limit, "opaque of %d octets")
	e.Fixed(p)
}

// String encodes a string of at most limit octets, of any encoding (RFC 4506
// §4.11).
func (e *Encoder) String(s string, limit uint32) {
	e.count(len(s), limit, "string of %d octets")
	if e.err == nil {
		e.b = append(e.b, s...)
		e.Pad(len(s))
	}
}

// Count encodes the count word of an array of at most limit elements (RFC 4506
// §4.13). The caller encodes the elements next.
func (e *Encoder) Count(n int, limit uint32) { e.count(n, limit, "array of %d elements") }

// Length encodes the count word of opaque data of at most limit octets, without the
// data: they follow as a piece of their own with their [Encoder.Pad], or travel in a
// chunk (RFC 8166 §3.4.4).
func (e *Encoder) Length(n int, limit uint32) { e.count(n, limit, "opaque of %d octets") }

// Pad encodes the roundup of n octets of opaque data: 0 to 3 zeros.
func (e *Encoder) Pad(n int) {
	var zeros [3]byte
	e.b = append(e.b, zeros[:Padding(n)]...)
}

// Fail makes the Encoder fail with an error of the kind [ErrValue], unless it
// has failed before.
func (e *Encoder) Fail(format string, args ...any) { e.fail(ErrValue, format, args...) }

func (e *Encoder) count(n int, limit uint32, what string) {
	if uint64(n) > uint64(limit) { // or negative
		e.fail(ErrLimit, what+", at most %d are allowed", n, limit)
	}
	e.Uint32(uint32(n))
}

func (e *Encoder) fail(kind error, format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf("%w: %s", kind, fmt.Sprintf(format, args...))
	}
}
