package payload_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/internal/worked"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// smallest are the terms of a connection about which nothing is known.
var smallest = payload.CallTerms{Call: wire.MinThreshold, Reply: wire.MinThreshold, Rules: &wire.Rules{}}

// shapeOf is what a client makes of a call.
func shapeOf(t testing.TB, c *oncrpc.ClientCall, binding payload.Binding, unbound int) *payload.CallShape {
	t.Helper()
	head, err := c.Call.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &payload.CallShape{}
	if err := s.Describe(head, c, binding, &payload.Cursor{}, unbound); err != nil {
		t.Fatal(err)
	}
	return s
}

// lend gives the segments of a plan handles and offsets that show where they
// lie, and returns the memory behind each handle.
func lend(p *payload.CallPlan, stream [][]byte) map[uint32][]byte {
	gathered, lent := make([]byte, p.Gather), map[uint32][]byte{}
	p.GatherTo(gathered, stream)
	for i := range p.Exposures {
		e := &p.Exposures[i]
		memory := e.Memory
		switch {
		case e.List == payload.ExposedReply:
			memory = make([]byte, p.Header.Reply.Length())
		case memory == nil:
			memory = gathered[e.Part.Offset:][:e.Part.Length]
		}
		s := p.Segment(e)
		s.Handle, s.Offset = uint32(0x1000+i), uint64(i)<<32
		lent[s.Handle] = memory
	}
	return lent
}

// received puts a message of a plan together as a responder does.
func received(t *testing.T, message []byte, lent map[uint32][]byte, pads []payload.Run, r *wire.Rules) (*wire.Header, []byte) {
	t.Helper()
	h := &wire.Header{}
	rest, err := h.Parse(message, r)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.CheckCall(r); err != nil {
		t.Fatal(err)
	}
	if dir := h.Direction(rest, &wire.Rules{}); dir != wire.DirectionCall {
		t.Fatalf("the message looks like a %v", dir)
	}
	var a payload.Assembly
	if err := a.Plan(h, len(rest), pads, r); err != nil {
		t.Fatal(err)
	}
	var out []byte
	for _, p := range a.Pieces {
		switch p.Kind {
		case payload.PieceInline:
			out = append(out, rest[p.Offset:][:p.Length]...)
		case payload.PieceZeros:
			out = append(out, make([]byte, p.Length)...)
		case payload.PieceRead:
			memory := lent[p.Segment.Handle]
			from := p.Segment.Offset & (1<<32 - 1)
			out = append(out, memory[from:][:p.Length]...)
		}
	}
	if err := h.CheckXID(out, r); err != nil {
		t.Fatal(err)
	}
	return h, out
}

