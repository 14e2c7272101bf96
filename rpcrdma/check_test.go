package rpcrdma

import "testing"

var (
	atZero = []ReadSegment{{0, Segment{1, 100, 0}}}
	at40   = []ReadSegment{{40, Segment{2, 100, 0}}}
	used   = WriteChunk{{3, 100, 0}}
	unused = WriteChunk{{3, 0, 0}}
)

// Claims: P8166-4.2.4-1 P8166-4.2.4-2 P8166-4.6.1-2 P8166-4.2.4-4 P8166-4.6.2-2
func TestCallsAreHeldAgainstTheRules(t *testing.T) {
	for _, c := range []struct {
		name  string
		h     Header
		rules Rules
		fault Fault // 0: none
	}{
		{"MSG", Header{Proc: ProcMsg}, Rules{}, 0},
		{"MSG with every list", Header{Proc: ProcMsg, Reads: at40, Writes: []WriteChunk{used}, HasReply: true, Reply: used}, Rules{}, 0},
		{"MSG with a chunk at position zero", Header{Proc: ProcMsg, Reads: append(at40[:1:1], atZero...)}, rfc5666, FaultChunk},
		{"NOMSG", Header{Proc: ProcNoMsg, Reads: append(at40[:1:1], atZero...)}, Rules{}, 0},
		{"NOMSG without lists", Header{Proc: ProcNoMsg}, rfc5666, FaultChunk},
		{"NOMSG without position zero", Header{Proc: ProcNoMsg, Reads: at40, HasReply: true, Reply: used}, rfc5666, FaultChunk},
		{"MSGP of RFC 5666", Header{Proc: ProcMsgP}, rfc5666, 0},
		{"MSGP of RFC 8166", Header{Proc: ProcMsgP}, Rules{ReadRead: true}, FaultChunk},
		{"DONE", Header{Proc: ProcDone}, Rules{}, 0},
		{"DONE without chunks", Header{Proc: ProcDone}, Rules{NoChunks: true}, 0},
		{"ERROR", Header{Proc: ProcError, Err: ErrChunk}, rfc5666, FaultUnexpected},
		{"unknown type", Header{Proc: 5}, rfc5666, FaultChunk},
		{"reverse MSG", Header{Proc: ProcMsg}, Rules{NoChunks: true}, 0},
		{"reverse MSG with a Read list", Header{Proc: ProcMsg, Reads: at40}, Rules{NoChunks: true}, FaultChunk},
		{"reverse MSG with an empty Write chunk", Header{Proc: ProcMsg, Writes: []WriteChunk{{}}}, Rules{NoChunks: true}, FaultChunk},
		{"reverse MSG with a Reply chunk", Header{Proc: ProcMsg, HasReply: true}, Rules{NoChunks: true}, FaultChunk},
	} {
		t.Run(c.name, func(t *testing.T) { wantCheck(t, c.h.CheckCall(&c.rules), c.fault) })
	}
}

// Claims: P8166-4.2.4-2 P8166-4.3.3-3 P8166-4.6.1-3
func TestRepliesAreHeldAgainstTheRules(t *testing.T) {
	for _, c := range []struct {
		name  string
		h     Header
		rules Rules
		fault Fault
	}{
		{"MSG", Header{Proc: ProcMsg, Writes: []WriteChunk{used, unused, {}}}, Rules{}, 0},
		{"MSG with an unused Reply chunk", Header{Proc: ProcMsg, HasReply: true, Reply: unused}, Rules{}, 0},
		{"MSG with a used Reply chunk", Header{Proc: ProcMsg, HasReply: true, Reply: used}, Rules{}, FaultChunk},
		{"MSG with a Read list", Header{Proc: ProcMsg, Reads: at40}, Rules{MSGP: true}, FaultChunk},
		{"MSG with a Read list of RFC 5666", Header{Proc: ProcMsg, Reads: at40}, rfc5666, 0},
		{"MSG with a Read list at position zero", Header{Proc: ProcMsg, Reads: atZero}, rfc5666, FaultChunk},
		{"NOMSG", Header{Proc: ProcNoMsg, HasReply: true, Reply: used}, Rules{}, 0},
		{"NOMSG with an unused Reply chunk", Header{Proc: ProcNoMsg, HasReply: true, Reply: unused}, Rules{}, FaultChunk},
		{"NOMSG without lists", Header{Proc: ProcNoMsg}, rfc5666, FaultChunk},
		{"NOMSG by Read list", Header{Proc: ProcNoMsg, Reads: atZero}, Rules{}, FaultChunk},
		{"NOMSG by Read list of RFC 5666", Header{Proc: ProcNoMsg, Reads: atZero, HasReply: true, Reply: unused}, rfc5666, 0},
		{"NOMSG in two places", Header{Proc: ProcNoMsg, Reads: atZero, HasReply: true, Reply: used}, rfc5666, FaultChunk},
		{"MSGP of RFC 5666", Header{Proc: ProcMsgP}, rfc5666, 0},
		{"MSGP of RFC 8166", Header{Proc: ProcMsgP}, Rules{}, FaultChunk},
		{"DONE", Header{Proc: ProcDone}, rfc5666, FaultUnexpected},
		{"ERROR", Header{Proc: ProcError, Err: ErrChunk}, Rules{}, 0},
		{"unknown type", Header{Proc: 5}, rfc5666, FaultChunk},
	} {
		t.Run(c.name, func(t *testing.T) { wantCheck(t, c.h.CheckReply(&c.rules), c.fault) })
	}
}

