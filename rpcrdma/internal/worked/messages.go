// Package worked has messages of RPC-over-RDMA octet for octet, with what they
// mean, and what the tests of the packages around have in common.
package worked

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// Unhex reads octets in hexadecimal, with any blanks between them.
func Unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Parsed compares what is on the wire of headers.
var Parsed = cmp.Options{cmpopts.IgnoreUnexported(wire.Header{}), cmpopts.EquateEmpty()}

// WantFault checks that err is an *Error with fault f.
func WantFault(t testing.TB, err error, f wire.Fault) {
	t.Helper()
	if !errors.Is(err, &wire.Error{Fault: f}) {
		t.Errorf("got %v, want a fault of %q", err, f)
	}
}

// BothAnswers are what a responder and a requester do about err.
func BothAnswers(t testing.TB, err error) [2]wire.Answer {
	t.Helper()
	var e *wire.Error
	if !errors.As(err, &e) || e.Detail == "" {
		t.Fatalf("got %v, want an *Error with detail", err)
	}
	return [2]wire.Answer{e.Fault.Answer(wire.Responder), e.Fault.Answer(wire.Requester)}
}

// Parts of RPC messages.
const (
	authNone   = "00000000 00000000 00000000 00000000" // credential and verifier
	FileHandle = "00000020 a0a1a2a3 a4a5a6a7 a8a9aaab acadaeaf b0b1b2b3 b4b5b6b7 b8b9babb bcbdbebf"
)

// A Message is a worked message: its octets, and what they mean.
type Message struct {
	Name      string
	Length    int    // of header and RPC message as shown
	Header    string // xid vers credit proc, and what the type has
	Payload   string // the RPC message
	Want      wire.Header
	Direction wire.Direction
	Rules     wire.Rules
}

// RFC5666 accepts what RFC 8166 has removed.
var RFC5666 = wire.Rules{MSGP: true, ReadRead: true}

