package rpcrdma

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// unhex reads octets in hexadecimal, with any blanks between them.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// parsed compares what is on the wire of headers.
var parsed = cmp.Options{cmpopts.IgnoreUnexported(Header{}), cmpopts.EquateEmpty()}

// wantFault checks that err is an *Error with fault f.
func wantFault(t testing.TB, err error, f Fault) {
	t.Helper()
	if !errors.Is(err, &Error{Fault: f}) {
		t.Errorf("got %v, want a fault of %q", err, f)
	}
}

// Parts of RPC messages.
const (
	authNone   = "00000000 00000000 00000000 00000000" // credential and verifier
	fileHandle = "00000020 a0a1a2a3 a4a5a6a7 a8a9aaab acadaeaf b0b1b2b3 b4b5b6b7 b8b9babb bcbdbebf"
)

// A worked message: its octets, and what they mean.
type vector struct {
	name    string
	length  int    // of header and RPC message as shown
	header  string // xid vers credit proc, and what the type has
	payload string // the RPC message
	want    Header
	dir     Direction
	rules   Rules
}

var rfc5666 = Rules{MSGP: true, ReadRead: true}

var vectors = []vector{
	{
		name: "M1 RDMA_MSG without chunks: NFSv3 NULL call", length: 68,
		header:  "5a5a0001 00000001 00000020 00000000  00000000 00000000 00000000",
		payload: "5a5a0001 00000000 00000002 000186a3 00000003 00000000" + authNone,
		want:    Header{XID: 0x5a5a0001, Version: 1, Credits: 32},
		dir:     DirectionCall,
	},
	{
		name: "M2 its reply", length: 52,
		header:  "5a5a0001 00000001 00000040 00000000  00000000 00000000 00000000",
		payload: "5a5a0001 00000001 00000000 00000000 00000000 00000000",
		want:    Header{XID: 0x5a5a0001, Version: 1, Credits: 64},
		dir:     DirectionReply,
	},
	{
		name: "M3 Read list of one chunk in two segments: NFSv3 WRITE of 4099", length: 172,
		header: `5a5a0002 00000001 00000020 00000000
			00000001 00000060 00001100 00001000 00000000 00010000
			00000001 00000060 00001101 00000003 00000000 00020000
			00000000 00000000 00000000`,
		payload: "5a5a0002 00000000 00000002 000186a3 00000003 00000007" + authNone + fileHandle +
			"00000000 00000000 00001003 00000002 00001003",
		want: Header{XID: 0x5a5a0002, Version: 1, Credits: 32, Reads: []ReadSegment{
			{96, Segment{0x1100, 4096, 0x10000}}, {96, Segment{0x1101, 3, 0x20000}},
		}},
		dir: DirectionCall,
	},
	{
		name: "M4 Write list of one chunk in two segments: NFSv3 READ of 6000", length: 156,
		header: `5a5a0003 00000001 00000020 00000000
			00000000 00000001 00000002
			00002200 00001000 00000000 00030000 00002201 00000770 00000000 00040000
			00000000 00000000`,
		payload: "5a5a0003 00000000 00000002 000186a3 00000003 00000006" + authNone + fileHandle + "00000000 00000000 00001770",
		want: Header{XID: 0x5a5a0003, Version: 1, Credits: 32, Writes: []WriteChunk{
			{{0x2200, 4096, 0x30000}, {0x2201, 1904, 0x40000}},
		}},
		dir: DirectionCall,
	},
	{
		name: "M5 reply to M4, 5000 octets placed", length: 112,
		header: `5a5a0003 00000001 00000040 00000000 00000000 00000001 00000002
			00002200 00001000 00000000 00030000 00002201 00000388 00000000 00040000 00000000 00000000`,
		payload: `5a5a0003 00000001 00000000 00000000 00000000 00000000
			00000000 00000000 00001388 00000001 00001388`,
		want: Header{XID: 0x5a5a0003, Version: 1, Credits: 64, Writes: []WriteChunk{
			{{0x2200, 4096, 0x30000}, {0x2201, 904, 0x40000}},
		}},
		dir: DirectionReply,
	},
	{
		name: "M6 Reply chunk offered: NFSv3 READDIR", length: 144,
		header: `5a5a0004 00000001 00000020 00000000 00000000 00000000
			00000001 00000001 00003300 00002000 00000000 00050000`,
		payload: "5a5a0004 00000000 00000002 000186a3 00000003 00000010" + authNone + fileHandle +
			"00000000 00000000 00000000 00000000 00002000",
		want: Header{XID: 0x5a5a0004, Version: 1, Credits: 32, HasReply: true, Reply: WriteChunk{{0x3300, 8192, 0x50000}}},
		dir:  DirectionCall,
	},
	{
		name: "M7 RDMA_NOMSG, the long reply to M6", length: 48,
		header: "5a5a0004 00000001 00000040 00000001 00000000 00000000 00000001 00000001 00003300 00000bb8 00000000 00050000",
		want:   Header{XID: 0x5a5a0004, Version: 1, Credits: 64, Proc: ProcNoMsg, HasReply: true, Reply: WriteChunk{{0x3300, 3000, 0x50000}}},
		dir:    DirectionReply,
	},
	{
		name: "M8 RDMA_NOMSG, a long call", length: 52,
		header: "5a5a0005 00000001 00000020 00000001 00000001 00000000 00004400 00001388 00000000 00060000 00000000 00000000 00000000",
		want:   Header{XID: 0x5a5a0005, Version: 1, Credits: 32, Proc: ProcNoMsg, Reads: []ReadSegment{{0, Segment{0x4400, 5000, 0x60000}}}},
		dir:    DirectionCall,
	},
	{
		name: "M9 RDMA_NOMSG with position zero, a data chunk and a Reply chunk", length: 96,
		header: `5a5a0006 00000001 00000020 00000001
			00000001 00000000 00004401 00000960 00000000 00070000 00000001 00000960 00001102 00010000 00000000 00080000 00000000
			00000000 00000001 00000001 00003301 00001000 00000000 00090000`,
		want: Header{
			XID: 0x5a5a0006, Version: 1, Credits: 32, Proc: ProcNoMsg,
			Reads:    []ReadSegment{{0, Segment{0x4401, 2400, 0x70000}}, {2400, Segment{0x1102, 65536, 0x80000}}},
			HasReply: true, Reply: WriteChunk{{0x3301, 4096, 0x90000}},
		},
		dir: DirectionCall,
	},
	{
		name: "M10 RDMA_MSGP: NFSv3 WRITE of 600", length: 132, // 124 pads and the data follow
		header: "5a5a0007 00000001 00000020 00000002 00000100 00000200 00000000 00000000 00000000",
		payload: "5a5a0007 00000000 00000002 000186a3 00000003 00000007" + authNone + fileHandle +
			"00000000 00000000 00000258 00000002 00000258",
		want:  Header{XID: 0x5a5a0007, Version: 1, Credits: 32, Proc: ProcMsgP, Align: 256, Threshold: 512},
		dir:   DirectionCall,
		rules: rfc5666,
	},
	{
		name: "M11 RDMA_DONE", length: 16,
		header: "5a5a0008 00000001 00000020 00000003",
		want:   Header{XID: 0x5a5a0008, Version: 1, Credits: 32, Proc: ProcDone},
		dir:    DirectionCall,
	},
	{
		name: "M12 RDMA_ERROR with ERR_VERS, to a call of version 2", length: 28,
		header: "5a5a0009 00000002 00000040 00000004 00000001 00000001 00000001",
		want:   Header{XID: 0x5a5a0009, Version: 2, Credits: 64, Proc: ProcError, Err: ErrVers, Low: 1, High: 1},
		dir:    DirectionReply,
	},
	{
		name: "M13 RDMA_ERROR with ERR_CHUNK", length: 20,
		header: "5a5a000a 00000001 00000040 00000004 00000002",
		want:   Header{XID: 0x5a5a000a, Version: 1, Credits: 64, Proc: ProcError, Err: ErrChunk},
		dir:    DirectionReply,
	},
	{
		name: "M14 RDMA_ERROR with a code that nobody assigned", length: 52,
		header: "5a5a000a 00000001 00000040 00000004 00000009 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000",
		want:   Header{XID: 0x5a5a000a, Version: 1, Credits: 64, Proc: ProcError, Err: 9},
		dir:    DirectionReply,
	},
	{
		name: "M15 CONF_RDMA call", length: 80,
		header:  "5a5a000b 00000001 00000001 00000000 00000000 00000000 00000000",
		payload: "5a5a000b 00000000 00000002 00018841 00000001 00000001" + authNone + "00001000 00001000 00000010",
		want:    Header{XID: 0x5a5a000b, Version: 1, Credits: 1},
		dir:     DirectionCall,
	},
	{
		name: "M16 CONF_RDMA reply", length: 64,
		header:  "5a5a000b 00000001 00000008 00000000 00000000 00000000 00000000",
		payload: "5a5a000b 00000001 00000000 00000000 00000000 00000000 00001000 00000100 00000004",
		want:    Header{XID: 0x5a5a000b, Version: 1, Credits: 8},
		dir:     DirectionReply,
	},
}

