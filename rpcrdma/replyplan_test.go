package rpcrdma

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Claims: P-3.6-1 P-3.6-2 P-3.6-4 P-3.7-8 P-5.2-3 P5667-3-3 P5667-3-4 P5667-3-5 P5667-5-2 P8166-3.4.6.2-2 P8166-3.4.6.2-3 P8166-3.4.6-3
// Claims: P8166-3.4.6-4 P8166-3.5.3-1 P8166-3.5.3-5 P8166-3.5.3-6 P8166-4.2.4-5 P8166-4.3.2-1 P8166-4.3.2.1-1 P8166-4.3.2.2-3
// Claims: P8166-4.3.2.3-2 P8166-4.3.2.3-3 P8166-4.3.3-4
func TestAReplyGoesWhereTheCallOffers(t *testing.T) {
	three := WriteChunk{{1, 10, 100}, {2, 20, 200}, {3, 30, 300}}
	lengths := func(c WriteChunk, lengths ...uint32) WriteChunk {
		c = slices.Clone(c)
		for i := range c {
			c[i].Length = 0
			if i < len(lengths) {
				c[i].Length = lengths[i]
			}
		}
		return c
	}
	m4, m6 := vectors[3].want, vectors[5].want
	for _, c := range []struct {
		name      string
		call      Header
		length    int
		results   []Run
		threshold int
		want      ReplyPlan // without XID and version
	}{
		{
			name: "inline", length: 24, threshold: 52,
			want: ReplyPlan{Inline: []Run{{0, 24}}},
		},
		{
			name: "M5: 5000 octets into M4's chunk", call: m4, length: 44 + 5000, results: []Run{{44, 5000}}, threshold: 1024,
			want: ReplyPlan{
				Header: Header{Writes: vectors[4].want.Writes},
				Writes: []Write{{44, Segment{0x2200, 4096, 0x30000}}, {44 + 4096, Segment{0x2201, 904, 0x40000}}},
				Inline: []Run{{0, 44}},
			},
		},
		{
			name: "M7: 3000 octets into M6's Reply chunk", call: m6, length: 3000, threshold: 1024,
			want: ReplyPlan{
				Header: Header{Proc: ProcNoMsg, HasReply: true, Reply: vectors[6].want.Reply},
				Writes: []Write{{0, Segment{0x3300, 3000, 0x50000}}},
			},
		},
		{
			name: "exactly the threshold, so the Reply chunk is unused", call: m6, length: 1024 - 48, threshold: 1024,
			want: ReplyPlan{Header: Header{HasReply: true, Reply: lengths(m6.Reply)}, Inline: []Run{{0, 976}}},
		},
		{
			name: "four above the threshold", call: m6, length: 1028 - 48, threshold: 1024,
			want: ReplyPlan{
				Header: Header{Proc: ProcNoMsg, HasReply: true, Reply: lengths(m6.Reply, 980)},
				Writes: []Write{{0, Segment{0x3300, 980, 0x50000}}},
			},
		},
		{
			name: "roundup leaves the stream and is not written", call: Header{Writes: []WriteChunk{three}}, length: 60, results: []Run{{40, 13}}, threshold: 1024,
			want: ReplyPlan{
				Header: Header{Writes: []WriteChunk{lengths(three, 10, 3, 0)}},
				Writes: []Write{{40, Segment{1, 10, 100}}, {50, Segment{2, 3, 200}}},
				Inline: []Run{{0, 40}, {56, 4}},
			},
		},
		{
			name: "a full chunk", call: Header{Writes: []WriteChunk{three}}, length: 100, results: []Run{{40, 60}}, threshold: 1024,
			want: ReplyPlan{
				Header: Header{Writes: []WriteChunk{three}},
				Writes: []Write{{40, Segment{1, 10, 100}}, {50, Segment{2, 20, 200}}, {70, Segment{3, 30, 300}}},
				Inline: []Run{{0, 40}},
			},
		},
		{
			name: "no result: the chunks come back unused", call: Header{Writes: []WriteChunk{three, {}, three}}, length: 40, threshold: 1024,
			want: ReplyPlan{Header: Header{Writes: []WriteChunk{lengths(three), {}, lengths(three)}}, Inline: []Run{{0, 40}}},
		},
		{
			name: "empty chunks and those of no octets keep their result inline",
			call: Header{Writes: []WriteChunk{{}, {{7, 0, 70}}, three}}, length: 60, results: []Run{{20, 4}, {28, 4}, {36, 4}}, threshold: 1024,
			want: ReplyPlan{
				Header: Header{Writes: []WriteChunk{{}, {{7, 0, 70}}, lengths(three, 4)}},
				Writes: []Write{{36, Segment{1, 4, 100}}},
				Inline: []Run{{0, 36}, {40, 20}},
			},
		},
		{
			name: "more results than chunks", call: Header{Writes: []WriteChunk{three}}, length: 60, results: []Run{{20, 4}, {28, 4}}, threshold: 1024,
			want: ReplyPlan{
				Header: Header{Writes: []WriteChunk{lengths(three, 4)}},
				Writes: []Write{{20, Segment{1, 4, 100}}},
				Inline: []Run{{0, 20}, {24, 36}},
			},
		},
		{
			name: "a result of no octets uses up its chunk", call: Header{Writes: []WriteChunk{three, three}}, length: 60, results: []Run{{20, 0}, {24, 4}}, threshold: 1024,
			want: ReplyPlan{
				Header: Header{Writes: []WriteChunk{lengths(three), lengths(three, 4)}},
				Writes: []Write{{24, Segment{1, 4, 100}}},
				Inline: []Run{{0, 20}, {20, 4}, {28, 32}},
			},
		},
		{
			name: "Write list and Reply chunk", threshold: 100,
			call:   Header{Writes: []WriteChunk{{{9, 8, 900}}}, HasReply: true, Reply: WriteChunk{{4, 0, 400}, {5, 30, 500}, {6, 99, 600}}},
			length: 48, results: []Run{{16, 5}},
			want: ReplyPlan{
				Header: Header{Proc: ProcNoMsg, Writes: []WriteChunk{{{9, 5, 900}}}, HasReply: true, Reply: WriteChunk{{4, 0, 400}, {5, 30, 500}, {6, 10, 600}}},
				Writes: []Write{{16, Segment{9, 5, 900}}, {0, Segment{5, 16, 500}}, {24, Segment{5, 14, 516}}, {38, Segment{6, 10, 600}}},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := c.call.Append(nil)
			var p ReplyPlan
			if err := p.Plan(&c.call, c.length, c.results, c.threshold); err != nil {
				t.Fatal(err)
			}
			c.want.Header.XID, c.want.Header.Version = c.call.XID, 1
			if diff := cmp.Diff(c.want, p, parsed, cmpopts.IgnoreUnexported(p)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := p.Header.CheckReply(&Rules{}); err != nil {
				t.Error(err)
			}
			if err := p.Header.CheckReturned(&c.call); err != nil {
				t.Error(err)
			}
			if !bytes.Equal(before, c.call.Append(nil)) {
				t.Errorf("the call's header was changed: %+v", c.call)
			}
		})
	}
}

// Claims: P8166-3.4.6-4
func TestARepliesHeaderIsThatOfTheWorkedMessage(t *testing.T) {
	for _, c := range []struct {
		call, reply vector
		length      int
		results     []Run
	}{
		{vectors[3], vectors[4], 5044, []Run{{44, 5000}}},
		{vectors[5], vectors[6], 3000, nil},
	} {
		var p ReplyPlan
		if err := p.Plan(&c.call.want, c.length, c.results, 1024); err != nil {
			t.Fatal(err)
		}
		p.Header.Credits = 64
		if got, want := p.Header.Append(nil), unhex(t, c.reply.header); !bytes.Equal(got, want) {
			t.Errorf("%s: % x\nwant % x", c.reply.name, got, want)
		}
	}
}

// Claims: P8166-4.5.3-1 P8267-3-1 P8267-3.1-3
func TestWhatFitsNothingIsFoundBeforeAnythingIsWritten(t *testing.T) {
	chunk := WriteChunk{{1, 10, 0}, {2, 10, 0}}
	for _, c := range []struct {
		name      string
		call      Header
		length    int
		results   []Run
		threshold int
		fault     Fault
	}{
		{"a result longer than its chunk", Header{Writes: []WriteChunk{chunk}, HasReply: true, Reply: WriteChunk{{3, 999, 0}}}, 100, []Run{{40, 21}}, 1024, FaultOverrun},
		{"the second result longer than its chunk", Header{Writes: []WriteChunk{chunk, chunk}}, 100, []Run{{40, 20}, {60, 21}}, 1024, FaultOverrun},
		{"no Reply chunk", Header{}, 1000, nil, 1024, FaultOverrun},
		{"a Reply chunk too short", Header{HasReply: true, Reply: WriteChunk{{3, 500, 0}, {4, 499, 0}}}, 1000, nil, 1024, FaultOverrun},
		{"an empty Reply chunk", Header{HasReply: true}, 1000, nil, 1024, FaultOverrun},
		{"results out of order", Header{}, 100, []Run{{40, 20}, {56, 4}}, 1024, FaultLocal},
		{"a result off the grid", Header{}, 100, []Run{{42, 4}}, 1024, FaultLocal},
		{"a result beyond the stream", Header{}, 100, []Run{{96, 5}}, 1024, FaultLocal},
		{"a result without its roundup", Header{}, 99, []Run{{96, 3}}, 1024, FaultLocal},
		{"a result behind the stream", Header{}, 100, []Run{{104, 0}}, 1024, FaultLocal},
		{"a result of negative length", Header{}, 100, []Run{{40, -4}}, 1024, FaultLocal},
		{"a result at a negative offset", Header{}, 100, []Run{{-4, 4}}, 1024, FaultLocal},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p ReplyPlan
			wantFault(t, p.Plan(&c.call, c.length, c.results, c.threshold), c.fault)
			if len(p.Writes)+len(p.Inline) > 0 || p.Header.Reply.Length() > 0 || slices.ContainsFunc(p.Header.Writes, func(c WriteChunk) bool { return c.Length() > 0 }) {
				t.Errorf("planned %+v, want nothing", p)
			}
		})
	}
}

