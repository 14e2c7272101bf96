// This file holds what can be wrong with a message, and what each side does
// about it (RFC 8166 §4.5).

package wire

import "fmt"

// A Role is the part that an endpoint plays in one RPC. Over one connection an
// endpoint may play both (RFC 8167).
type Role uint8

const (
	Requester Role = iota // sends the call
	Responder             // sends the reply
)

func (r Role) String() string {
	if r == Responder {
		return "responder"
	}
	return "requester"
}

// A Fault is a class of errors that the protocol answers alike.
type Fault uint8

// The faults. With every one but FaultShort the fixed words of the header can
// be relied on.
const (
	FaultShort      Fault = iota + 1 // shorter than the least header of its type
	FaultVersion                     // a version other than 1
	FaultChunk                       // not valid XDR, not valid lists, or beyond a limit
	FaultStream                      // a valid header that does not fit its Payload stream
	FaultOverrun                     // a reply that fits nothing of what the call offered
	FaultUnexpected                  // a message type that this side does not take
	FaultLocal                       // something that this side could not do, or must not go on after
)

func (f Fault) String() string {
	switch f {
	case FaultShort:
		return "short message"
	case FaultVersion:
		return "unsupported version"
	case FaultChunk:
		return "invalid header"
	case FaultStream:
		return "chunks and payload stream disagree"
	case FaultOverrun:
		return "reply too long"
	case FaultUnexpected:
		return "unexpected message type"
	case FaultLocal:
		return "local error"
	}
	return fmt.Sprintf("unknown fault %d", uint8(f))
}

// An Answer is what the protocol does about a fault.
type Answer uint8

const (
	AnswerDrop        Answer = iota // discard the message and say nothing
	AnswerErrVers                   // send RDMA_ERROR with ERR_VERS: [AppendErrVers]
	AnswerErrChunk                  // send RDMA_ERROR with ERR_CHUNK: [AppendErrChunk]
	AnswerGarbageArgs               // send an RPC reply with GARBAGE_ARGS, by RDMA_MSG
	AnswerClose                     // close the connection
)

func (a Answer) String() string {
	switch a {
	case AnswerDrop:
		return "drop"
	case AnswerErrVers:
		return "answer ERR_VERS"
	case AnswerErrChunk:
		return "answer ERR_CHUNK"
	case AnswerGarbageArgs:
		return "answer GARBAGE_ARGS"
	case AnswerClose:
		return "close"
	}
	return fmt.Sprintf("unknown answer %d", uint8(a))
}

// Answer says what r does about the fault. Where it is not known whether the
// message was a call or a reply, a server is the responder and a client the
// requester.
func (f Fault) Answer(r Role) Answer {
	if f == FaultLocal { // RFC 8166 §4.5.4
		return AnswerClose
	}
	if r == Requester { // RFC 8166 §4.5, §4.2.4: never answers, never sends RDMA_ERROR
		return AnswerDrop
	}
	switch f {
	case FaultVersion: // RFC 8166 §4.5.1
		return AnswerErrVers
	case FaultChunk, FaultOverrun: // RFC 8166 §4.5.2, §4.5.3
		return AnswerErrChunk
	case FaultStream: // RFC 8166 §4.5.2, last paragraph
		return AnswerGarbageArgs
	}
	return AnswerDrop
}

// An Error says what is wrong with a message, or why a reply cannot be sent.
type Error struct {
	Fault  Fault
	Detail string // what is wrong, where, and what was expected
}

func (e *Error) Error() string {
	s := "rpcrdma: " + e.Fault.String()
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Is reports whether target is an *Error that holds the same fault and nothing
// else, so that errors.Is(err, &Error{Fault: FaultVersion}) tests for a fault.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && *t == Error{Fault: e.Fault}
}

func Errorf(f Fault, format string, args ...any) *Error {
	return &Error{Fault: f, Detail: fmt.Sprintf(format, args...)}
}