func wantCheck(t *testing.T, err error, f Fault) {
	t.Helper()
	if f == 0 {
		if err != nil {
			t.Error(err)
		}
		return
	}
	wantFault(t, err, f)
	bothAnswers(t, err)
}

// Claims: P5667-5.1-1
func TestTheDirectionIsToldByContents(t *testing.T) {
	call, reply := []byte("\x00\x00\x00\x01\x00\x00\x00\x00"), []byte("\x00\x00\x00\x01\x00\x00\x00\x01")
	for _, c := range []struct {
		name    string
		h       Header
		payload []byte
		rules   Rules
		want    Direction
	}{
		{"MSG call", Header{Proc: ProcMsg}, call, Rules{}, DirectionCall},
		{"MSGP reply", Header{Proc: ProcMsgP}, reply, Rules{}, DirectionReply},
		{"MSG of neither", Header{Proc: ProcMsg}, []byte("\x00\x00\x00\x01\x00\x00\x00\x02"), Rules{}, DirectionUnknown},
		{"MSG cut off", Header{Proc: ProcMsg}, call[:7], Rules{}, DirectionUnknown},
		{"NOMSG with position zero", Header{Proc: ProcNoMsg, Reads: atZero, HasReply: true, Reply: used}, nil, Rules{}, DirectionCall},
		{"NOMSG with position zero where replies have it too", Header{Proc: ProcNoMsg, Reads: atZero}, nil, rfc5666, DirectionUnknown},
		{"NOMSG with a used Reply chunk", Header{Proc: ProcNoMsg, HasReply: true, Reply: used}, nil, rfc5666, DirectionReply},
		{"NOMSG with an unused Reply chunk", Header{Proc: ProcNoMsg, HasReply: true, Reply: unused}, nil, Rules{}, DirectionUnknown},
		{"DONE", Header{Proc: ProcDone}, nil, Rules{}, DirectionCall},
		{"ERROR", Header{Proc: ProcError}, nil, Rules{}, DirectionReply},
		{"unknown type", Header{Proc: 7}, nil, Rules{}, DirectionUnknown},
	} {
		if got := c.h.Direction(c.payload, &c.rules); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Claims: P-3.4-25 P-3.7-7 P-3.7-8
func TestReturnedChunksAreThoseThatWereOffered(t *testing.T) {
	offered := WriteChunk{{1, 10, 100}, {2, 20, 200}, {3, 31, 300}}
	call := Header{Writes: []WriteChunk{offered, {}}, HasReply: true, Reply: offered}
	returned := func(lengths ...uint32) WriteChunk {
		c := append(WriteChunk{}, offered...)
		for i, n := range lengths {
			c[i].Length = n
		}
		return c
	}
	other := func(change func(*Segment)) WriteChunk {
		c := returned(10, 0, 0)
		change(&c[1])
		return c
	}
	for _, c := range []struct {
		name   string
		c      WriteChunk
		writes bool // valid in the Write list
		reply  bool // valid as the Reply chunk
	}{
		{"full", returned(10, 20, 31), true, true},
		{"unused", returned(0, 0, 0), true, true},
		{"one segment in part", returned(7, 0, 0), true, true},
		{"two segments in part", returned(10, 5, 0), true, true},
		{"empty", WriteChunk{}, true, true},
		{"a gap", returned(9, 1, 0), false, false},
		{"a gap of a segment", returned(10, 0, 1), false, false},
		{"too few segments", returned(10, 20, 31)[:2], false, false},
		{"too long", returned(10, 20, 32), false, false},
		{"longer by roundup", returned(10, 20, 34), true, false}, // 64 octets, of 61 offered
		{"longer by roundup that goes on", returned(12, 20, 0), false, false},
		{"longer by more than roundup", returned(10, 22, 0)[:3], true, false},
		{"longer by a word", returned(16, 0, 0), false, false},
		{"another handle", other(func(s *Segment) { s.Handle++ }), false, false},
		{"another offset", other(func(s *Segment) { s.Offset++ }), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for valid, h := range map[*bool]*Header{
				&c.writes: {Writes: []WriteChunk{c.c}},
				&c.reply:  {HasReply: true, Reply: c.c},
			} {
				if err := h.CheckReturned(&call); (err == nil) != *valid {
					t.Errorf("%+v: %v, valid is %v", h, err, *valid)
				} else if err != nil {
					wantFault(t, err, FaultChunk)
				}
			}
		})
	}
	eight := Header{Writes: []WriteChunk{{{1, 8, 0}}}}
	wantFault(t, (&Header{Writes: []WriteChunk{{{1, 12, 0}}}}).CheckReturned(&eight), FaultChunk)
	wantFault(t, (&Header{Writes: make([]WriteChunk, 3)}).CheckReturned(&call), FaultChunk)
	wantFault(t, (&Header{HasReply: true}).CheckReturned(&Header{}), FaultChunk)
	if err := (&Header{}).CheckReturned(&call); err != nil {
		t.Errorf("nothing came back: %v", err)
	}
}
