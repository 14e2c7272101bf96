package rpcrdma

import (
	"errors"
	"fmt"
	"testing"
)

// A requester answers none.
//
// Claims: P8166-4.2.4-3 P8166-4.5-3
func TestEveryFaultHasItsAnswer(t *testing.T) {
	for f, want := range map[Fault]struct {
		name      string
		responder Answer
		requester Answer
	}{
		FaultShort:      {"short message", AnswerDrop, AnswerDrop},
		FaultVersion:    {"unsupported version", AnswerErrVers, AnswerDrop},
		FaultChunk:      {"invalid header", AnswerErrChunk, AnswerDrop},
		FaultStream:     {"chunks and payload stream disagree", AnswerGarbageArgs, AnswerDrop},
		FaultOverrun:    {"reply too long", AnswerErrChunk, AnswerDrop},
		FaultUnexpected: {"unexpected message type", AnswerDrop, AnswerDrop},
		FaultLocal:      {"local error", AnswerClose, AnswerClose},
	} {
		if f.String() != want.name || f.Answer(Responder) != want.responder || f.Answer(Requester) != want.requester {
			t.Errorf("%v: %v by a %v, %v by a %v, want %+v", f, f.Answer(Responder), Responder, f.Answer(Requester), Requester, want)
		}
	}
}

func TestAnErrorIsItsFault(t *testing.T) {
	err := fmt.Errorf("call: %w", faultf(FaultChunk, "position %d, want 4", 5))
	if !errors.Is(err, &Error{Fault: FaultChunk}) || errors.Is(err, &Error{Fault: FaultStream}) || errors.Is(err, &Error{Fault: FaultChunk, Detail: "x"}) {
		t.Error(err)
	}
	if got, want := err.Error(), "call: rpcrdma: invalid header: position 5, want 4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNumbersSpeak(t *testing.T) {
	for _, c := range []struct {
		number fmt.Stringer
		want   string
	}{
		{ProcMsg, "RDMA_MSG"},
		{ProcNoMsg, "RDMA_NOMSG"},
		{ProcMsgP, "RDMA_MSGP"},
		{ProcDone, "RDMA_DONE"},
		{ProcError, "RDMA_ERROR"},
		{Proc(5), "unknown message type 5"},
		{ErrVers, "ERR_VERS"},
		{ErrChunk, "ERR_CHUNK"},
		{ErrorCode(3), "unknown error code 3"},
		{Fault(0), "unknown fault 0"},
		{AnswerDrop, "drop"},
		{AnswerErrVers, "answer ERR_VERS"},
		{AnswerErrChunk, "answer ERR_CHUNK"},
		{AnswerGarbageArgs, "answer GARBAGE_ARGS"},
		{AnswerClose, "close"},
		{Answer(9), "unknown answer 9"},
		{DirectionCall, "call"},
		{DirectionReply, "reply"},
		{DirectionUnknown, "unknown direction"},
	} {
		if got := c.number.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Claims: P8166-4.5-7
func TestAnRDMAErrorIsReadAsWhatItsCallEndsWith(t *testing.T) {
	for _, c := range []struct {
		h    Header
		want string
	}{
		{Header{Proc: ProcError, Err: ErrVers, Low: 2, High: 3}, "rpcrdma: the peer refused protocol version 1 (ERR_VERS): it supports 2 to 3"},
		{Header{Proc: ProcError, Err: ErrChunk}, "rpcrdma: the peer did not accept the chunks of the call, or its reply does not fit them (ERR_CHUNK)"},
		{Header{Proc: ProcError, Err: 9}, "rpcrdma: the peer refused the call: unknown error code 9"},
	} {
		var remote *RemoteError
		if err := c.h.RemoteError(); !errors.As(err, &remote) || err.Error() != c.want || remote.Code != c.h.Err {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if err := (&Header{Proc: ProcMsg}).RemoteError(); err != nil {
		t.Errorf("of an RDMA_MSG: %v", err)
	}
}
