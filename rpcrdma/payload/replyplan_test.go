package payload_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weft-rdma/weft/rpcrdma/internal/worked"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// Claims: P-3.6-1 P-3.6-2 P-3.6-4 P-3.7-8 P-5.2-3 P5667-3-3 P5667-3-4 P5667-3-5 P5667-5-2 P8166-3.4.6.2-2 P8166-3.4.6.2-3 P8166-3.4.6-3
// Claims: P8166-3.4.6-4 P8166-3.5.3-1 P8166-3.5.3-5 P8166-3.5.3-6 P8166-4.2.4-5 P8166-4.3.2-1 P8166-4.3.2.1-1 P8166-4.3.2.2-3
// Claims: P8166-4.3.2.3-2 P8166-4.3.2.3-3 P8166-4.3.3-4
func TestAReplyGoesWhereTheCallOffers(t *testing.T) {
	three := wire.WriteChunk{{Handle: 1, Length: 10, Offset: 100}, {Handle: 2, Length: 20, Offset: 200}, {Handle: 3, Length: 30, Offset: 300}}
	lengths := func(c wire.WriteChunk, lengths ...uint32) wire.WriteChunk {
		c = slices.Clone(c)
		for i := range c {
			c[i].Length = 0
			if i < len(lengths) {
				c[i].Length = lengths[i]
			}
		}
		return c
	}
	m4, m6 := worked.Messages[3].Want, worked.Messages[5].Want
	for _, c := range []struct {
		name      string
		call      wire.Header
		length    int
		results   []payload.Run
		threshold int
		want      payload.ReplyPlan // without XID and version
	}{
		{
			name: "inline", length: 24, threshold: 52,
			want: payload.ReplyPlan{Inline: []payload.Run{{0, 24}}},
		},
		{
			name: "M5: 5000 octets into M4's chunk", call: m4, length: 44 + 5000, results: []payload.Run{{44, 5000}}, threshold: 1024,
			want: payload.ReplyPlan{
				Header: wire.Header{Writes: worked.Messages[4].Want.Writes},
				Writes: []payload.Write{{44, wire.Segment{Handle: 0x2200, Length: 4096, Offset: 0x30000}}, {44 + 4096, wire.Segment{Handle: 0x2201, Length: 904, Offset: 0x40000}}},
				Inline: []payload.Run{{0, 44}},
			},
		},
		{
			name: "M7: 3000 octets into M6's Reply chunk", call: m6, length: 3000, threshold: 1024,
			want: payload.ReplyPlan{
				Header: wire.Header{Proc: wire.ProcNoMsg, HasReply: true, Reply: worked.Messages[6].Want.Reply},
				Writes: []payload.Write{{0, wire.Segment{Handle: 0x3300, Length: 3000, Offset: 0x50000}}},
			},
		},
		{
			name: "exactly the threshold, so the Reply chunk is unused", call: m6, length: 1024 - 48, threshold: 1024,
			want: payload.ReplyPlan{Header: wire.Header{HasReply: true, Reply: lengths(m6.Reply)}, Inline: []payload.Run{{0, 976}}},
		},
		{
			name: "four above the threshold", call: m6, length: 1028 - 48, threshold: 1024,
			want: payload.ReplyPlan{
				Header: wire.Header{Proc: wire.ProcNoMsg, HasReply: true, Reply: lengths(m6.Reply, 980)},
				Writes: []payload.Write{{0, wire.Segment{Handle: 0x3300, Length: 980, Offset: 0x50000}}},
			},
		},
		{
			name: "roundup leaves the stream and is not written", call: wire.Header{Writes: []wire.WriteChunk{three}}, length: 60, results: []payload.Run{{40, 13}}, threshold: 1024,
			want: payload.ReplyPlan{
				Header: wire.Header{Writes: []wire.WriteChunk{lengths(three, 10, 3, 0)}},
				Writes: []payload.Write{{40, wire.Segment{Handle: 1, Length: 10, Offset: 100}}, {50, wire.Segment{Handle: 2, Length: 3, Offset: 200}}},
				Inline: []payload.Run{{0, 40}, {56, 4}},
			},
		},
		{
			name: "a full chunk", call: wire.Header{Writes: []wire.WriteChunk{three}}, length: 100, results: []payload.Run{{40, 60}}, threshold: 1024,
			want: payload.ReplyPlan{
				Header: wire.Header{Writes: []wire.WriteChunk{three}},
				Writes: []payload.Write{{40, wire.Segment{Handle: 1, Length: 10, Offset: 100}}, {50, wire.Segment{Handle: 2, Length: 20, Offset: 200}}, {70, wire.Segment{Handle: 3, Length: 30, Offset: 300}}},
				Inline: []payload.Run{{0, 40}},
			},
		},
		{
			name: "no result: the chunks come back unused", call: wire.Header{Writes: []wire.WriteChunk{three, {}, three}}, length: 40, threshold: 1024,
			want: payload.ReplyPlan{Header: wire.Header{Writes: []wire.WriteChunk{lengths(three), {}, lengths(three)}}, Inline: []payload.Run{{0, 40}}},
		},
		{
			name: "empty chunks and those of no octets keep their result inline",
			call: wire.Header{Writes: []wire.WriteChunk{{}, {{Handle: 7, Length: 0, Offset: 70}}, three}}, length: 60, results: []payload.Run{{20, 4}, {28, 4}, {36, 4}}, threshold: 1024,
			want: payload.ReplyPlan{
				Header: wire.Header{Writes: []wire.WriteChunk{{}, {{Handle: 7, Length: 0, Offset: 70}}, lengths(three, 4)}},
				Writes: []payload.Write{{36, wire.Segment{Handle: 1, Length: 4, Offset: 100}}},
				Inline: []payload.Run{{0, 36}, {40, 20}},
			},
		},
		{
			name: "more results than chunks", call: wire.Header{Writes: []wire.WriteChunk{three}}, length: 60, results: []payload.Run{{20, 4}, {28, 4}}, threshold: 1024,
			want: payload.ReplyPlan{
				Header: wire.Header{Writes: []wire.WriteChunk{lengths(three, 4)}},
				Writes: []payload.Write{{20, wire.Segment{Handle: 1, Length: 4, Offset: 100}}},
				Inline: []payload.Run{{0, 20}, {24, 36}},
			},
		},
		{
			name: "a result of no octets uses up its chunk", call: wire.Header{Writes: []wire.WriteChunk{three, three}}, length: 60, results: []payload.Run{{20, 0}, {24, 4}}, threshold: 1024,
			want: payload.ReplyPlan{
				Header: wire.Header{Writes: []wire.WriteChunk{lengths(three), lengths(three, 4)}},
				Writes: []payload.Write{{24, wire.Segment{Handle: 1, Length: 4, Offset: 100}}},
				Inline: []payload.Run{{0, 20}, {20, 4}, {28, 32}},
			},
		},
		{
			name: "Write list and Reply chunk", threshold: 100,
			call:   wire.Header{Writes: []wire.WriteChunk{{{Handle: 9, Length: 8, Offset: 900}}}, HasReply: true, Reply: wire.WriteChunk{{Handle: 4, Length: 0, Offset: 400}, {Handle: 5, Length: 30, Offset: 500}, {Handle: 6, Length: 99, Offset: 600}}},
			length: 48, results: []payload.Run{{16, 5}},
			want: payload.ReplyPlan{
				Header: wire.Header{Proc: wire.ProcNoMsg, Writes: []wire.WriteChunk{{{Handle: 9, Length: 5, Offset: 900}}}, HasReply: true, Reply: wire.WriteChunk{{Handle: 4, Length: 0, Offset: 400}, {Handle: 5, Length: 30, Offset: 500}, {Handle: 6, Length: 10, Offset: 600}}},
				Writes: []payload.Write{{16, wire.Segment{Handle: 9, Length: 5, Offset: 900}}, {0, wire.Segment{Handle: 5, Length: 16, Offset: 500}}, {24, wire.Segment{Handle: 5, Length: 14, Offset: 516}}, {38, wire.Segment{Handle: 6, Length: 10, Offset: 600}}},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := c.call.Append(nil)
			var p payload.ReplyPlan
			if err := p.Plan(&c.call, c.length, c.results, c.threshold); err != nil {
				t.Fatal(err)
			}
			c.want.Header.XID, c.want.Header.Version = c.call.XID, 1
			if diff := cmp.Diff(c.want, p, worked.Parsed, cmpopts.IgnoreUnexported(p)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := p.Header.CheckReply(&wire.Rules{}); err != nil {
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
		call, reply worked.Message
		length      int
		results     []payload.Run
	}{
		{worked.Messages[3], worked.Messages[4], 5044, []payload.Run{{44, 5000}}},
		{worked.Messages[5], worked.Messages[6], 3000, nil},
	} {
		var p payload.ReplyPlan
		if err := p.Plan(&c.call.Want, c.length, c.results, 1024); err != nil {
			t.Fatal(err)
		}
		p.Header.Credits = 64
		if got, want := p.Header.Append(nil), worked.Unhex(t, c.reply.Header); !bytes.Equal(got, want) {
			t.Errorf("%s: % x\nwant % x", c.reply.Name, got, want)
		}
	}
}

// Claims: P8166-4.5.3-1 P8267-3-1 P8267-3.1-3
// Claims: P-3.4-12
func TestWhatFitsNothingIsFoundBeforeAnythingIsWritten(t *testing.T) {
	chunk := wire.WriteChunk{{Handle: 1, Length: 10, Offset: 0}, {Handle: 2, Length: 10, Offset: 0}}
	for _, c := range []struct {
		name      string
		call      wire.Header
		length    int
		results   []payload.Run
		threshold int
		fault     wire.Fault
	}{
		{"a result longer than its chunk", wire.Header{Writes: []wire.WriteChunk{chunk}, HasReply: true, Reply: wire.WriteChunk{{Handle: 3, Length: 999, Offset: 0}}}, 100, []payload.Run{{40, 21}}, 1024, wire.FaultOverrun},
		{"the second result longer than its chunk", wire.Header{Writes: []wire.WriteChunk{chunk, chunk}}, 100, []payload.Run{{40, 20}, {60, 21}}, 1024, wire.FaultOverrun},
		{"no Reply chunk", wire.Header{}, 1000, nil, 1024, wire.FaultOverrun},
		{"a Reply chunk too short", wire.Header{HasReply: true, Reply: wire.WriteChunk{{Handle: 3, Length: 500, Offset: 0}, {Handle: 4, Length: 499, Offset: 0}}}, 1000, nil, 1024, wire.FaultOverrun},
		{"an empty Reply chunk", wire.Header{HasReply: true}, 1000, nil, 1024, wire.FaultOverrun},
		{"results out of order", wire.Header{}, 100, []payload.Run{{40, 20}, {56, 4}}, 1024, wire.FaultLocal},
		{"a result off the grid", wire.Header{}, 100, []payload.Run{{42, 4}}, 1024, wire.FaultLocal},
		{"a result beyond the stream", wire.Header{}, 100, []payload.Run{{96, 5}}, 1024, wire.FaultLocal},
		{"a result without its roundup", wire.Header{}, 99, []payload.Run{{96, 3}}, 1024, wire.FaultLocal},
		{"a result behind the stream", wire.Header{}, 100, []payload.Run{{104, 0}}, 1024, wire.FaultLocal},
		{"a result of negative length", wire.Header{}, 100, []payload.Run{{40, -4}}, 1024, wire.FaultLocal},
		{"a result at a negative offset", wire.Header{}, 100, []payload.Run{{-4, 4}}, 1024, wire.FaultLocal},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p payload.ReplyPlan
			worked.WantFault(t, p.Plan(&c.call, c.length, c.results, c.threshold), c.fault)
			if len(p.Writes)+len(p.Inline) > 0 || p.Header.Reply.Length() > 0 || slices.ContainsFunc(p.Header.Writes, func(c wire.WriteChunk) bool { return c.Length() > 0 }) {
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
	var p payload.ReplyPlan
	for range 3000 {
		stream := make([]byte, 4*(6+rng.IntN(60)))
		for i := range stream {
			stream[i] = byte(rng.Uint32())
		}
		var results []payload.Run
		for at := 24; at < len(stream) && rng.IntN(4) > 0; {
			n := rng.IntN(len(stream) - at + 1)
			clear(stream[at+n : at+n+wire.Pad(uint64(n))])
			results = append(results, payload.Run{at, n})
			at += n + wire.Pad(uint64(n)) + 4*rng.IntN(2)
		}
		m := peerMemory{}
		offer := func(octets int) (c wire.WriteChunk) {
			return m.register(rng, make([]byte, octets))
		}
		call := wire.Header{XID: rng.Uint32()}
		for range rng.IntN(4) {
			call.Writes = append(call.Writes, offer(rng.IntN(2)*300))
		}
		if rng.IntN(2) == 0 {
			call.HasReply, call.Reply = true, offer(240+rng.IntN(100))
		}
		threshold := 28 + rng.IntN(400)
		if err := p.Plan(&call, len(stream), results, threshold); err != nil {
			worked.WantFault(t, err, wire.FaultOverrun)
			if call.HasReply && call.Reply.Length() >= uint64(len(stream)) {
				t.Fatalf("%v, yet the Reply chunk holds the whole stream", err)
			}
			continue
		}
		for _, w := range p.Writes {
			copy(m.at(t, w.Segment), stream[w.From:])
		}
		collect := func(c wire.WriteChunk) (b []byte) {
			for _, s := range c {
				b = append(b, m.at(t, s)...)
			}
			return b
		}
		var reduced []byte
		if p.Header.Proc == wire.ProcNoMsg {
			reduced = collect(p.Header.Reply)
		}
		for _, r := range p.Inline {
			reduced = append(reduced, stream[r.Offset:r.Offset+r.Length]...)
		}
		if n := p.Header.Len() + len(reduced); p.Header.Proc == wire.ProcMsg && n > threshold {
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
			got = append(got, make([]byte, wire.Pad(uint64(len(got))))...)
		}
		if got = append(got, reduced...); !bytes.Equal(got, stream) {
			t.Fatalf("got  % x\nwant % x\nof %+v", got, stream, p)
		}
	}
}

func TestAReplyThatIsPlannedAgainAllocatesNothing(t *testing.T) {
	var p payload.ReplyPlan
	call, results := worked.Messages[3].Want, []payload.Run{{44, 5000}}
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
	for _, v := range worked.Messages {
		f.Add(slices.Concat(worked.Unhex(f, v.Header), worked.Unhex(f, v.Payload)), uint16(5044), uint16(44), uint16(5000), uint16(1024))
	}
	var p payload.ReplyPlan
	f.Fuzz(func(t *testing.T, b []byte, length, at, n, threshold uint16) {
		var call wire.Header
		if _, err := call.Parse(b, &wire.Rules{}); err != nil {
			return
		}
		if err := p.Plan(&call, int(length), []payload.Run{{int(at), int(n)}}, int(threshold)); err != nil {
			worked.BothAnswers(t, err)
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
			if !slices.ContainsFunc(append(slices.Concat(call.Writes...), call.Reply...), func(s wire.Segment) bool {
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
