package wire_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-rdma/weft/rpcrdma/internal/worked"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// A fixed begins messages of XID 1, version 1 and one credit.
const fixed = "00000001 00000001 00000001 "

// Claims: P-3.5-1 P-4.1-1 P-4.1-2 P-4.1-13 P-4.1-18 P-4.1-19 P-4.2-1 P8166-3.4.5-2 P8166-4.5-1 P8166-4.5-8
func TestFaultsOfAHeaderGetTheirAnswers(t *testing.T) {
	const (
		drop  = wire.AnswerDrop
		vers  = wire.AnswerErrVers
		chunk = wire.AnswerErrChunk
	)
	for _, c := range []struct {
		name  string
		wire  string
		rules wire.Rules
		fault wire.Fault
		want  wire.Answer // of a responder; a requester drops
	}{
		{"nothing", "", wire.Rules{}, wire.FaultShort, drop},
		{"15 octets", fixed + "000000", wire.Rules{}, wire.FaultShort, drop},
		{"27 octets of MSG", fixed + "00000000 00000000 00000000 000000", wire.Rules{}, wire.FaultShort, drop},
		{"27 octets of NOMSG", fixed + "00000001 00000000 00000000 000000", wire.Rules{}, wire.FaultShort, drop},
		{"35 octets of MSGP", fixed + "00000002 00000100 00000200 00000000 00000000 000000", wire.Rules{}, wire.FaultShort, drop},
		{"27 octets of an unknown type", fixed + "00000005 00000000 00000000 000000", wire.Rules{}, wire.FaultShort, drop},
		{"27 octets of version 2", "00000001 00000002 00000001 00000003 00000000 00000000 000000", wire.Rules{}, wire.FaultShort, drop},
		{"19 octets of ERROR", fixed + "00000004 000000", wire.Rules{}, wire.FaultShort, drop},
		{"ERR_VERS without its range", fixed + "00000004 00000001 00000001", wire.Rules{}, wire.FaultUnexpected, drop},
		{"ERR_CHUNK of version 2", "00000001 00000002 00000001 00000004 00000002", wire.Rules{}, wire.FaultUnexpected, drop},
		{"version 0", "00000001 00000000 00000001 00000000 00000000 00000000 00000000", wire.Rules{}, wire.FaultVersion, vers},
		{"version 2", "00000001 00000002 00000001 00000009 00000000 00000000 00000000", wire.Rules{}, wire.FaultVersion, vers},
		{"version 2^32-1", "00000001 ffffffff 00000001 00000000 00000000 00000000 00000000", wire.Rules{}, wire.FaultVersion, vers},
		{"unknown type", fixed + "00000005 00000000 00000000 00000000", wire.Rules{}, wire.FaultChunk, chunk},
		{"no RPC message", fixed + "00000000 00000000 00000000 00000000", wire.Rules{}, wire.FaultChunk, chunk},
		{"three octets of an RPC message", fixed + "00000000 00000000 00000000 00000000 000000", wire.Rules{}, wire.FaultChunk, chunk},
		{"another XID", fixed + "00000000 00000000 00000000 00000000 00000002", wire.Rules{}, wire.FaultChunk, chunk},
		{"alignment beyond 64 KiB", fixed + "00000002 00010001 00000200 00000000 00000000 00000000 00000001", worked.RFC5666, wire.FaultChunk, chunk},
		{"read list begun by 2", fixed + "00000001 00000002 00000000 00000000", wire.Rules{}, wire.FaultChunk, chunk},
		{"write list begun by 2", fixed + "00000001 00000000 00000002 00000000", wire.Rules{}, wire.FaultChunk, chunk},
		{"reply chunk begun by 2", fixed + "00000001 00000000 00000000 00000002", wire.Rules{}, wire.FaultChunk, chunk},
		{"read entry cut off", fixed + "00000001 00000001 00000000 00000007", wire.Rules{}, wire.FaultChunk, chunk},
		{"read list without end", fixed + "00000001 00000001 00000000 00000007 00000004 00000000 00000000", wire.Rules{}, wire.FaultChunk, chunk},
		{"position 97", fixed + "00000001 00000001 00000061 00000007 00000004 00000000 00000000 00000000 00000000 00000000", wire.Rules{}, wire.FaultChunk, chunk},
		{"position 98", fixed + "00000001 00000001 00000062 00000007 00000004 00000000 00000000 00000000 00000000 00000000", wire.Rules{}, wire.FaultChunk, chunk},
		{"read segment that wraps", fixed + "00000001 00000001 00000000 00000007 00000004 ffffffff fffffffd 00000000 00000000 00000000", wire.Rules{}, wire.FaultChunk, chunk},
		{"write segment that wraps", fixed + "00000001 00000000 00000001 00000001 00000007 00000002 ffffffff ffffffff 00000000 00000000", wire.Rules{}, wire.FaultChunk, chunk},
		{"write chunk without count", fixed + "00000001 00000000 00000000 00000001", wire.Rules{}, wire.FaultChunk, chunk},
		{"write chunk with a count that lies", fixed + "00000001 00000000 00000001 00000002 00000007 00000002 00000000 00000000 00000000", wire.Rules{}, wire.FaultChunk, chunk},
		{"write chunk of 2^32-1 segments", fixed + "00000001 00000000 00000001 ffffffff 00000000 00000000", wire.Rules{}, wire.FaultChunk, chunk},
		{"reply chunk of 2^28 segments", fixed + "00000001 00000000 00000000 00000001 10000000", wire.Rules{}, wire.FaultChunk, chunk},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := wire.Header{Reads: make([]wire.ReadSegment, 1), HasReply: true}
			payload, err := h.Parse(worked.Unhex(t, c.wire), &c.rules)
			worked.WantFault(t, err, c.fault)
			if got, want := worked.BothAnswers(t, err), [2]wire.Answer{c.want, wire.AnswerDrop}; got != want {
				t.Errorf("answers %v, want %v", got, want)
			}
			if payload != nil || len(h.Reads)+len(h.Writes)+len(h.Reply) > 0 || h.HasReply {
				t.Errorf("payload % x, header %+v, want none", payload, h)
			}
			if c.fault != wire.FaultShort && h.XID != 1 {
				t.Errorf("XID %d, want 1 for the answer", h.XID)
			}
		})
	}
}

