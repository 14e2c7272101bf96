package rpcrdma

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bothAnswers are what a responder and a requester do about err.
func bothAnswers(t testing.TB, err error) [2]Answer {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Detail == "" {
		t.Fatalf("got %v, want an *Error with detail", err)
	}
	return [2]Answer{e.Fault.Answer(Responder), e.Fault.Answer(Requester)}
}

// A fixed begins messages of XID 1, version 1 and one credit.
const fixed = "00000001 00000001 00000001 "

// Claims: P-3.5-1 P-4.1-1 P-4.1-2 P-4.1-13 P-4.1-18 P-4.1-19 P-4.2-1 P8166-3.4.5-2 P8166-4.5-1 P8166-4.5-8
func TestFaultsOfAHeaderGetTheirAnswers(t *testing.T) {
	const (
		drop  = AnswerDrop
		vers  = AnswerErrVers
		chunk = AnswerErrChunk
	)
	for _, c := range []struct {
		name  string
		wire  string
		rules Rules
		fault Fault
		want  Answer // of a responder; a requester drops
	}{
		{"nothing", "", Rules{}, FaultShort, drop},
		{"15 octets", fixed + "000000", Rules{}, FaultShort, drop},
		{"27 octets of MSG", fixed + "00000000 00000000 00000000 000000", Rules{}, FaultShort, drop},
		{"27 octets of NOMSG", fixed + "00000001 00000000 00000000 000000", Rules{}, FaultShort, drop},
		{"35 octets of MSGP", fixed + "00000002 00000100 00000200 00000000 00000000 000000", Rules{}, FaultShort, drop},
		{"27 octets of an unknown type", fixed + "00000005 00000000 00000000 000000", Rules{}, FaultShort, drop},
		{"27 octets of version 2", "00000001 00000002 00000001 00000003 00000000 00000000 000000", Rules{}, FaultShort, drop},
		{"19 octets of ERROR", fixed + "00000004 000000", Rules{}, FaultShort, drop},
		{"ERR_VERS without its range", fixed + "00000004 00000001 00000001", Rules{}, FaultUnexpected, drop},
		{"ERR_CHUNK of version 2", "00000001 00000002 00000001 00000004 00000002", Rules{}, FaultUnexpected, drop},
		{"version 0", "00000001 00000000 00000001 00000000 00000000 00000000 00000000", Rules{}, FaultVersion, vers},
		{"version 2", "00000001 00000002 00000001 00000009 00000000 00000000 00000000", Rules{}, FaultVersion, vers},
		{"version 2^32-1", "00000001 ffffffff 00000001 00000000 00000000 00000000 00000000", Rules{}, FaultVersion, vers},
		{"unknown type", fixed + "00000005 00000000 00000000 00000000", Rules{}, FaultChunk, chunk},
		{"no RPC message", fixed + "00000000 00000000 00000000 00000000", Rules{}, FaultChunk, chunk},
		{"three octets of an RPC message", fixed + "00000000 00000000 00000000 00000000 000000", Rules{}, FaultChunk, chunk},
		{"another XID", fixed + "00000000 00000000 00000000 00000000 00000002", Rules{}, FaultChunk, chunk},
		{"alignment beyond 64 KiB", fixed + "00000002 00010001 00000200 00000000 00000000 00000000 00000001", rfc5666, FaultChunk, chunk},
		{"read list begun by 2", fixed + "00000001 00000002 00000000 00000000", Rules{}, FaultChunk, chunk},
		{"write list begun by 2", fixed + "00000001 00000000 00000002 00000000", Rules{}, FaultChunk, chunk},
		{"reply chunk begun by 2", fixed + "00000001 00000000 00000000 00000002", Rules{}, FaultChunk, chunk},
		{"read entry cut off", fixed + "00000001 00000001 00000000 00000007", Rules{}, FaultChunk, chunk},
		{"read list without end", fixed + "00000001 00000001 00000000 00000007 00000004 00000000 00000000", Rules{}, FaultChunk, chunk},
		{"position 97", fixed + "00000001 00000001 00000061 00000007 00000004 00000000 00000000 00000000 00000000 00000000", Rules{}, FaultChunk, chunk},
		{"position 98", fixed + "00000001 00000001 00000062 00000007 00000004 00000000 00000000 00000000 00000000 00000000", Rules{}, FaultChunk, chunk},
		{"read segment that wraps", fixed + "00000001 00000001 00000000 00000007 00000004 ffffffff fffffffd 00000000 00000000 00000000", Rules{}, FaultChunk, chunk},
		{"write segment that wraps", fixed + "00000001 00000000 00000001 00000001 00000007 00000002 ffffffff ffffffff 00000000 00000000", Rules{}, FaultChunk, chunk},
		{"write chunk without count", fixed + "00000001 00000000 00000000 00000001", Rules{}, FaultChunk, chunk},
		{"write chunk with a count that lies", fixed + "00000001 00000000 00000001 00000002 00000007 00000002 00000000 00000000 00000000", Rules{}, FaultChunk, chunk},
		{"write chunk of 2^32-1 segments", fixed + "00000001 00000000 00000001 ffffffff 00000000 00000000", Rules{}, FaultChunk, chunk},
		{"reply chunk of 2^28 segments", fixed + "00000001 00000000 00000000 00000001 10000000", Rules{}, FaultChunk, chunk},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := Header{Reads: make([]ReadSegment, 1), HasReply: true}
			payload, err := h.Parse(unhex(t, c.wire), &c.rules)
			wantFault(t, err, c.fault)
			if got, want := bothAnswers(t, err), [2]Answer{c.want, AnswerDrop}; got != want {
				t.Errorf("answers %v, want %v", got, want)
			}
			if payload != nil || len(h.Reads)+len(h.Writes)+len(h.Reply) > 0 || h.HasReply {
				t.Errorf("payload % x, header %+v, want none", payload, h)
			}
			if c.fault != FaultShort && h.XID != 1 {
				t.Errorf("XID %d, want 1 for the answer", h.XID)
			}
		})
	}
}