// Claims: P-3.1-1 P-3-3 P-3.3-4 P-3.3-6 P-3.4-21 P-3.4-23 P-3.4-24 P-4.1-1 P-4.1-4 P-4.1-8 P-4.1-9 P-4.1-10 P-4.1-11 P-4.1-12 P-4.1-13
// Claims: P-4.1-14 P-4.1-15 P-4.1-16 P-4.1-17 P-4.1-18 P-4.1-20 P-4.2-3 P-4.3-1 P-4.3-2 P-4.3-3 P-4.3-4 P-4.3-5 P-4.3-6 P-4.3-7 P-4.3-8
// Claims: P-4.3-9 P-4.3-10 P-4.3-11 P-4.3-12 P-4.3-13 P-4.3-14 P-4.3-15 P-4.3-16 P8166-4-1 P8166-4.1.2-1 P8166-4.2.2-1 P8166-4.2.4-1
// Claims: P8166-4.7-1 P8166-7-1
func TestTheWorkedMessagesAreReadAndWrittenOctetForOctet(t *testing.T) {
	var reused Header
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			header, payload := unhex(t, v.header), unhex(t, v.payload)
			message := slices.Concat(header, payload)
			if len(message) != v.length {
				t.Fatalf("golden octets: %d, want %d", len(message), v.length)
			}
			rest, err := reused.Parse(message, &v.rules)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(v.want, reused, parsed); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
			if !bytes.Equal(rest, payload) {
				t.Errorf("RPC message % x\nwant % x", rest, payload)
			}
			if dir := reused.Direction(rest, &Rules{}); dir != v.dir {
				t.Errorf("%v, want %v", dir, v.dir)
			}
			check := reused.CheckReply
			if v.dir == DirectionCall {
				check = reused.CheckCall
			}
			if err := check(&v.rules); err != nil {
				t.Error(err)
			}
			for name, h := range map[string]*Header{"parsed": &reused, "made": &v.want} {
				if got := h.Append([]byte("kept")); !bytes.Equal(got[4:], header) || string(got[:4]) != "kept" {
					t.Errorf("%s header: % x\nwant % x", name, got, header)
				}
				if got := h.Len(); got != len(header) {
					t.Errorf("%s header: length %d, want %d", name, got, len(header))
				}
			}
		})
	}
}