// Claims: P-4.1-9
func TestWhatFollowsAHeaderWithoutAMessageIsPassedOver(t *testing.T) {
	for name, sent := range map[string]string{
		"NOMSG": fixed + "00000001 00000000 00000000 00000000 00000009",
		"DONE":  fixed + "00000003 00000009",
		"ERROR": fixed + "00000004 00000002 00000009",
	} {
		var h wire.Header
		if payload, err := h.Parse(worked.Unhex(t, sent), &wire.Rules{}); payload != nil || err != nil {
			t.Errorf("%s: % x, %v, want nothing", name, payload, err)
		}
	}
}

// Claims: P-4.3-16
func TestAnErrorCodeThatNobodyAssignedMayComeWithoutItsWords(t *testing.T) {
	var h wire.Header
	if _, err := h.Parse(worked.Unhex(t, fixed+"00000004 00000009"), &wire.Rules{}); err != nil || h.Err != 9 {
		t.Errorf("code %d, %v, want 9", h.Err, err)
	}
}

// Claims: P-4.1-3
func TestXIDsMayDifferWhereTheRulesSaySo(t *testing.T) {
	var h wire.Header
	sent := worked.Unhex(t, fixed+"00000000 00000000 00000000 00000000 00000002")
	if _, err := h.Parse(sent, &wire.Rules{AnyXID: true}); err != nil || h.XID != 1 {
		t.Errorf("XID %d, %v", h.XID, err)
	}
}

// Claims: P8166-3.4.4-2 P8166-8.1.4-1 P8267-6.4.2-3
func TestLimitsHoldToTheLastUnit(t *testing.T) {
	s := wire.Segment{Length: 10}
	at := func(positions ...uint32) (list []wire.ReadSegment) {
		for _, p := range positions {
			list = append(list, wire.ReadSegment{p, s})
		}
		return list
	}
	small := wire.Rules{Segments: 3, Chunks: 2, Octets: 40}
	for _, c := range []struct {
		name  string
		h     wire.Header
		valid bool
	}{
		{"three segments at one position", wire.Header{Reads: at(0, 0, 0)}, true},
		{"four segments at one position", wire.Header{Reads: at(0, 0, 0, 0)}, false},
		{"two positions", wire.Header{Reads: at(4, 0, 4, 0)}, true},
		{"three positions", wire.Header{Reads: at(4, 0, 8)}, false},
		{"40 octets to read", wire.Header{Reads: at(4, 0, 4, 0)}, true},
		{"50 octets to read", wire.Header{Reads: at(4, 0, 4, 0, 4)}, false},
		{"more entries than chunks have segments", wire.Header{Reads: make([]wire.ReadSegment, 7)}, false},
		{"two write chunks", wire.Header{Writes: []wire.WriteChunk{{}, {}}}, true},
		{"three write chunks", wire.Header{Writes: []wire.WriteChunk{{}, {}, {}}}, false},
		{"three segments to write", wire.Header{Writes: []wire.WriteChunk{{s, s, s}, {s}}}, true},
		{"four segments to write", wire.Header{Writes: []wire.WriteChunk{{s, s, s, {}}}}, false},
		{"50 octets to write", wire.Header{Writes: []wire.WriteChunk{{s, s, s}, {s, s}}}, false},
		{"40 octets of reply", wire.Header{HasReply: true, Reply: wire.WriteChunk{{Length: 40}}}, true},
		{"41 octets of reply", wire.Header{HasReply: true, Reply: wire.WriteChunk{{Length: 41}}}, false},
		{"four segments of reply", wire.Header{HasReply: true, Reply: make(wire.WriteChunk, 4)}, false},
		{"2^33 octets", wire.Header{Reads: []wire.ReadSegment{{0, wire.Segment{Length: 1<<32 - 1}}, {0, wire.Segment{Length: 1<<32 - 1}}}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.h.Proc = wire.ProcNoMsg
			var h wire.Header
			_, err := h.Parse(c.h.Append(nil), &small)
			if c.valid {
				if err != nil {
					t.Error(err)
				}
				return
			}
			worked.WantFault(t, err, wire.FaultChunk)
		})
	}
}

