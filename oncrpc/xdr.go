// This file holds what encoding and decoding XDR share: roundup and the kinds of
// error (RFC 4506).

package oncrpc

import (
	"errors"
	"fmt"
)

// Padding is how many octets of roundup, 0 to 3, follow n octets of opaque data
// (RFC 4506 §4.9).
func Padding(n int) int { return -n & 3 }

// RoundUp is n with its roundup: the next multiple of four.
func RoundUp(n int) int { return n + Padding(n) }

// What can be wrong with XDR data. Each [DecodeError] is one of these; an
// [Encoder] knows ErrLimit and ErrValue.
var (
	ErrShort    = errors.New("oncrpc: the data end too early")
	ErrLimit    = errors.New("oncrpc: longer than is allowed")
	ErrValue    = errors.New("oncrpc: no such value")
	ErrTrailing = errors.New("oncrpc: octets are left over")
)

// A DecodeError says what could not be decoded. A server that finds one in the
// arguments of a call answers GARBAGE_ARGS, which [ReplyTo] sees to; one in the
// header of a call or a reply leaves nothing to answer with certainty, and the
// message is dropped.
type DecodeError struct {
	What   string // the message or structure
	Offset int    // where in it the wrong item begins, in octets
	Kind   error  // ErrShort, ErrLimit, ErrValue or ErrTrailing
	Detail string // what was found, and what was expected
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("oncrpc: %s, at octet %d: %s", e.What, e.Offset, e.Detail)
}

// Unwrap returns the kind, for errors.Is.
func (e *DecodeError) Unwrap() error { return e.Kind }
