package wire_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// A requester answers none.
//
// Claims: P8166-4.2.4-3 P8166-4.5-3
func TestEveryFaultHasItsAnswer(t *testing.T) {
	for f, want := range map[wire.Fault]struct {
		name      string
		responder wire.Answer
		requester wire.Answer
	}{
		wire.FaultShort:      {"short message", wire.AnswerDrop, wire.AnswerDrop},
		wire.FaultVersion:    {"unsupported version", wire.AnswerErrVers, wire.AnswerDrop},
		wire.FaultChunk:      {"invalid header", wire.AnswerErrChunk, wire.AnswerDrop},
		wire.FaultStream:     {"chunks and payload stream disagree", wire.AnswerGarbageArgs, wire.AnswerDrop},
		wire.FaultOverrun:    {"reply too long", wire.AnswerErrChunk, wire.AnswerDrop},
		wire.FaultUnexpected: {"unexpected message type", wire.AnswerDrop, wire.AnswerDrop},
		wire.FaultLocal:      {"local error", wire.AnswerClose, wire.AnswerClose},
	} {
		if f.String() != want.name || f.Answer(wire.Responder) != want.responder || f.Answer(wire.Requester) != want.requester {
			t.Errorf("%v: %v by a %v, %v by a %v, want %+v", f, f.Answer(wire.Responder), wire.Responder, f.Answer(wire.Requester), wire.Requester, want)
		}
	}
}

func TestAnErrorIsItsFault(t *testing.T) {
	err := fmt.Errorf("call: %w", wire.Errorf(wire.FaultChunk, "position %d, want 4", 5))
	if !errors.Is(err, &wire.Error{Fault: wire.FaultChunk}) || errors.Is(err, &wire.Error{Fault: wire.FaultStream}) || errors.Is(err, &wire.Error{Fault: wire.FaultChunk, Detail: "x"}) {
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
		{wire.ProcMsg, "RDMA_MSG"},
		{wire.ProcNoMsg, "RDMA_NOMSG"},
		{wire.ProcMsgP, "RDMA_MSGP"},
		{wire.ProcDone, "RDMA_DONE"},
		{wire.ProcError, "RDMA_ERROR"},
		{wire.Proc(5), "unknown message type 5"},
		{wire.ErrVers, "ERR_VERS"},
		{wire.ErrChunk, "ERR_CHUNK"},
		{wire.ErrorCode(3), "unknown error code 3"},
		{wire.Fault(0), "unknown fault 0"},
		{wire.AnswerDrop, "drop"},
		{wire.AnswerErrVers, "answer ERR_VERS"},
		{wire.AnswerErrChunk, "answer ERR_CHUNK"},
		{wire.AnswerGarbageArgs, "answer GARBAGE_ARGS"},
		{wire.AnswerClose, "close"},
		{wire.Answer(9), "unknown answer 9"},
		{wire.DirectionCall, "call"},
		{wire.DirectionReply, "reply"},
		{wire.DirectionUnknown, "unknown direction"},
	} {
		if got := c.number.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Claims: P8166-4.5-7
func TestAnRDMAErrorIsReadAsWhatItsCallEndsWith(t *testing.T) {
	for _, c := range []struct {
		h    wire.Header
		want string
	}{
		{wire.Header{Proc: wire.ProcError, Err: wire.ErrVers, Low: 2, High: 3}, "rpcrdma: the peer refused protocol version 1 (ERR_VERS): it supports 2 to 3"},
		{wire.Header{Proc: wire.ProcError, Err: wire.ErrChunk}, "rpcrdma: the peer did not accept the chunks of the call, or its reply does not fit them (ERR_CHUNK)"},
		{wire.Header{Proc: wire.ProcError, Err: 9}, "rpcrdma: the peer refused the call: unknown error code 9"},
	} {
		var remote *wire.RemoteError
		if err := c.h.RemoteError(); !errors.As(err, &remote) || err.Error() != c.want || remote.Code != c.h.Err {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if err := (&wire.Header{Proc: wire.ProcMsg}).RemoteError(); err != nil {
		t.Errorf("of an RDMA_MSG: %v", err)
	}
}