// Claims: P-4.1-9
func TestWhatFollowsAHeaderWithoutAMessageIsPassedOver(t *testing.T) {
	for name, wire := range map[string]string{
		"NOMSG": fixed + "00000001 00000000 00000000 00000000 00000009",
		"DONE":  fixed + "00000003 00000009",
		"ERROR": fixed + "00000004 00000002 00000009",
	} {
		var h Header
		if payload, err := h.Parse(unhex(t, wire), &Rules{}); payload != nil || err != nil {
			t.Errorf("%s: % x, %v, want nothing", name, payload, err)
		}
	}
}

// Claims: P-4.3-16
func TestAnErrorCodeThatNobodyAssignedMayComeWithoutItsWords(t *testing.T) {
	var h Header
	if _, err := h.Parse(unhex(t, fixed+"00000004 00000009"), &Rules{}); err != nil || h.Err != 9 {
		t.Errorf("code %d, %v, want 9", h.Err, err)
	}
}

// Claims: P-4.1-3
func TestXIDsMayDifferWhereTheRulesSaySo(t *testing.T) {
	var h Header
	wire := unhex(t, fixed+"00000000 00000000 00000000 00000000 00000002")
	if _, err := h.Parse(wire, &Rules{AnyXID: true}); err != nil || h.XID != 1 {
		t.Errorf("XID %d, %v", h.XID, err)
	}
}