// checkPlan holds a plan against everything that a call must keep to.
func checkPlan(t *testing.T, s *payload.CallShape, terms *payload.CallTerms, p *payload.CallPlan) *wire.Header {
	t.Helper()
	lent := lend(p, s.Stream)
	message := p.AppendMessage(nil, s.Stream)
	if len(message) > terms.Call {
		t.Fatalf("Send of %d octets, the threshold is %d", len(message), terms.Call)
	}
	var pads []payload.Run
	if p.Header.Proc == wire.ProcMsgP {
		pads = []payload.Run{{p.Pad.Offset, p.Pad.Length}}
	}
	rules := *terms.Rules
	rules.MSGP = true
	h, stream := received(t, message, lent, pads, &rules)
	if want := bytes.Join(s.Stream, nil); !bytes.Equal(stream, want) {
		t.Fatalf("the responder gets %d octets:\n% x\nwant %d:\n% x", len(stream), stream, len(want), want)
	}

	chunks := map[uint32]uint64{}
	segments := map[uint32]int{}
	for _, r := range h.Reads {
		chunks[r.Position] += uint64(r.Length)
		segments[r.Position]++
	}
	for position, n := range chunks {
		if segments[position] > payload.SendSegments {
			t.Errorf("Read chunk at %d has %d segments, want at most %d", position, segments[position], payload.SendSegments)
		}
		if len(chunks) > 1 && n%4 != 0 {
			t.Errorf("Read chunk at %d, one of %d, has %d octets, want a multiple of 4", position, len(chunks), n)
		}
		if position == 0 {
			continue
		}
		i := slices.IndexFunc(s.Items, func(item payload.Item) bool { return item.Eligible && item.Offset == int(position) })
		if i < 0 {
			t.Errorf("Read chunk at %d, where nothing may be reduced", position)
		} else if !wire.Holds(n, uint32(s.Items[i].Length)) {
			t.Errorf("Read chunk at %d has %d octets, its item %d", position, n, s.Items[i].Length)
		}
	}
	if s.Protected && (len(h.Writes) > 0 || len(chunks) > 0 && chunks[0] == 0) {
		t.Error("something of a protected message is reduced")
	}

	// The longest reply fits what is offered, and any item that has a chunk its.
	length := max(s.Bound.Fixed, payload.MinReply)
	var results []payload.Run
	if !s.Protected {
		at := 28
		for _, n := range s.Bound.Items {
			results = append(results, payload.Run{at, n})
			at += int(payload.Rounded(n)) + 4
		}
	}
	for _, n := range s.Bound.Items {
		length += int(payload.Rounded(n))
	}
	length = max(length, 28+sum(results)+4*len(results))
	var reply payload.ReplyPlan
	if err := reply.Plan(h, length, results, terms.Reply); err != nil {
		t.Errorf("the longest reply, of %d octets with %d results, does not fit: %v", length, len(results), err)
	}
	return h
}

func sum(runs []payload.Run) (n int) {
	for _, r := range runs {
		n += int(payload.Rounded(r.Length))
	}
	return n
}

