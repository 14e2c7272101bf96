// This file holds the numbers of RFC 5666 §4.3 and RFC 8166 §4.2: the protocol
// version, message types and error codes.

package wire

import "fmt"

// Version is the protocol version of RFC 5666 and RFC 8166.
const Version = 1

// A Proc is the type of a message (rdma_proc).
type Proc uint32

// The message types.
const (
	ProcMsg   Proc = 0 // RDMA_MSG: the RPC message follows the chunk lists
	ProcNoMsg Proc = 1 // RDMA_NOMSG: the RPC message is in a chunk
	ProcMsgP  Proc = 2 // RDMA_MSGP: as MSG, with pads in the RPC message; RFC 5666 only
	ProcDone  Proc = 3 // RDMA_DONE: the Read chunks of a reply were fetched; RFC 5666 only
	ProcError Proc = 4 // RDMA_ERROR: the header of a call was not understood
)

func (p Proc) String() string {
	switch p {
	case ProcMsg:
		return "RDMA_MSG"
	case ProcNoMsg:
		return "RDMA_NOMSG"
	case ProcMsgP:
		return "RDMA_MSGP"
	case ProcDone:
		return "RDMA_DONE"
	case ProcError:
		return "RDMA_ERROR"
	}
	return fmt.Sprintf("unknown message type %d", uint32(p))
}

// An ErrorCode is what an RDMA_ERROR reports (rdma_err).
type ErrorCode uint32

// The error codes.
const (
	ErrVers  ErrorCode = 1 // the version is not supported
	ErrChunk ErrorCode = 2 // the header or a chunk list is not valid, or cannot be served
)

func (c ErrorCode) String() string {
	switch c {
	case ErrVers:
		return "ERR_VERS"
	case ErrChunk:
		return "ERR_CHUNK"
	}
	return fmt.Sprintf("unknown error code %d", uint32(c))
}

// A RemoteError is the RDMA_ERROR that ended a call. It is permanent: the same
// call would end the same way (RFC 8166 §4.5). The call may have been executed or not (RFC
// 8267 §4).
type RemoteError struct {
	Code      ErrorCode
	Low, High uint32 // of ErrVers: the versions that the peer supports, inclusive
}

func (e *RemoteError) Error() string {
	switch e.Code {
	case ErrVers:
		return fmt.Sprintf("rpcrdma: the peer refused protocol version %d (ERR_VERS): it supports %d to %d", Version, e.Low, e.High)
	case ErrChunk:
		return "rpcrdma: the peer did not accept the chunks of the call, or its reply does not fit them (ERR_CHUNK)"
	}
	return fmt.Sprintf("rpcrdma: the peer refused the call: %v", e.Code)
}