// Claims: P8166-3.4.4-2 P8166-8.1.4-1 P8267-6.4.2-3
func TestLimitsHoldToTheLastUnit(t *testing.T) {
	s := Segment{Length: 10}
	at := func(positions ...uint32) (list []ReadSegment) {
		for _, p := range positions {
			list = append(list, ReadSegment{p, s})
		}
		return list
	}
	small := Rules{Segments: 3, Chunks: 2, Octets: 40}
	for _, c := range []struct {
		name  string
		h     Header
		valid bool
	}{
		{"three segments at one position", Header{Reads: at(0, 0, 0)}, true},
		{"four segments at one position", Header{Reads: at(0, 0, 0, 0)}, false},
		{"two positions", Header{Reads: at(4, 0, 4, 0)}, true},
		{"three positions", Header{Reads: at(4, 0, 8)}, false},
		{"40 octets to read", Header{Reads: at(4, 0, 4, 0)}, true},
		{"50 octets to read", Header{Reads: at(4, 0, 4, 0, 4)}, false},
		{"more entries than chunks have segments", Header{Reads: make([]ReadSegment, 7)}, false},
		{"two write chunks", Header{Writes: []WriteChunk{{}, {}}}, true},
		{"three write chunks", Header{Writes: []WriteChunk{{}, {}, {}}}, false},
		{"three segments to write", Header{Writes: []WriteChunk{{s, s, s}, {s}}}, true},
		{"four segments to write", Header{Writes: []WriteChunk{{s, s, s, {}}}}, false},
		{"50 octets to write", Header{Writes: []WriteChunk{{s, s, s}, {s, s}}}, false},
		{"40 octets of reply", Header{HasReply: true, Reply: WriteChunk{{Length: 40}}}, true},
		{"41 octets of reply", Header{HasReply: true, Reply: WriteChunk{{Length: 41}}}, false},
		{"four segments of reply", Header{HasReply: true, Reply: make(WriteChunk, 4)}, false},
		{"2^33 octets", Header{Reads: []ReadSegment{{0, Segment{Length: 1<<32 - 1}}, {0, Segment{Length: 1<<32 - 1}}}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.h.Proc = ProcNoMsg
			var h Header
			_, err := h.Parse(c.h.Append(nil), &small)
			if c.valid {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantFault(t, err, FaultChunk)
		})
	}
}

// Claims: P-4.2-1 P8267-6.4.2-3
func TestAReadListBeyondAllLimitsIsNotReadToItsEnd(t *testing.T) {
	h := Header{Proc: ProcNoMsg, Reads: make([]ReadSegment, 10_000)}
	var got Header
	_, err := got.Parse(h.Append(nil), &Rules{Segments: 3, Chunks: 2})
	wantFault(t, err, FaultChunk)
	if n := cap(got.reads); n > 64 {
		t.Errorf("memory for %d entries, want it for 6", n)
	}
}

func TestLimitsThatAreNotNamedAreTheDefaults(t *testing.T) {
	for _, c := range []struct{ chunks, segments, octets int }{
		{16, 256, 8 << 20}, {17, 1, 1}, {1, 257, 1}, {1, 1, 8<<20 + 1},
	} {
		h := Header{Proc: ProcNoMsg, Writes: make([]WriteChunk, c.chunks)}
		h.Writes[0] = make(WriteChunk, c.segments)
		h.Writes[0][0].Length = uint32(c.octets)
		_, err := new(Header).Parse(h.Append(nil), &Rules{Segments: -1})
		if valid := c.chunks == 16; (err == nil) != valid {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestParseDoesNotWriteToListsThatACallerPutThere(t *testing.T) {
	mine := WriteChunk{{1, 2, 3}}
	h := Header{Reads: []ReadSegment{{4, Segment{5, 6, 7}}}, Writes: []WriteChunk{mine}, HasReply: true, Reply: mine}
	before := h.Append(nil)
	kept := h
	for _, v := range vectors {
		if _, err := h.Parse(slices.Concat(unhex(t, v.header), unhex(t, v.payload)), &v.rules); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(before, kept.Append(nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHeadersAreReadAndWrittenWithoutAllocation(t *testing.T) {
	var h Header
	var messages [][]byte
	for _, v := range vectors {
		messages = append(messages, slices.Concat(unhex(t, v.header), unhex(t, v.payload)))
	}
	unsorted := Header{Proc: ProcNoMsg, Reads: []ReadSegment{{8, Segment{}}, {4, Segment{}}, {0, Segment{}}, {8, Segment{}}}}
	messages = append(messages, unsorted.Append(nil))
	out := make([]byte, 0, 256)
	rules := &Rules{}
	if n := testing.AllocsPerRun(100, func() {
		for _, m := range messages {
			if _, err := h.Parse(m, rules); err != nil {
				t.Fatal(err)
			}
			h.Append(out)
		}
	}); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkParse(b *testing.B) {
	v := vectors[2]
	m := slices.Concat(unhex(b, v.header), unhex(b, v.payload))
	var h Header
	b.SetBytes(int64(len(m)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Parse(m, &Rules{}); err != nil {
			b.Fatal(err)
		}
	}
}

// Claims: P-4.2-1
func FuzzHeader(f *testing.F) {
	for _, v := range vectors {
		f.Add(slices.Concat(unhex(f, v.header), unhex(f, v.payload)))
	}
	f.Add(unhex(f, fixed+"00000001 00000001 00000000 00000007 00000004 ffffffff fffffffd 00000000 00000000 00000000"))
	f.Add(unhex(f, fixed+"00000001 00000000 00000001 ffffffff 00000000 00000000"))
	rules := &Rules{Segments: 5, Chunks: 3, Octets: 1 << 20}
	var reused Header
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Header
		payload, err := h.Parse(b, rules)
		again, errAgain := reused.Parse(b, rules)
		if diff := cmp.Diff(h, reused, parsed); diff != "" || !bytes.Equal(payload, again) || (err == nil) != (errAgain == nil) {
			t.Fatalf("a Header that is used again reads otherwise: %v %v\n%s", err, errAgain, diff)
		}
		if err != nil {
			bothAnswers(t, err)
			return
		}
		if len(h.Reads) > 15 || len(h.Writes) > 3 || len(h.Reply) > 5 {
			t.Fatalf("beyond the limits: %+v", h)
		}
		wire := h.Append(nil)
		if len(wire) != h.Len() {
			t.Errorf("length %d, want %d", h.Len(), len(wire))
		}
		if unassigned := h.Proc == ProcError && h.Err != ErrVers && h.Err != ErrChunk; !unassigned && !bytes.HasPrefix(b, wire) {
			t.Errorf("% x\nwant % x", wire, b)
		}
		wire = append(wire, payload...)
		if _, err := reused.Parse(wire, rules); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(h, reused, parsed); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
	})
}