// Claims: P-4.1-14 P-4.1-20 P-4.2-5 P-4.3-12 P-4.3-14 P-4.3-15 P8166-4.1.2-1 P8166-4.5-4 P8166-4.5-5 P8166-4.5-6
func TestMessagesWithoutListsHaveTheirOwnEncoders(t *testing.T) {
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"M11", AppendDone(nil, 0x5a5a0008, 32), "5a5a0008 00000001 00000020 00000003"},
		{"M12", AppendErrVers(nil, 0x5a5a0009, 2, 64), "5a5a0009 00000002 00000040 00000004 00000001 00000001 00000001"},
		{"M13", AppendErrChunk(nil, 0x5a5a000a, 64), "5a5a000a 00000001 00000040 00000004 00000002"},
	} {
		if want := unhex(t, c.want); !bytes.Equal(c.got, want) {
			t.Errorf("%s: % x, want % x", c.name, c.got, want)
		}
	}
}

// Claims: P-2-3 P-3.4-17 P-3.4-18 P8166-4-1
func TestAHeaderKeepsExtremeSegmentsExactly(t *testing.T) {
	want := Header{
		XID: 1<<32 - 1, Version: 1, Credits: 1<<32 - 1, Proc: ProcNoMsg,
		Reads:    []ReadSegment{{1<<32 - 4, Segment{1<<32 - 1, 1, 1<<64 - 1}}, {0, Segment{0, 0, 1<<64 - 1}}},
		Writes:   []WriteChunk{{}, {{1<<32 - 1, 0, 0}, {1, 1<<31 - 1, 1<<64 - 1<<31 + 1}}, {}},
		HasReply: true, Reply: WriteChunk{},
	}
	var got Header
	if _, err := got.Parse(want.Append(nil), &Rules{Octets: 1<<31 - 1}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, parsed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Claims: P-4.1-4 P8166-4.2.2-1
func TestEveryMessageButAnErrorGoesOutAsVersion1(t *testing.T) {
	for p := range ProcError {
		h := Header{Version: 7, Proc: p}
		if got := h.Append(nil)[7]; got != 1 {
			t.Errorf("%v: version %d, want 1", p, got)
		}
	}
}
