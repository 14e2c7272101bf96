// This file holds the errors of the LLP in the terms of DDP and the layers above,
// which do not know which LLP it is.

package ddp

import (
	"errors"
	"fmt"
)

// An LLPError is an error of the LLP that ends a stream, or one half of it.
// [AsLLPError] finds it. An LLP implements it with an error type of its own.
type LLPError interface {
	error

	// TerminateCode gives the three numbers that name the error in a Terminate
	// message; the layer is 2 (RFC 5040 §4.8).
	TerminateCode() (layer, etype, code uint8)

	// Lost reports that the connection below has ended: nobody can be told any
	// more. Otherwise what was received is at fault, and the sending half goes
	// on.
	Lost() bool

	// Reset reports that a reset ended the connection.
	Reset() bool
}

// An UnreadableSegment is an error of [LLP].Flush: memory that segments refer to cannot be
// read. The sending half goes on when Truncate has dropped them.
type UnreadableSegment interface {
	error

	// Unreadable returns the number of the first of these segments, as Appended counts,
	// from 0, and why it cannot be read.
	Unreadable() (segment uint64, cause error)
}

// AsLLPError finds the error of the LLP in the chain of err.
func AsLLPError(err error) (e LLPError, ok bool) {
	ok = errors.As(err, &e)
	return e, ok
}

// ErrRevoked is returned by [Sender.Flush] when memory that a segment refers to was
// revoked before the segment was written.
var ErrRevoked = errors.New("ddp: memory of a segment not yet written has been revoked")

// An UnreadableError is returned by [Sender.Flush] when memory that segments refer to
// cannot be read: its pages are not mapped, lack the right, or lie behind the end of
// their file.
type UnreadableError struct {
	Segment uint64 // the first of these segments
	Err     error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("ddp: memory of segment %d cannot be read: %v", e.Segment, e.Err)
}

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.Err }