// Claims: P-3.2-1 P-3.4-5 P-3.4-13 P-3.7-4 P-4-2 P-5.1-1 P-5.2-2 P-6.2-6 P5667-3-1 P8166-3.4.2-1 P8166-3.4.2-2 P8166-3.4.4.1-1
// Claims: P8166-3.4.4.4-1 P8166-3.4.4.4-2 P8166-3.4.5-1 P8166-3.4.5.2-1 P8166-3.4.5.2-3 P8166-3.4.6-2 P8166-3.4.6.2-1 P8166-3.5.2-1
// Claims: P8166-3.5.3-1 P8166-3.5.3-2 P8166-4.2.4-5 P8166-4.3.2.2-2 P8166-4.3.2.3-1 P8166-4.3.3-1 P8166-4.3.3-2 P8166-6.1-1 P8166-6.1-2
// Claims: P8166-8.2.2.3-1 P-3.6-5 P-6.2-7
func TestACallTravelsAsShortAsItCan(t *testing.T) {
	const head = 40 + 4 + 4 // call header, tag of no octets, count of items
	sinks := func(n ...int) (s [][]byte) {
		for _, n := range n {
			s = append(s, make([]byte, n))
		}
		return s
	}
	items := func(n ...int) (s [][]byte) {
		for i, n := range n {
			s = append(s, exchange.Pattern(i, n))
		}
		return s
	}
	segments := func(n ...int) (c []wire.WriteChunk) {
		for _, n := range n {
			if n == 0 {
				c = append(c, nil)
			} else {
				c = append(c, wire.WriteChunk{{Length: uint32(n)}})
			}
		}
		return c
	}
	read := func(position uint32, n int) wire.ReadSegment {
		return wire.ReadSegment{Position: position, Segment: wire.Segment{Length: uint32(n)}}
	}
	for _, test := range []struct {
		name   string
		items  [][]byte
		wanted []int
		sinks  [][]byte
		change func(*payload.CallShape)
		terms  payload.CallTerms
		want   wire.Header
	}{
		{name: "nothing but a header"},
		// 28 + 40 + 4 + 4 + 4 + n + 4 is 1024 for 940.
		{name: "an item that just fits", items: items(940)},
		{name: "an item that does not", items: items(941), want: wire.Header{Reads: []wire.ReadSegment{read(head+4, 941)}}},
		{name: "the longest of three", items: items(500, 600, 8), want: wire.Header{Reads: []wire.ReadSegment{read(head+4+500+4, 600)}}},
		{name: "two of three, with roundup", items: items(1001, 2, 1002), want: wire.Header{Reads: []wire.ReadSegment{
			read(head+4, 1004), read(head+4+1004+4+4+4, 1004),
		}}},
		{name: "an item in its place", items: items(5000), want: wire.Header{Reads: []wire.ReadSegment{read(head+4, 5000)}}},
		{name: "a protected item", items: items(1002), change: func(s *payload.CallShape) { s.Protected = true },
			want: wire.Header{Proc: wire.ProcNoMsg, Reads: []wire.ReadSegment{read(0, head+4+1004+4)}}},
		{name: "an item that is not eligible", items: items(1002), change: func(s *payload.CallShape) { s.Items[1].Eligible = false },
			want: wire.Header{Proc: wire.ProcNoMsg, Reads: []wire.ReadSegment{read(0, head+4+1004+4)}}},

		// The reply: 28 + 24 + 8 + 4 + n + 4 is 1024 for 956.
		{name: "a result that just fits", wanted: []int{956}, sinks: sinks(956)},
		{name: "a result that does not", wanted: []int{957}, sinks: sinks(957), want: wire.Header{Writes: segments(957)}},
		{name: "the same without a sink", wanted: []int{957}, want: wire.Header{HasReply: true, Reply: segments(24 + 8 + 4 + 960 + 4)[0]}},
		{name: "a sink that is too short", wanted: []int{957, 5}, sinks: sinks(956, 5), want: wire.Header{
			Writes: segments(0, 5), HasReply: true, Reply: segments(24 + 8 + 8 + 960 + 4)[0],
		}},
		{name: "a last sink that is too short", wanted: []int{957, 960}, sinks: sinks(957, 956), want: wire.Header{
			Writes: segments(957), HasReply: true, Reply: segments(24 + 8 + 8 + 960 + 4)[0],
		}},
		{name: "more sinks than results", wanted: []int{957}, sinks: sinks(957, 5), want: wire.Header{Writes: segments(957)}},
		{name: "more results than sinks", wanted: []int{957, 956}, sinks: sinks(957), want: wire.Header{
			Writes: segments(957), HasReply: true, Reply: segments(24 + 8 + 8 + 956 + 4)[0],
		}},
		{name: "a protected result", wanted: []int{957}, sinks: sinks(957), change: func(s *payload.CallShape) { s.Protected = true },
			want: wire.Header{HasReply: true, Reply: segments(24 + 8 + 4 + 960 + 4)[0]}},
		{name: "a reply chunk of what the program says", change: func(s *payload.CallShape) { s.Bound = payload.ReplyBound{Fixed: 9001} },
			want: wire.Header{HasReply: true, Reply: segments(9004)[0]}},

		{name: "both, with larger thresholds", terms: payload.CallTerms{Call: 4096, Reply: 4096}, items: items(3000), wanted: []int{3000}, sinks: sinks(3000)},
		{name: "a call that fits but for what its reply needs", items: items(940), wanted: []int{957}, sinks: sinks(957), want: wire.Header{
			Reads: []wire.ReadSegment{read(head+4, 940)}, Writes: segments(957),
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := exchange.Call(exchange.Args("", test.items, test.wanted...))
			c.Sinks = test.sinks
			s := shapeOf(t, c, exchange.Binding{}, 0)
			if test.change != nil {
				test.change(s)
			}
			terms := smallest
			if test.terms.Call != 0 {
				terms.Call, terms.Reply = test.terms.Call, test.terms.Reply
			}
			var p payload.CallPlan
			if err := p.Plan(s, &terms); err != nil {
				t.Fatal(err)
			}
			test.want.Version = 1
			if diff := cmp.Diff(test.want, p.Header, worked.Parsed); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
			checkPlan(t, s, &terms, &p)
		})
	}
}