// Replies of every shape go to random offers. What the requester finds in its
// memory, in order, and inline, is the stream again.
//
// Claims: P-3.6-1 P8166-3.4.6.2-3 P8166-3.4.6-3 P8166-3.4.6-4 P8166-3.5.3-8
func TestWhatIsPlacedIsTheReply(t *testing.T) {
	rng := rand.New(rand.NewPCG(8166, 8267))
	var p ReplyPlan
	for range 3000 {
		stream := make([]byte, 4*(6+rng.IntN(60)))
		for i := range stream {
			stream[i] = byte(rng.Uint32())
		}
		var results []Run
		for at := 24; at < len(stream) && rng.IntN(4) > 0; {
			n := rng.IntN(len(stream) - at + 1)
			clear(stream[at+n : at+n+Pad(uint64(n))])
			results = append(results, Run{at, n})
			at += n + Pad(uint64(n)) + 4*rng.IntN(2)
		}
		m := peerMemory{}
		offer := func(octets int) (c WriteChunk) {
			return m.register(rng, make([]byte, octets))
		}
		call := Header{XID: rng.Uint32()}
		for range rng.IntN(4) {
			call.Writes = append(call.Writes, offer(rng.IntN(2)*300))
		}
		if rng.IntN(2) == 0 {
			call.HasReply, call.Reply = true, offer(240+rng.IntN(100))
		}
		threshold := 28 + rng.IntN(400)
		if err := p.Plan(&call, len(stream), results, threshold); err != nil {
			wantFault(t, err, FaultOverrun)
			if call.HasReply && call.Reply.Length() >= uint64(len(stream)) {
				t.Fatalf("%v, yet the Reply chunk holds the whole stream", err)
			}
			continue
		}
		for _, w := range p.Writes {
			copy(m.at(t, w.Segment), stream[w.From:])
		}
		collect := func(c WriteChunk) (b []byte) {
			for _, s := range c {
				b = append(b, m.at(t, s)...)
			}
			return b
		}
		var reduced []byte
		if p.Header.Proc == ProcNoMsg {
			reduced = collect(p.Header.Reply)
		}
		for _, r := range p.Inline {
			reduced = append(reduced, stream[r.Offset:r.Offset+r.Length]...)
		}
		if n := p.Header.Len() + len(reduced); p.Header.Proc == ProcMsg && n > threshold {
			t.Fatalf("%d octets in the Send, the threshold is %d", n, threshold)
		}
		if err := p.Header.CheckReturned(&call); err != nil {
			t.Fatal(err)
		}
		// The requester puts the results back.
		var got []byte
		for i, result := range results {
			if i >= len(call.Writes) || call.Writes[i].Length() == 0 {
				continue
			}
			n := result.Offset - len(got)
			got, reduced = append(got, reduced[:n]...), reduced[n:]
			data := collect(p.Header.Writes[i])
			if len(data) != result.Length {
				t.Fatalf("result %d: %d octets placed, want %d", i, len(data), result.Length)
			}
			got = append(got, data...)
			got = append(got, make([]byte, Pad(uint64(len(got))))...)
		}
		if got = append(got, reduced...); !bytes.Equal(got, stream) {
			t.Fatalf("got  % x\nwant % x\nof %+v", got, stream, p)
		}
	}
}

