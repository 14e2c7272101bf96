// This file holds what the Encoder and the Decoder share: roundup and the kinds of
// error (RFC 4506).

package oncrpc

import (
	"errors"
	"fmt"
)

// Padding is the number of octets of roundup, 0 to 3, after n octets of opaque data
// (RFC 4506 §4.9).
func Padding(n int) int { return -n & 3 }

// RoundUp is n plus its roundup: the next multiple of four.
func RoundUp(n int) int { return n + Padding(n) }

// The kinds of [DecodeError]. An [Encoder] fails with ErrLimit or ErrValue.
var (
	ErrShort    = errors.New("oncrpc: unexpected end of data")
	ErrLimit    = errors.New("oncrpc: limit exceeded")
	ErrValue    = errors.New("oncrpc: invalid value")
	ErrTrailing = errors.New("oncrpc: octets left over")
)

// A DecodeError says what could not be decoded. A server answers one in the arguments of
// a call with GARBAGE_ARGS ([ReplyTo] does). A message with one in its header is dropped.
type DecodeError struct {
	What   string // the message or structure
	Offset int    // where in it the item in error begins, in octets
	Kind   error  // ErrShort, ErrLimit, ErrValue or ErrTrailing
	Detail string // what was found, and what was expected
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("oncrpc: %s, at octet %d: %s", e.What, e.Offset, e.Detail)
}

// Unwrap returns the kind, for errors.Is.
func (e *DecodeError) Unwrap() error { return e.Kind }