func TestMemoryIsExposedInPlaceWhenItIsLong(t *testing.T) {
	long, short := exchange.Pattern(1, payload.InPlace), exchange.Pattern(2, payload.InPlace-1)
	tail := exchange.Pattern(3, 9)
	c := exchange.Call([][]byte{long, short, tail[:1], tail[1:5], long[:0], long, tail[5:]}) // a multiple of 4 in all
	s := shapeOf(t, c, nil, 100)
	var p payload.CallPlan
	if err := p.Plan(s, &smallest); err != nil {
		t.Fatal(err)
	}
	checkPlan(t, s, &smallest, &p)
	var lengths []int
	for _, r := range p.Header.Reads {
		lengths = append(lengths, int(r.Length))
	}
	if want := []int{40, payload.InPlace, payload.InPlace + 4, payload.InPlace, 4}; !slices.Equal(lengths, want) {
		t.Errorf("segments of %v octets, want %v", lengths, want)
	}
	for i, e := range p.Exposures {
		if want := i == 1 || i == 3; want != (e.Memory != nil && &e.Memory[0] == &long[0]) {
			t.Errorf("segment %d: in its place %v, want %v", i, !want, want)
		}
	}

	c.Args = nil
	for range payload.SendSegments {
		c.Args = append(c.Args, long)
	}
	s = shapeOf(t, c, nil, 100)
	if err := p.Plan(s, &smallest); err != nil { // one more with the header
		t.Fatal(err)
	}
	checkPlan(t, s, &smallest, &p)
	if n := len(p.Header.Reads); n != 1 {
		t.Errorf("%d segments, want 1 that gathers", n)
	}
}

// Claims: P-6.2-12 P8166-4.5.4-1
func TestACallThatCannotTravelIsRefused(t *testing.T) {
	big := func(n int) [][]byte { return exchange.Args("", [][]byte{make([]byte, n)}) }
	for _, test := range []struct {
		name  string
		call  *oncrpc.ClientCall
		terms payload.CallTerms
	}{
		{"octets that are no words", exchange.Call([][]byte{{1, 2, 3}}), smallest},
		{"more in Read chunks than the limit", exchange.Call(big(5000)), payload.CallTerms{Call: 1024, Reply: 1024, Rules: &wire.Rules{Octets: 4999}}},
		{"more in Write chunks than the limit", &oncrpc.ClientCall{Call: exchange.Call(nil).Call, Args: exchange.Args("", nil, 5000), Sinks: [][]byte{make([]byte, 5000)}},
			payload.CallTerms{Call: 1024, Reply: 1024, Rules: &wire.Rules{Octets: 4999}}},
		{"a longer reply than the limit", exchange.Call(exchange.Args("", nil, 5000)), payload.CallTerms{Call: 1024, Reply: 1024, Rules: &wire.Rules{Octets: 4999}}},
		{"a long call to a peer that does not read", exchange.Call(big(5000)), payload.CallTerms{Call: 1024, Reply: 1024, Rules: &wire.Rules{}, NoReads: true}},
	} {
		s := &payload.CallShape{}
		head, _ := test.call.Call.Append(nil)
		binding := payload.Binding(exchange.Binding{})
		if len(test.call.Args[0]) == 3 {
			binding = nil
		}
		if err := s.Describe(head, test.call, binding, &payload.Cursor{}, 100); err != nil {
			t.Fatal(err)
		}
		var p payload.CallPlan
		worked.WantFault(t, p.Plan(s, &test.terms), wire.FaultLocal)
		if t.Failed() {
			t.Fatal(test.name)
		}
	}
}