func TestAReplyThatIsPlannedAgainAllocatesNothing(t *testing.T) {
	var p ReplyPlan
	call, results := vectors[3].want, []Run{{44, 5000}}
	if n := testing.AllocsPerRun(100, func() {
		if err := p.Plan(&call, 5044, results, 1024); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// FuzzReplyPlan plans replies to calls as they come: nothing is written but
// into what the call offers, and nothing of the stream is left out.
func FuzzReplyPlan(f *testing.F) {
	for _, v := range vectors {
		f.Add(slices.Concat(unhex(f, v.header), unhex(f, v.payload)), uint16(5044), uint16(44), uint16(5000), uint16(1024))
	}
	var p ReplyPlan
	f.Fuzz(func(t *testing.T, b []byte, length, at, n, threshold uint16) {
		var call Header
		if _, err := call.Parse(b, &Rules{}); err != nil {
			return
		}
		if err := p.Plan(&call, int(length), []Run{{int(at), int(n)}}, int(threshold)); err != nil {
			bothAnswers(t, err)
			return
		}
		if err := p.Header.CheckReturned(&call); err != nil {
			t.Fatal(err)
		}
		seen := make([]bool, length)
		mark := func(from, n int) {
			for i := from; i < from+n; i++ {
				if seen[i] {
					t.Fatalf("octet %d goes twice: %+v", i, p)
				}
				seen[i] = true
			}
		}
		for _, w := range p.Writes {
			mark(w.From, int(w.Segment.Length))
			if !slices.ContainsFunc(append(slices.Concat(call.Writes...), call.Reply...), func(s Segment) bool {
				from := w.Segment.Offset - s.Offset
				return s.Handle == w.Segment.Handle && w.Segment.Offset >= s.Offset && from+uint64(w.Segment.Length) <= uint64(s.Length)
			}) {
				t.Fatalf("%+v was not offered by %+v", w, call)
			}
		}
		for _, r := range p.Inline {
			mark(r.Offset, r.Length)
		}
		for i, sent := range seen {
			roundup := i >= int(at)+int(n) && i < int(at)+int(n)+3
			if !sent && !roundup {
				t.Fatalf("octet %d is left out: %+v", i, p)
			}
		}
	})
}
