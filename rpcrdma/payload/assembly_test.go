package payload_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weft-rdma/weft/rpcrdma/internal/worked"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

func inlinePiece(offset, n int) payload.Piece {
	return payload.Piece{Kind: payload.PieceInline, Offset: offset, Length: n}
}
func zeros(n int) payload.Piece { return payload.Piece{Kind: payload.PieceZeros, Length: n} }
func readPiece(handle uint32, n int, offset uint64) payload.Piece {
	return payload.Piece{Kind: payload.PieceRead, Length: n, Segment: wire.Segment{Handle: handle, Length: uint32(n), Offset: offset}}
}

// Claims: P-3.4-20 P-3.5-2 P-3.7-2 P-3.7-3 P-5.1-3 P8166-3.2-1 P8166-3.4.3-1 P8166-3.4.4-1 P8166-3.4.5-1 P8166-3.4.5.2-4 P8166-3.4.5-3
func TestAStreamIsPutTogetherFromItsPieces(t *testing.T) {
	entry := func(position, handle, length uint32) wire.ReadSegment {
		return wire.ReadSegment{Position: position, Segment: wire.Segment{Handle: handle, Length: length, Offset: 0x1000}}
	}
	for _, c := range []struct {
		name   string
		proc   wire.Proc
		reads  []wire.ReadSegment
		inline int
		pads   []payload.Run
		want   []payload.Piece
		items  []payload.ReducedItem
		length int
	}{
		{name: "M1", inline: 40, want: []payload.Piece{inlinePiece(0, 40)}, length: 40},
		{
			name: "M3, the roundup of whose chunk is elided", inline: 96, reads: worked.Messages[2].Want.Reads,
			want:  []payload.Piece{inlinePiece(0, 96), readPiece(0x1100, 4096, 0x10000), readPiece(0x1101, 3, 0x20000), zeros(1)},
			items: []payload.ReducedItem{{96, 4099}}, length: 96 + 4100,
		},
		{
			name: "M8", proc: wire.ProcNoMsg, reads: worked.Messages[7].Want.Reads,
			want: []payload.Piece{readPiece(0x4400, 5000, 0x60000)}, length: 5000,
		},
		{
			name: "M9", proc: wire.ProcNoMsg, reads: worked.Messages[8].Want.Reads,
			want:  []payload.Piece{readPiece(0x4401, 2400, 0x70000), readPiece(0x1102, 65536, 0x80000)},
			items: []payload.ReducedItem{{2400, 65536}}, length: 2400 + 65536,
		},
		{
			name: "M10, without its pads", proc: wire.ProcMsgP, inline: 820, pads: []payload.Run{{96, 124}},
			want: []payload.Piece{inlinePiece(0, 96), inlinePiece(220, 600)}, length: 696,
		},
		{
			name: "a chunk in the middle", inline: 60, reads: []wire.ReadSegment{entry(40, 1, 8)},
			want:  []payload.Piece{inlinePiece(0, 40), readPiece(1, 8, 0x1000), inlinePiece(40, 20)},
			items: []payload.ReducedItem{{40, 8}}, length: 68,
		},
		{
			name: "segments of 5, 3 and 8 at one position, others between them", inline: 60,
			reads:  []wire.ReadSegment{entry(60, 4, 4), entry(40, 1, 5), entry(60, 5, 4), entry(40, 2, 3), entry(40, 3, 8)},
			want:   []payload.Piece{inlinePiece(0, 40), readPiece(1, 5, 0x1000), readPiece(2, 3, 0x1000), readPiece(3, 8, 0x1000), inlinePiece(40, 4), readPiece(4, 4, 0x1000), readPiece(5, 4, 0x1000), inlinePiece(44, 16)},
			items:  []payload.ReducedItem{{40, 16}, {60, 8}},
			length: 84,
		},
		{
			name: "RFC 5666 §3.7: 5 octets at 40, the next chunk at 48, nothing inline between", inline: 40,
			reads:  []wire.ReadSegment{entry(40, 1, 5), entry(48, 2, 8)},
			want:   []payload.Piece{inlinePiece(0, 40), readPiece(1, 5, 0x1000), zeros(3), readPiece(2, 8, 0x1000)},
			items:  []payload.ReducedItem{{40, 5}, {48, 8}},
			length: 56,
		},
		{
			name: "roundup as a segment of its own", inline: 44, reads: []wire.ReadSegment{entry(40, 1, 5), entry(40, 9, 3)},
			want:  []payload.Piece{inlinePiece(0, 40), readPiece(1, 5, 0x1000), readPiece(9, 3, 0x1000), inlinePiece(40, 4)},
			items: []payload.ReducedItem{{40, 8}}, length: 52,
		},
		{
			name: "empty segments, and an empty chunk", inline: 44, reads: []wire.ReadSegment{entry(40, 1, 0), entry(44, 2, 0), entry(44, 3, 4)},
			want:  []payload.Piece{inlinePiece(0, 40), inlinePiece(40, 4), readPiece(3, 4, 0x1000)},
			items: []payload.ReducedItem{{40, 0}, {44, 4}}, length: 48,
		},
		{
			name: "position zero in segments that chunks divide", proc: wire.ProcNoMsg, inline: 9,
			reads: []wire.ReadSegment{entry(0, 1, 30), entry(0, 2, 50), entry(20, 8, 6), entry(60, 9, 4)},
			want: []payload.Piece{
				readPiece(1, 20, 0x1000), readPiece(8, 6, 0x1000), zeros(2),
				readPiece(1, 10, 0x1014), readPiece(2, 22, 0x1000), readPiece(9, 4, 0x1000), readPiece(2, 28, 0x1016),
			},
			items: []payload.ReducedItem{{20, 6}, {60, 4}}, length: 92,
		},
		{
			name: "pads and chunks", proc: wire.ProcMsgP, inline: 50, pads: []payload.Run{{8, 2}, {10, 0}, {40, 10}}, reads: []wire.ReadSegment{entry(8, 1, 4)},
			want:  []payload.Piece{inlinePiece(0, 8), readPiece(1, 4, 0x1000), inlinePiece(10, 30)},
			items: []payload.ReducedItem{{8, 4}}, length: 42,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var a payload.Assembly
			h := wire.Header{Proc: c.proc, Reads: slices.Clone(c.reads)}
			if err := a.Plan(&h, c.inline, c.pads, &wire.Rules{}); err != nil {
				t.Fatal(err)
			}
			want := payload.Assembly{Pieces: c.want, Items: c.items, Length: c.length}
			if diff := cmp.Diff(want, a, cmpopts.IgnoreUnexported(a), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.reads, h.Reads); diff != "" {
				t.Errorf("the Read list was changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChunksThatDoNotFitTheStreamAreRefused(t *testing.T) {
	at := func(list ...uint32) (reads []wire.ReadSegment) { // positions and lengths
		for i := 0; i < len(list); i += 2 {
			reads = append(reads, wire.ReadSegment{Position: list[i], Segment: wire.Segment{Length: list[i+1]}})
		}
		return reads
	}
	for _, c := range []struct {
		name   string
		proc   wire.Proc
		reads  []wire.ReadSegment
		inline int
		pads   []payload.Run
		rules  wire.Rules
		fault  wire.Fault
	}{
		{"beyond what is inline", wire.ProcMsg, at(44, 4), 40, nil, wire.Rules{}, wire.FaultStream},
		{"at 2^32-4", wire.ProcMsg, at(1<<32-4, 4), 40, nil, wire.Rules{}, wire.FaultStream},
		{"within another", wire.ProcMsg, at(20, 8, 24, 4), 40, nil, wire.Rules{}, wire.FaultStream},
		{"within the roundup of another", wire.ProcMsg, at(20, 5, 24, 4), 40, nil, wire.Rules{}, wire.FaultStream},
		{"beyond the position-zero chunk", wire.ProcNoMsg, at(0, 40, 44, 4), 400, nil, wire.Rules{}, wire.FaultStream},
		{"no octet at position zero", wire.ProcNoMsg, at(0, 0), 400, nil, wire.Rules{}, wire.FaultChunk},
		{"no position zero", wire.ProcNoMsg, at(40, 4), 400, nil, wire.Rules{}, wire.FaultChunk},
		{"three octets", wire.ProcMsg, nil, 3, nil, wire.Rules{}, wire.FaultChunk},
		{"octets fewer than none", wire.ProcMsg, nil, -3, nil, wire.Rules{}, wire.FaultChunk},
		{"beyond the limit", wire.ProcMsg, at(20, 8, 28, 4), 40, nil, wire.Rules{Octets: 11}, wire.FaultChunk},
		{"pad beyond the end", wire.ProcMsgP, nil, 40, []payload.Run{{39, 2}}, wire.Rules{}, wire.FaultStream},
		{"pad before another", wire.ProcMsgP, nil, 40, []payload.Run{{20, 4}, {23, 2}}, wire.Rules{}, wire.FaultStream},
		{"pad of negative length", wire.ProcMsgP, nil, 40, []payload.Run{{20, -4}}, wire.Rules{}, wire.FaultStream},
		{"pad at a negative offset", wire.ProcMsgP, nil, 40, []payload.Run{{-20, 4}}, wire.Rules{}, wire.FaultStream},
	} {
		t.Run(c.name, func(t *testing.T) {
			var a payload.Assembly
			err := a.Plan(&wire.Header{Proc: c.proc, Reads: c.reads}, c.inline, c.pads, &c.rules)
			worked.WantFault(t, err, c.fault)
			worked.BothAnswers(t, err)
			if len(a.Pieces)+len(a.Items)+a.Length > 0 {
				t.Errorf("planned %+v, want nothing", a)
			}
		})
	}
}

// peerMemory is a peer's: what is registered, by handle, each from offset 2^20.
type peerMemory map[uint32][]byte

func (m peerMemory) at(t testing.TB, s wire.Segment) []byte {
	t.Helper()
	region, ok := m[s.Handle]
	from := s.Offset - 1<<20
	if !ok || s.Offset < 1<<20 || from+uint64(s.Length) > uint64(len(region)) {
		t.Fatalf("%+v is outside of region %d of %d octets", s, s.Handle, len(region))
	}
	return region[from : from+uint64(s.Length)]
}

// assemble follows a plan.
func assemble(t testing.TB, a *payload.Assembly, inline []byte, m peerMemory) (stream []byte) {
	t.Helper()
	for _, p := range a.Pieces {
		if p.Length <= 0 || p.Kind == payload.PieceRead && uint64(p.Segment.Length) != uint64(p.Length) {
			t.Fatalf("piece %+v", p)
		}
		switch p.Kind {
		case payload.PieceInline:
			stream = append(stream, inline[p.Offset:p.Offset+p.Length]...)
		case payload.PieceRead:
			stream = append(stream, m.at(t, p.Segment)...)
		case payload.PieceZeros:
			stream = append(stream, make([]byte, p.Length)...)
		}
	}
	if len(stream) != a.Length {
		t.Fatalf("%d octets, planned were %d", len(stream), a.Length)
	}
	return stream
}

// register divides b into segments, empty ones among them.
func (m peerMemory) register(rng *rand.Rand, b []byte) (list []wire.Segment) {
	for len(b) > 0 || rng.IntN(4) == 0 {
		n := rng.IntN(len(b) + 1)
		handle := rng.Uint32()
		m[handle] = b[:n]
		list = append(list, wire.Segment{Handle: handle, Length: uint32(n), Offset: 1 << 20})
		b = b[n:]
	}
	return list
}

// Senders of every kind make messages of random streams, and what is assembled
// is the stream.
//
// Claims: P-3.7-3 P8166-3.4.4-1 P8166-3.4.5-1 P8166-3.4.5-3
func TestWhatIsAssembledIsTheStreamThatWasTakenApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(5666, 8166))
	var a payload.Assembly
	for range 3000 {
		stream := make([]byte, 4*(2+rng.IntN(60)))
		for i := range stream {
			stream[i] = byte(rng.Uint32())
		}
		m := peerMemory{}
		h := wire.Header{Proc: wire.ProcMsg}
		var rest []byte
		for at, from := 4, 0; ; {
			if at > len(stream) || rng.IntN(5) == 0 {
				rest = append(rest, stream[from:]...)
				break
			}
			// An item of n octets at "at": its roundup is zeros, and in the
			// chunk or not.
			n := rng.IntN(len(stream) - at + 1)
			end := at + n + wire.Pad(uint64(n))
			clear(stream[at+n : end])
			rest = append(rest, stream[from:at]...)
			chunk := stream[at : at+n]
			if rng.IntN(2) == 0 {
				chunk = stream[at:end]
			}
			for _, s := range m.register(rng, chunk) {
				h.Reads = append(h.Reads, wire.ReadSegment{Position: uint32(at), Segment: s})
			}
			from = end
			at = end + 4*rng.IntN(3)
			if at == end && n == 0 {
				at += 4
			}
		}
		if rng.IntN(2) == 0 {
			h.Proc = wire.ProcNoMsg
			for _, s := range m.register(rng, rest) {
				h.Reads = append(h.Reads, wire.ReadSegment{Position: 0, Segment: s})
			}
			rest = nil
		}
		// The entries of different chunks in any order.
		for i := len(h.Reads) - 1; i > 0; i-- {
			if j := rng.IntN(i); h.Reads[i].Position != h.Reads[i-1].Position && j%2 == 0 {
				h.Reads[i], h.Reads[i-1] = h.Reads[i-1], h.Reads[i]
			}
		}
		if err := a.Plan(&h, len(rest), nil, &wire.Rules{Chunks: 99}); err != nil {
			t.Fatalf("%v\n%+v", err, h)
		}
		if got := assemble(t, &a, rest, m); !bytes.Equal(got, stream) {
			t.Fatalf("got  % x\nwant % x\nof %+v", got, stream, h)
		}
	}
}

func TestAPlanThatIsMadeAgainAllocatesNothing(t *testing.T) {
	var a payload.Assembly
	h, rules := worked.Messages[8].Want, &wire.Rules{}
	if n := testing.AllocsPerRun(100, func() {
		if err := a.Plan(&h, 0, nil, rules); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// FuzzAssembly reads a header and plans what it asks for: the plan refers to no
// octet that the peer did not offer, inline or by segment, and to each once.
func FuzzAssembly(f *testing.F) {
	for _, v := range worked.Messages {
		f.Add(slices.Concat(worked.Unhex(f, v.Header), worked.Unhex(f, v.Payload)), uint16(96), uint16(4))
	}
	odd := wire.Header{XID: 7, Proc: wire.ProcMsg, Reads: []wire.ReadSegment{{Position: 48, Segment: wire.Segment{Handle: 2, Length: 8, Offset: 0}}, {Position: 40, Segment: wire.Segment{Handle: 1, Length: 5, Offset: 0}}}}
	f.Add(binary.BigEndian.AppendUint32(odd.Append(nil), 7), uint16(0), uint16(0))
	var a payload.Assembly
	rules := &wire.Rules{Octets: 1 << 20, AnyXID: true}
	f.Fuzz(func(t *testing.T, b []byte, padAt, padLen uint16) {
		var h wire.Header
		rest, err := h.Parse(b, rules)
		if err != nil || h.Proc > wire.ProcMsgP {
			return
		}
		var pads []payload.Run
		if h.Proc == wire.ProcMsgP {
			pads = []payload.Run{{int(padAt), int(padLen)}}
		}
		if err := a.Plan(&h, len(rest), pads, rules); err != nil {
			worked.BothAnswers(t, err)
			return
		}
		var total, inline, read, offered uint64
		end := 0
		for _, p := range a.Pieces {
			total += uint64(p.Length)
			switch p.Kind {
			case payload.PieceInline:
				if p.Offset < end || p.Length < 1 || p.Offset+p.Length > len(rest) || h.Proc == wire.ProcNoMsg {
					t.Fatalf("%+v of %d octets, from %d on", p, len(rest), end)
				}
				end = p.Offset + p.Length
				inline += uint64(p.Length)
			case payload.PieceRead:
				if !slices.ContainsFunc(h.Reads, func(s wire.ReadSegment) bool {
					from := p.Segment.Offset - s.Offset
					return s.Handle == p.Segment.Handle && p.Segment.Offset >= s.Offset && from+uint64(p.Length) <= uint64(s.Length)
				}) || p.Segment.Length != uint32(p.Length) {
					t.Fatalf("%+v was not offered by %+v", p, h.Reads)
				}
				read += uint64(p.Length)
			case payload.PieceZeros:
				if p.Length < 1 || p.Length > 3 {
					t.Fatalf("%+v", p)
				}
			}
		}
		for _, s := range h.Reads {
			offered += uint64(s.Length)
		}
		for _, p := range pads {
			inline += uint64(p.Length)
		}
		if total != uint64(a.Length) || read != offered || h.Proc != wire.ProcNoMsg && inline != uint64(len(rest)) {
			t.Errorf("%d octets of %d: %d of %d inline, %d of %d read", total, a.Length, inline, len(rest), read, offered)
		}
		for i, item := range a.Items {
			if item.Position%4 != 0 || int(item.Position)+item.Length > a.Length || i > 0 && item.Position <= a.Items[i-1].Position {
				t.Errorf("item %d of %+v in %d octets", i, a.Items, a.Length)
			}
		}
	})
}

func TestKindsOfPiecesSpeak(t *testing.T) {
	for kind, want := range []string{"inline", "read", "zeros"} {
		if got := payload.PieceKind(kind).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