// The program's memory is cut as M3, M8, M9 and M10 of the worked messages have
// it; handles and offsets are theirs.
//
// Claims: P-3.4-19 P-3.4-22 P-4.1-2 P-4.1-18 P-5.2-1 P8166-4-1 P8166-4.2.2-1 P-5.2-6
// Claims: P-4-1 P-5.1-5
func TestRealCallsTravelAsTheWorkedMessages(t *testing.T) {
	file := worked.Unhex(t, worked.FileHandle)
	data := exchange.Pattern(1, 65536)
	write := func(proc uint32, head []byte, pieces ...[]byte) *oncrpc.ClientCall {
		return &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 100003, Vers: 3, Proc: proc}, Args: slices.Concat([][]byte{file, head}, pieces)}
	}
	for _, test := range []struct {
		name     string
		xid      uint32
		call     *oncrpc.ClientCall
		reply    int // MaxReply
		terms    payload.CallTerms
		segments []wire.Segment // handles and offsets, in the order of the header
	}{
		{"M1 RDMA_MSG", 0x5a5a0001, &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 100003, Vers: 3}}, 24, smallest, nil},
		{"M3 Read list", 0x5a5a0002, write(7, worked.Unhex(t, "00000000 00000000 00001003 00000002 00001003"), data[:4096], data[:3], []byte{0}), 160, smallest,
			[]wire.Segment{{Handle: 0x1100, Offset: 0x10000}, {Handle: 0x1101, Offset: 0x20000}}},
		{"M6 Reply chunk", 0x5a5a0004, write(16, worked.Unhex(t, "00000000 00000000 00000000 00000000 00002000")), 8192, smallest,
			[]wire.Segment{{Handle: 0x3300, Offset: 0x50000}}},
		{"M8 RDMA_NOMSG", 0x5a5a0005, &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 9}, Args: [][]byte{data[:4000], data[:960]}}, 100, smallest,
			[]wire.Segment{{Handle: 0x4400, Offset: 0x60000}}},
		{"M9 everything", 0x5a5a0006, &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 0x20000a0a, Vers: 1, Proc: 2}, Args: [][]byte{data[:2356], exchange.Word(65536), data}}, 4096, smallest,
			[]wire.Segment{{Handle: 0x4401, Offset: 0x70000}, {Handle: 0x1102, Offset: 0x80000}, {Handle: 0x3301, Offset: 0x90000}}},
		{"M10 RDMA_MSGP", 0x5a5a0007, write(7, worked.Unhex(t, "00000000 00000000 00000258 00000002 00000258"), data[:600]), 160,
			payload.CallTerms{Call: 1024, Reply: 1024, Rules: &worked.RFC5666, Align: 256}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := worked.Messages[slices.IndexFunc(worked.Messages, func(v worked.Message) bool { return v.Want.XID == test.xid })]
			test.call.XID, test.call.MaxReply = test.xid, test.reply
			s := shapeOf(t, test.call, workedBinding{}, 0)
			var p payload.CallPlan
			if err := p.Plan(s, &test.terms); err != nil {
				t.Fatal(err)
			}
			checkPlan(t, s, &test.terms, &p)
			segments := test.segments
			for i := range p.Header.Reads {
				p.Header.Reads[i].Handle, p.Header.Reads[i].Offset = segments[0].Handle, segments[0].Offset
				segments = segments[1:]
			}
			for i := range p.Header.Reply {
				p.Header.Reply[i].Handle, p.Header.Reply[i].Offset = segments[0].Handle, segments[0].Offset
			}
			p.Header.Credits = 32
			got := p.AppendMessage(nil, s.Stream)
			want := slices.Concat(worked.Unhex(t, v.Header), worked.Unhex(t, v.Payload))
			if p.Header.Proc == wire.ProcMsgP {
				want = slices.Concat(want, make([]byte, 124), data[:600])
			}
			if !bytes.Equal(got, want) {
				t.Errorf("message\n% x\nwant\n% x", got, want)
			}
		})
	}
}

// workedBinding binds what the worked messages have of NFS version 3, and of
// another program a procedure with 2356 octets and an item.
type workedBinding struct{ exchange.Binding }

func (workedBinding) WalkCall(proc uint32, c *payload.Cursor) error {
	switch proc {
	case 7: // WRITE
		c.Opaque(64)
		c.Skip(16)
		c.Eligible(1 << 20)
	case 2:
		c.Skip(2356)
		c.Eligible(1 << 20)
	default:
		c.Rest()
	}
	return c.Err()
}

