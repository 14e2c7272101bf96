// This file holds MPA's errors (RFC 5044 §8, RFC 6581 §8).

package mpa

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// ErrRevoked is returned by Flush when memory that a frame refers to has been
// revoked before the frame was written.
var ErrRevoked = errors.New("mpa: memory of a frame not yet written has been revoked")

// A MemoryError is returned by Flush when memory that a frame refers to cannot be read:
// its pages are not mapped, lack the right, or lie behind the end of their file.
type MemoryError struct {
	Frame uint64 // the first of these frames, counted from 0 as they were appended
	Err   error
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("mpa: memory of a frame not yet written: %v", e.Err)
}

// Unreadable returns Frame and Err: how DDP, which knows no particular LLP, asks for
// them.
func (e *MemoryError) Unreadable() (frame uint64, cause error) { return e.Frame, e.Err }

// Unwrap returns the cause.
func (e *MemoryError) Unwrap() error { return e.Err }

// A Code is MPA's error code. Those above 4 belong to RFC 6581.
type Code uint8

const (
	CodeClosed          Code = 1 // TCP connection closed, terminated or lost
	CodeCRC             Code = 2 // received CRC differs from the calculated one
	CodeMarker          Code = 3 // Marker and ULPDU Length disagree on the start of an FPDU
	CodeStartup         Code = 4 // invalid MPA Request or Reply Frame
	CodeCatastrophic    Code = 5 // local catastrophic error
	CodeInsufficientIRD Code = 6 // insufficient IRD resources
	CodeNoRTR           Code = 7 // no matching RTR option
)

var codeNames = [...]string{
	CodeClosed:          "connection closed or lost",
	CodeCRC:             "CRC error",
	CodeMarker:          "marker and ULPDU length disagree",
	CodeStartup:         "invalid start-up frame",
	CodeCatastrophic:    "local catastrophic error",
	CodeInsufficientIRD: "insufficient IRD resources",
	CodeNoRTR:           "no matching RTR option",
}

func (c Code) String() string {
	if int(c) < len(codeNames) && codeNames[c] != "" {
		return codeNames[c]
	}
	return fmt.Sprintf("unknown MPA error %d", uint8(c))
}

// An Error ends a stream, or the receiving half of one.
type Error struct {
	Code   Code
	Detail string // what happened, and what was expected
	Err    error  // the cause, if another error was
}

func (e *Error) Error() string {
	s := "mpa: " + e.happened()
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// happened is the code in words, and of a connection that has ended how it ended:
// what the system called and what it answered comes after that.
func (e *Error) happened() string {
	if e.Code == CodeClosed {
		for _, end := range ends {
			if errors.Is(e.Err, end.err) {
				return end.words
			}
		}
	}
	return e.Code.String()
}

// ends are the ways in which a connection can end.
var ends = [...]struct {
	err   error
	words string
}{
	{io.EOF, "the peer closed the connection"},
	{io.ErrUnexpectedEOF, "the peer closed the connection"},
	{syscall.EPIPE, "the peer closed the connection"},
	{syscall.ECONNRESET, "the peer reset the connection"},
	{syscall.ETIMEDOUT, "the peer does not acknowledge any more"},
	{syscall.EHOSTUNREACH, "the peer cannot be reached any more"},
	{syscall.ENETUNREACH, "the peer cannot be reached any more"},
	{os.ErrDeadlineExceeded, "timed out"},
	{context.DeadlineExceeded, "timed out"},
	{context.Canceled, "this side gave up"},
	{net.ErrClosed, "this side closed the connection"},
	{io.ErrClosedPipe, "the connection was closed"},
}

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an *Error that holds the same code and nothing
// else, so that errors.Is(err, &Error{Code: CodeCRC}) tests for a code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && *t == Error{Code: e.Code}
}

// TerminateCode places the error in a Terminate message: layer 2 (LLP), error
// type 0 (MPA), and the code (RFC 5040 §4.8, RFC 6581 §8).
func (e *Error) TerminateCode() (layer, etype, code uint8) {
	return 2, 0, uint8(e.Code)
}

// Lost reports that the connection has ended: nothing can be sent any more.
func (e *Error) Lost() bool { return e.Code == CodeClosed }

// Reset reports that the peer's stack, or this one's, has reset the connection.
func (e *Error) Reset() bool {
	return errors.Is(e.Err, syscall.ECONNRESET) || errors.Is(e.Err, syscall.EPIPE)
}

func errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}
