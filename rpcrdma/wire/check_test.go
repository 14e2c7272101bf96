package wire_test

import (
	"testing"

	"github.com/weft-rdma/weft/rpcrdma/internal/worked"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

var (
	atZero = []wire.ReadSegment{{0, wire.Segment{1, 100, 0}}}
	at40   = []wire.ReadSegment{{40, wire.Segment{2, 100, 0}}}
	used   = wire.WriteChunk{{3, 100, 0}}
	unused = wire.WriteChunk{{3, 0, 0}}
)

// Claims: P8166-4.2.4-1 P8166-4.2.4-2 P8166-4.6.1-2 P8166-4.2.4-4 P8166-4.6.2-2
// Claims: P8166-A-1
func TestCallsAreHeldAgainstTheRules(t *testing.T) {
	for _, c := range []struct {
		name  string
		h     wire.Header
		rules wire.Rules
		fault wire.Fault // 0: none
	}{
		{"MSG", wire.Header{Proc: wire.ProcMsg}, wire.Rules{}, 0},
		{"MSG with every list", wire.Header{Proc: wire.ProcMsg, Reads: at40, Writes: []wire.WriteChunk{used}, HasReply: true, Reply: used}, wire.Rules{}, 0},
		{"MSG with a chunk at position zero", wire.Header{Proc: wire.ProcMsg, Reads: append(at40[:1:1], atZero...)}, worked.RFC5666, wire.FaultChunk},
		{"NOMSG", wire.Header{Proc: wire.ProcNoMsg, Reads: append(at40[:1:1], atZero...)}, wire.Rules{}, 0},
		{"NOMSG without lists", wire.Header{Proc: wire.ProcNoMsg}, worked.RFC5666, wire.FaultChunk},
		{"NOMSG without position zero", wire.Header{Proc: wire.ProcNoMsg, Reads: at40, HasReply: true, Reply: used}, worked.RFC5666, wire.FaultChunk},
		{"MSGP of RFC 5666", wire.Header{Proc: wire.ProcMsgP}, worked.RFC5666, 0},
		{"MSGP of RFC 8166", wire.Header{Proc: wire.ProcMsgP}, wire.Rules{ReadRead: true}, wire.FaultChunk},
		{"DONE", wire.Header{Proc: wire.ProcDone}, wire.Rules{}, 0},
		{"DONE without chunks", wire.Header{Proc: wire.ProcDone}, wire.Rules{NoChunks: true}, 0},
		{"ERROR", wire.Header{Proc: wire.ProcError, Err: wire.ErrChunk}, worked.RFC5666, wire.FaultUnexpected},
		{"unknown type", wire.Header{Proc: 5}, worked.RFC5666, wire.FaultChunk},
		{"reverse MSG", wire.Header{Proc: wire.ProcMsg}, wire.Rules{NoChunks: true}, 0},
		{"reverse MSG with a Read list", wire.Header{Proc: wire.ProcMsg, Reads: at40}, wire.Rules{NoChunks: true}, wire.FaultChunk},
		{"reverse MSG with an empty Write chunk", wire.Header{Proc: wire.ProcMsg, Writes: []wire.WriteChunk{{}}}, wire.Rules{NoChunks: true}, wire.FaultChunk},
		{"reverse MSG with a Reply chunk", wire.Header{Proc: wire.ProcMsg, HasReply: true}, wire.Rules{NoChunks: true}, wire.FaultChunk},
	} {
		t.Run(c.name, func(t *testing.T) { wantCheck(t, c.h.CheckCall(&c.rules), c.fault) })
	}
}

// Claims: P8166-4.2.4-2 P8166-4.3.3-3 P8166-4.6.1-3
// Claims: P8166-3.1-1 P8166-A-1
func TestRepliesAreHeldAgainstTheRules(t *testing.T) {
	for _, c := range []struct {
		name  string
		h     wire.Header
		rules wire.Rules
		fault wire.Fault
	}{
		{"MSG", wire.Header{Proc: wire.ProcMsg, Writes: []wire.WriteChunk{used, unused, {}}}, wire.Rules{}, 0},
		{"MSG with an unused Reply chunk", wire.Header{Proc: wire.ProcMsg, HasReply: true, Reply: unused}, wire.Rules{}, 0},
		{"MSG with a used Reply chunk", wire.Header{Proc: wire.ProcMsg, HasReply: true, Reply: used}, wire.Rules{}, wire.FaultChunk},
		{"MSG with a Read list", wire.Header{Proc: wire.ProcMsg, Reads: at40}, wire.Rules{MSGP: true}, wire.FaultChunk},
		{"MSG with a Read list of RFC 5666", wire.Header{Proc: wire.ProcMsg, Reads: at40}, worked.RFC5666, 0},
		{"MSG with a Read list at position zero", wire.Header{Proc: wire.ProcMsg, Reads: atZero}, worked.RFC5666, wire.FaultChunk},
		{"NOMSG", wire.Header{Proc: wire.ProcNoMsg, HasReply: true, Reply: used}, wire.Rules{}, 0},
		{"NOMSG with an unused Reply chunk", wire.Header{Proc: wire.ProcNoMsg, HasReply: true, Reply: unused}, wire.Rules{}, wire.FaultChunk},
		{"NOMSG without lists", wire.Header{Proc: wire.ProcNoMsg}, worked.RFC5666, wire.FaultChunk},
		{"NOMSG by Read list", wire.Header{Proc: wire.ProcNoMsg, Reads: atZero}, wire.Rules{}, wire.FaultChunk},
		{"NOMSG by Read list of RFC 5666", wire.Header{Proc: wire.ProcNoMsg, Reads: atZero, HasReply: true, Reply: unused}, worked.RFC5666, 0},
		{"NOMSG in two places", wire.Header{Proc: wire.ProcNoMsg, Reads: atZero, HasReply: true, Reply: used}, worked.RFC5666, wire.FaultChunk},
		{"MSGP of RFC 5666", wire.Header{Proc: wire.ProcMsgP}, worked.RFC5666, 0},
		{"MSGP of RFC 8166", wire.Header{Proc: wire.ProcMsgP}, wire.Rules{}, wire.FaultChunk},
		{"DONE", wire.Header{Proc: wire.ProcDone}, worked.RFC5666, wire.FaultUnexpected},
		{"ERROR", wire.Header{Proc: wire.ProcError, Err: wire.ErrChunk}, wire.Rules{}, 0},
		{"unknown type", wire.Header{Proc: 5}, worked.RFC5666, wire.FaultChunk},
	} {
		t.Run(c.name, func(t *testing.T) { wantCheck(t, c.h.CheckReply(&c.rules), c.fault) })
	}
}

func wantCheck(t *testing.T, err error, f wire.Fault) {
	t.Helper()
	if f == 0 {
		if err != nil {
			t.Error(err)
		}
		return
	}
	worked.WantFault(t, err, f)
	worked.BothAnswers(t, err)
}

// Claims: P5667-5.1-1
func TestTheDirectionIsToldByContents(t *testing.T) {
	call, reply := []byte("\x00\x00\x00\x01\x00\x00\x00\x00"), []byte("\x00\x00\x00\x01\x00\x00\x00\x01")
	for _, c := range []struct {
		name    string
		h       wire.Header
		payload []byte
		rules   wire.Rules
		want    wire.Direction
	}{
		{"MSG call", wire.Header{Proc: wire.ProcMsg}, call, wire.Rules{}, wire.DirectionCall},
		{"MSGP reply", wire.Header{Proc: wire.ProcMsgP}, reply, wire.Rules{}, wire.DirectionReply},
		{"MSG of neither", wire.Header{Proc: wire.ProcMsg}, []byte("\x00\x00\x00\x01\x00\x00\x00\x02"), wire.Rules{}, wire.DirectionUnknown},
		{"MSG cut off", wire.Header{Proc: wire.ProcMsg}, call[:7], wire.Rules{}, wire.DirectionUnknown},
		{"NOMSG with position zero", wire.Header{Proc: wire.ProcNoMsg, Reads: atZero, HasReply: true, Reply: used}, nil, wire.Rules{}, wire.DirectionCall},
		{"NOMSG with position zero where replies have it too", wire.Header{Proc: wire.ProcNoMsg, Reads: atZero}, nil, worked.RFC5666, wire.DirectionUnknown},
		{"NOMSG with a used Reply chunk", wire.Header{Proc: wire.ProcNoMsg, HasReply: true, Reply: used}, nil, worked.RFC5666, wire.DirectionReply},
		{"NOMSG with an unused Reply chunk", wire.Header{Proc: wire.ProcNoMsg, HasReply: true, Reply: unused}, nil, wire.Rules{}, wire.DirectionUnknown},
		{"DONE", wire.Header{Proc: wire.ProcDone}, nil, wire.Rules{}, wire.DirectionCall},
		{"ERROR", wire.Header{Proc: wire.ProcError}, nil, wire.Rules{}, wire.DirectionReply},
		{"unknown type", wire.Header{Proc: 7}, nil, wire.Rules{}, wire.DirectionUnknown},
	} {
		if got := c.h.Direction(c.payload, &c.rules); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Claims: P-3.4-25 P-3.7-7 P-3.7-8
func TestReturnedChunksAreThoseThatWereOffered(t *testing.T) {
	offered := wire.WriteChunk{{1, 10, 100}, {2, 20, 200}, {3, 31, 300}}
	call := wire.Header{Writes: []wire.WriteChunk{offered, {}}, HasReply: true, Reply: offered}
	returned := func(lengths ...uint32) wire.WriteChunk {
		c := append(wire.WriteChunk{}, offered...)
		for i, n := range lengths {
			c[i].Length = n
		}
		return c
	}
	other := func(change func(*wire.Segment)) wire.WriteChunk {
		c := returned(10, 0, 0)
		change(&c[1])
		return c
	}
	for _, c := range []struct {
		name   string
		c      wire.WriteChunk
		writes bool // valid in the Write list
		reply  bool // valid as the Reply chunk
	}{
		{"full", returned(10, 20, 31), true, true},
		{"unused", returned(0, 0, 0), true, true},
		{"one segment in part", returned(7, 0, 0), true, true},
		{"two segments in part", returned(10, 5, 0), true, true},
		{"empty", wire.WriteChunk{}, true, true},
		{"a gap", returned(9, 1, 0), false, false},
		{"a gap of a segment", returned(10, 0, 1), false, false},
		{"too few segments", returned(10, 20, 31)[:2], false, false},
		{"too long", returned(10, 20, 32), false, false},
		{"longer by roundup", returned(10, 20, 34), true, false}, // 64 octets, of 61 offered
		{"longer by roundup that goes on", returned(12, 20, 0), false, false},
		{"longer by more than roundup", returned(10, 22, 0)[:3], true, false},
		{"longer by a word", returned(16, 0, 0), false, false},
		{"another handle", other(func(s *wire.Segment) { s.Handle++ }), false, false},
		{"another offset", other(func(s *wire.Segment) { s.Offset++ }), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for valid, h := range map[*bool]*wire.Header{
				&c.writes: {Writes: []wire.WriteChunk{c.c}},
				&c.reply:  {HasReply: true, Reply: c.c},
			} {
				if err := h.CheckReturned(&call); (err == nil) != *valid {
					t.Errorf("%+v: %v, valid is %v", h, err, *valid)
				} else if err != nil {
					worked.WantFault(t, err, wire.FaultChunk)
				}
			}
		})
	}
	eight := wire.Header{Writes: []wire.WriteChunk{{{1, 8, 0}}}}
	worked.WantFault(t, (&wire.Header{Writes: []wire.WriteChunk{{{1, 12, 0}}}}).CheckReturned(&eight), wire.FaultChunk)
	worked.WantFault(t, (&wire.Header{Writes: make([]wire.WriteChunk, 3)}).CheckReturned(&call), wire.FaultChunk)
	worked.WantFault(t, (&wire.Header{HasReply: true}).CheckReturned(&wire.Header{}), wire.FaultChunk)
	if err := (&wire.Header{}).CheckReturned(&call); err != nil {
		t.Errorf("nothing came back: %v", err)
	}
}