// Claims: P-3.9-4 P-6.2-14 P5667-4-5
func TestOnlyALastLongItemIsPadded(t *testing.T) {
	padding := payload.CallTerms{Call: 2048, Reply: 2048, Rules: &worked.RFC5666, Align: 256}
	last := func(first, n int) *oncrpc.ClientCall {
		args := [][]byte{exchange.Word(uint32(first)), exchange.Pattern(1, first), make([]byte, wire.Pad(uint64(first))), exchange.Word(uint32(n)), exchange.Pattern(2, n), make([]byte, wire.Pad(uint64(n)))}
		return &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 1}, Args: args, MaxReply: 100}
	}
	for _, test := range []struct {
		name   string
		call   *oncrpc.ClientCall
		change func(*payload.CallTerms, *payload.CallShape)
		want   wire.Proc
		thresh uint32
	}{
		{"longer than all else", last(20, 600), nil, wire.ProcMsgP, 512},
		{"at the least threshold", last(20, 512), nil, wire.ProcMsg, 0},
		{"above the least threshold", last(20, 513), nil, wire.ProcMsgP, 512},
		{"one longer than another", last(600, 601), nil, wire.ProcMsg, 0},
		{"two longer than another", last(600, 602), nil, wire.ProcMsgP, 601},
		{"without an alignment", last(20, 600), func(c *payload.CallTerms, _ *payload.CallShape) { c.Align = 1 }, wire.ProcMsg, 0},
		{"with too large an alignment", last(20, 600), func(c *payload.CallTerms, _ *payload.CallShape) { c.Align = wire.MaxAlign + 4 }, wire.ProcMsg, 0},
		{"where the pad does not fit", last(20, 600), func(c *payload.CallTerms, _ *payload.CallShape) { c.Align = 2048 }, wire.ProcMsg, 0},
		{"with a long credential", last(20, 600), func(_ *payload.CallTerms, s *payload.CallShape) { s.Longest = 599 }, wire.ProcMsg, 0},
		{"of a protected message", last(20, 600), func(_ *payload.CallTerms, s *payload.CallShape) { s.Protected = true }, wire.ProcMsg, 0},
		{"with a Reply chunk", last(20, 600), func(_ *payload.CallTerms, s *payload.CallShape) { s.Bound.Fixed = 5000 }, wire.ProcMsg, 0},
		{"where it needs no pad", last(20, 600), func(c *payload.CallTerms, _ *payload.CallShape) { c.Align = 4 }, wire.ProcMsgP, 512},
	} {
		terms := padding
		s := shapeOf(t, test.call, exchange.TwoItems{}, 0)
		if test.change != nil {
			test.change(&terms, s)
		}
		var p payload.CallPlan
		if err := p.Plan(s, &terms); err != nil {
			t.Fatal(test.name, err)
		}
		if p.Header.Proc != test.want || p.Header.Threshold != test.thresh {
			t.Errorf("%s: %v with threshold %d, want %v with %d", test.name, p.Header.Proc, p.Header.Threshold, test.want, test.thresh)
			continue
		}
		message := p.AppendMessage(nil, s.Stream)
		if p.Header.Proc != wire.ProcMsgP {
			checkPlan(t, s, &terms, &p)
			continue
		}
		if at := bytes.Index(message, exchange.Pattern(2, s.Items[1].Length)); at%int(terms.Align) != 0 {
			t.Errorf("%s: the item is at octet %d", test.name, at)
		}
		// Both readings of the threshold find the same pads.
		for _, above := range []bool{false, true} {
			var h wire.Header
			rest, err := h.Parse(message, &worked.RFC5666)
			if err != nil {
				t.Fatal(err)
			}
			padding := h.Padding()
			padding.Above = above
			var c payload.Cursor
			c.Padded(rest, 40, &padding)
			_ = exchange.TwoItems{}.WalkCall(0, &c)
			if err := c.End(); err != nil {
				t.Errorf("%s, above %v: %v", test.name, above, err)
			}
			_, stream := received(t, message, nil, c.Pads(), &worked.RFC5666)
			if !bytes.Equal(stream, bytes.Join(s.Stream, nil)) {
				t.Errorf("%s, above %v: another message arrives", test.name, above)
			}
		}
	}
}