// Claims: P-4.2-1 P8267-6.4.2-3
func TestAReadListBeyondAllLimitsIsNotReadToItsEnd(t *testing.T) {
	h := wire.Header{Proc: wire.ProcNoMsg, Reads: make([]wire.ReadSegment, 10_000)}
	var got wire.Header
	_, err := got.Parse(h.Append(nil), &wire.Rules{Segments: 3, Chunks: 2})
	worked.WantFault(t, err, wire.FaultChunk)
	if n := got.CapReads(); n > 64 {
		t.Errorf("memory for %d entries, want it for 6", n)
	}
}

func TestLimitsThatAreNotNamedAreTheDefaults(t *testing.T) {
	for _, c := range []struct{ chunks, segments, octets int }{
		{16, 256, 8 << 20}, {17, 1, 1}, {1, 257, 1}, {1, 1, 8<<20 + 1},
	} {
		h := wire.Header{Proc: wire.ProcNoMsg, Writes: make([]wire.WriteChunk, c.chunks)}
		h.Writes[0] = make(wire.WriteChunk, c.segments)
		h.Writes[0][0].Length = uint32(c.octets)
		_, err := new(wire.Header).Parse(h.Append(nil), &wire.Rules{Segments: -1})
		if valid := c.chunks == 16; (err == nil) != valid {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestParseDoesNotWriteToListsThatACallerPutThere(t *testing.T) {
	mine := wire.WriteChunk{{1, 2, 3}}
	h := wire.Header{Reads: []wire.ReadSegment{{4, wire.Segment{5, 6, 7}}}, Writes: []wire.WriteChunk{mine}, HasReply: true, Reply: mine}
	before := h.Append(nil)
	kept := h
	for _, v := range worked.Messages {
		if _, err := h.Parse(slices.Concat(worked.Unhex(t, v.Header), worked.Unhex(t, v.Payload)), &v.Rules); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(before, kept.Append(nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHeadersAreReadAndWrittenWithoutAllocation(t *testing.T) {
	var h wire.Header
	var messages [][]byte
	for _, v := range worked.Messages {
		messages = append(messages, slices.Concat(worked.Unhex(t, v.Header), worked.Unhex(t, v.Payload)))
	}
	unsorted := wire.Header{Proc: wire.ProcNoMsg, Reads: []wire.ReadSegment{{8, wire.Segment{}}, {4, wire.Segment{}}, {0, wire.Segment{}}, {8, wire.Segment{}}}}
	messages = append(messages, unsorted.Append(nil))
	out := make([]byte, 0, 256)
	rules := &wire.Rules{}
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
	v := worked.Messages[2]
	m := slices.Concat(worked.Unhex(b, v.Header), worked.Unhex(b, v.Payload))
	var h wire.Header
	b.SetBytes(int64(len(m)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Parse(m, &wire.Rules{}); err != nil {
			b.Fatal(err)
		}
	}
}

// Claims: P-4.2-1
func FuzzHeader(f *testing.F) {
	for _, v := range worked.Messages {
		f.Add(slices.Concat(worked.Unhex(f, v.Header), worked.Unhex(f, v.Payload)))
	}
	f.Add(worked.Unhex(f, fixed+"00000001 00000001 00000000 00000007 00000004 ffffffff fffffffd 00000000 00000000 00000000"))
	f.Add(worked.Unhex(f, fixed+"00000001 00000000 00000001 ffffffff 00000000 00000000"))
	rules := &wire.Rules{Segments: 5, Chunks: 3, Octets: 1 << 20}
	var reused wire.Header
	f.Fuzz(func(t *testing.T, b []byte) {
		var h wire.Header
		payload, err := h.Parse(b, rules)
		again, errAgain := reused.Parse(b, rules)
		if diff := cmp.Diff(h, reused, worked.Parsed); diff != "" || !bytes.Equal(payload, again) || (err == nil) != (errAgain == nil) {
			t.Fatalf("a Header that is used again reads otherwise: %v %v\n%s", err, errAgain, diff)
		}
		if err != nil {
			worked.BothAnswers(t, err)
			return
		}
		if len(h.Reads) > 15 || len(h.Writes) > 3 || len(h.Reply) > 5 {
			t.Fatalf("beyond the limits: %+v", h)
		}
		sent := h.Append(nil)
		if len(sent) != h.Len() {
			t.Errorf("length %d, want %d", h.Len(), len(sent))
		}
		if unassigned := h.Proc == wire.ProcError && h.Err != wire.ErrVers && h.Err != wire.ErrChunk; !unassigned && !bytes.HasPrefix(b, sent) {
			t.Errorf("% x\nwant % x", sent, b)
		}
		sent = append(sent, payload...)
		if _, err := reused.Parse(sent, rules); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(h, reused, worked.Parsed); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
	})
}
