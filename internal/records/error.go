// This file is the errors of a stream of records.

package records

import "github.com/weft-rdma/weft/ddp"

// An Error ends a stream of records.
type Error struct {
	text        string
	code        uint8 // in a Terminate message
	lost, reset bool
}

var _ ddp.LLPError = (*Error)(nil)

func (e *Error) Error() string { return "records: " + e.text }

// TerminateCode is of layer 2, the LLP's.
func (e *Error) TerminateCode() (layer, etype, code uint8) { return 2, 0, e.code }

// Lost reports that the pipe has ended.
func (e *Error) Lost() bool { return e.lost }

// Reset reports that a reset ended it.
func (e *Error) Reset() bool { return e.reset }

const (
	codeLost   = 1
	codeLength = 5
)

var (
	errReset   = &Error{"the pipe was reset", codeLost, true, true}
	errGone    = &Error{"the peer closed the pipe", codeLost, true, true}
	errEnded   = &Error{"this side ended the pipe", codeLost, true, false}
	errClosed  = &Error{"this side closed the pipe", codeLost, true, false}
	errPartial = &Error{"the peer closed the pipe within a record", codeLost, true, false}
	errLength  = &Error{"a record is longer than any segment", codeLength, false, false}
	errRefused = &Error{"the guard refused", codeLost, false, false}
)

// An unreadable error is about memory that records refer to, from one on.
type unreadable struct {
	segment uint64
	cause   error
}

func (e *unreadable) Error() string { return "records: memory of a record: " + e.cause.Error() }

func (e *unreadable) Unreadable() (segment uint64, cause error) { return e.segment, e.cause }