// Messages are the worked messages, M1 to M16.
var Messages = []Message{
	{
		Name: "M1 RDMA_MSG without chunks: NFSv3 NULL call", Length: 68,
		Header:    "5a5a0001 00000001 00000020 00000000  00000000 00000000 00000000",
		Payload:   "5a5a0001 00000000 00000002 000186a3 00000003 00000000" + authNone,
		Want:      wire.Header{XID: 0x5a5a0001, Version: 1, Credits: 32},
		Direction: wire.DirectionCall,
	},
	{
		Name: "M2 its reply", Length: 52,
		Header:    "5a5a0001 00000001 00000040 00000000  00000000 00000000 00000000",
		Payload:   "5a5a0001 00000001 00000000 00000000 00000000 00000000",
		Want:      wire.Header{XID: 0x5a5a0001, Version: 1, Credits: 64},
		Direction: wire.DirectionReply,
	},
	{
		Name: "M3 Read list of one chunk in two segments: NFSv3 WRITE of 4099", Length: 172,
		Header: `5a5a0002 00000001 00000020 00000000
			00000001 00000060 00001100 00001000 00000000 00010000
			00000001 00000060 00001101 00000003 00000000 00020000
			00000000 00000000 00000000`,
		Payload: "5a5a0002 00000000 00000002 000186a3 00000003 00000007" + authNone + FileHandle +
			"00000000 00000000 00001003 00000002 00001003",
		Want: wire.Header{XID: 0x5a5a0002, Version: 1, Credits: 32, Reads: []wire.ReadSegment{
			{Position: 96, Segment: wire.Segment{Handle: 0x1100, Length: 4096, Offset: 0x10000}}, {Position: 96, Segment: wire.Segment{Handle: 0x1101, Length: 3, Offset: 0x20000}},
		}},
		Direction: wire.DirectionCall,
	},
	{
		Name: "M4 Write list of one chunk in two segments: NFSv3 READ of 6000", Length: 156,
		Header: `5a5a0003 00000001 00000020 00000000
			00000000 00000001 00000002
			00002200 00001000 00000000 00030000 00002201 00000770 00000000 00040000
			00000000 00000000`,
		Payload: "5a5a0003 00000000 00000002 000186a3 00000003 00000006" + authNone + FileHandle + "00000000 00000000 00001770",
		Want: wire.Header{XID: 0x5a5a0003, Version: 1, Credits: 32, Writes: []wire.WriteChunk{
			{{Handle: 0x2200, Length: 4096, Offset: 0x30000}, {Handle: 0x2201, Length: 1904, Offset: 0x40000}},
		}},
		Direction: wire.DirectionCall,
	},
	{
		Name: "M5 reply to M4, 5000 octets placed", Length: 112,
		Header: `5a5a0003 00000001 00000040 00000000 00000000 00000001 00000002
			00002200 00001000 00000000 00030000 00002201 00000388 00000000 00040000 00000000 00000000`,
		Payload: `5a5a0003 00000001 00000000 00000000 00000000 00000000
			00000000 00000000 00001388 00000001 00001388`,
		Want: wire.Header{XID: 0x5a5a0003, Version: 1, Credits: 64, Writes: []wire.WriteChunk{
			{{Handle: 0x2200, Length: 4096, Offset: 0x30000}, {Handle: 0x2201, Length: 904, Offset: 0x40000}},
		}},
		Direction: wire.DirectionReply,
	},
	{
		Name: "M6 Reply chunk offered: NFSv3 READDIR", Length: 144,
		Header: `5a5a0004 00000001 00000020 00000000 00000000 00000000
			00000001 00000001 00003300 00002000 00000000 00050000`,
		Payload: "5a5a0004 00000000 00000002 000186a3 00000003 00000010" + authNone + FileHandle +
			"00000000 00000000 00000000 00000000 00002000",
		Want:      wire.Header{XID: 0x5a5a0004, Version: 1, Credits: 32, HasReply: true, Reply: wire.WriteChunk{{Handle: 0x3300, Length: 8192, Offset: 0x50000}}},
		Direction: wire.DirectionCall,
	},
	{
		Name: "M7 RDMA_NOMSG, the long reply to M6", Length: 48,
		Header:    "5a5a0004 00000001 00000040 00000001 00000000 00000000 00000001 00000001 00003300 00000bb8 00000000 00050000",
		Want:      wire.Header{XID: 0x5a5a0004, Version: 1, Credits: 64, Proc: wire.ProcNoMsg, HasReply: true, Reply: wire.WriteChunk{{Handle: 0x3300, Length: 3000, Offset: 0x50000}}},
		Direction: wire.DirectionReply,
	},
	{
		Name: "M8 RDMA_NOMSG, a long call", Length: 52,
		Header:    "5a5a0005 00000001 00000020 00000001 00000001 00000000 00004400 00001388 00000000 00060000 00000000 00000000 00000000",
		Want:      wire.Header{XID: 0x5a5a0005, Version: 1, Credits: 32, Proc: wire.ProcNoMsg, Reads: []wire.ReadSegment{{Position: 0, Segment: wire.Segment{Handle: 0x4400, Length: 5000, Offset: 0x60000}}}},
		Direction: wire.DirectionCall,
	},
	{
		Name: "M9 RDMA_NOMSG with position zero, a data chunk and a Reply chunk", Length: 96,
		Header: `5a5a0006 00000001 00000020 00000001
			00000001 00000000 00004401 00000960 00000000 00070000 00000001 00000960 00001102 00010000 00000000 00080000 00000000
			00000000 00000001 00000001 00003301 00001000 00000000 00090000`,
		Want: wire.Header{
			XID: 0x5a5a0006, Version: 1, Credits: 32, Proc: wire.ProcNoMsg,
			Reads:    []wire.ReadSegment{{Position: 0, Segment: wire.Segment{Handle: 0x4401, Length: 2400, Offset: 0x70000}}, {Position: 2400, Segment: wire.Segment{Handle: 0x1102, Length: 65536, Offset: 0x80000}}},
			HasReply: true, Reply: wire.WriteChunk{{Handle: 0x3301, Length: 4096, Offset: 0x90000}},
		},
		Direction: wire.DirectionCall,
	},
	{
		Name: "M10 RDMA_MSGP: NFSv3 WRITE of 600", Length: 132, // 124 pads and the data follow
		Header: "5a5a0007 00000001 00000020 00000002 00000100 00000200 00000000 00000000 00000000",
		Payload: "5a5a0007 00000000 00000002 000186a3 00000003 00000007" + authNone + FileHandle +
			"00000000 00000000 00000258 00000002 00000258",
		Want:      wire.Header{XID: 0x5a5a0007, Version: 1, Credits: 32, Proc: wire.ProcMsgP, Align: 256, Threshold: 512},
		Direction: wire.DirectionCall,
		Rules:     RFC5666,
	},
	{
		Name: "M11 RDMA_DONE", Length: 16,
		Header:    "5a5a0008 00000001 00000020 00000003",
		Want:      wire.Header{XID: 0x5a5a0008, Version: 1, Credits: 32, Proc: wire.ProcDone},
		Direction: wire.DirectionCall,
	},
	{
		Name: "M12 RDMA_ERROR with ERR_VERS, to a call of version 2", Length: 28,
		Header:    "5a5a0009 00000002 00000040 00000004 00000001 00000001 00000001",
		Want:      wire.Header{XID: 0x5a5a0009, Version: 2, Credits: 64, Proc: wire.ProcError, Err: wire.ErrVers, Low: 1, High: 1},
		Direction: wire.DirectionReply,
	},
	{
		Name: "M13 RDMA_ERROR with ERR_CHUNK", Length: 20,
		Header:    "5a5a000a 00000001 00000040 00000004 00000002",
		Want:      wire.Header{XID: 0x5a5a000a, Version: 1, Credits: 64, Proc: wire.ProcError, Err: wire.ErrChunk},
		Direction: wire.DirectionReply,
	},
	{
		Name: "M14 RDMA_ERROR with a code that nobody assigned", Length: 52,
		Header:    "5a5a000a 00000001 00000040 00000004 00000009 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000",
		Want:      wire.Header{XID: 0x5a5a000a, Version: 1, Credits: 64, Proc: wire.ProcError, Err: 9},
		Direction: wire.DirectionReply,
	},
	{
		Name: "M15 CONF_RDMA call", Length: 80,
		Header:    "5a5a000b 00000001 00000001 00000000 00000000 00000000 00000000",
		Payload:   "5a5a000b 00000000 00000002 00018841 00000001 00000001" + authNone + "00001000 00001000 00000010",
		Want:      wire.Header{XID: 0x5a5a000b, Version: 1, Credits: 1},
		Direction: wire.DirectionCall,
	},
	{
		Name: "M16 CONF_RDMA reply", Length: 64,
		Header:    "5a5a000b 00000001 00000008 00000000 00000000 00000000 00000000",
		Payload:   "5a5a000b 00000001 00000000 00000000 00000000 00000000 00001000 00000100 00000004",
		Want:      wire.Header{XID: 0x5a5a000b, Version: 1, Credits: 8},
		Direction: wire.DirectionReply,
	},
}
