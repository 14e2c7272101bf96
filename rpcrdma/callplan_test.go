package rpcrdma

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-rdma/weft/oncrpc"
)

// smallest are the terms of a connection about which nothing is known.
var smallest = callTerms{call: MinThreshold, reply: MinThreshold, rules: &Rules{}}

// shapeOf is what a client makes of a call.
func shapeOf(t testing.TB, c *oncrpc.ClientCall, binding Binding, unbound int) *callShape {
	t.Helper()
	head, err := c.Call.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &callShape{}
	if err := s.of(head, c, binding, &Cursor{}, unbound); err != nil {
		t.Fatal(err)
	}
	return s
}

// lend gives the segments of a plan handles and offsets that tell where they
// lie, and returns the memory behind each handle.
func lend(p *callPlan, stream [][]byte) map[uint32][]byte {
	gathered, lent := make([]byte, p.gather), map[uint32][]byte{}
	p.gatherTo(gathered, stream)
	for i := range p.exposed {
		e := &p.exposed[i]
		memory := e.memory
		switch {
		case e.list == exposedReply:
			memory = make([]byte, p.replyMemory())
		case memory == nil:
			memory = gathered[e.part.Offset:][:e.part.Length]
		}
		s := p.segment(e)
		s.Handle, s.Offset = uint32(0x1000+i), uint64(i)<<32
		lent[s.Handle] = memory
	}
	return lent
}

// received puts a message of a plan together as a responder does.
func received(t *testing.T, message []byte, lent map[uint32][]byte, pads []Run, r *Rules) (*Header, []byte) {
	t.Helper()
	h := &Header{}
	payload, err := h.Parse(message, r)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.CheckCall(r); err != nil {
		t.Fatal(err)
	}
	if dir := h.Direction(payload, &Rules{}); dir != DirectionCall {
		t.Fatalf("the message looks like a %v", dir)
	}
	var a Assembly
	if err := a.Plan(h, len(payload), pads, r); err != nil {
		t.Fatal(err)
	}
	var out []byte
	for _, p := range a.Pieces {
		switch p.Kind {
		case PieceInline:
			out = append(out, payload[p.Offset:][:p.Length]...)
		case PieceZeros:
			out = append(out, make([]byte, p.Length)...)
		case PieceRead:
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
func checkPlan(t *testing.T, s *callShape, terms *callTerms, p *callPlan) *Header {
	t.Helper()
	lent := lend(p, s.stream)
	message := p.appendMessage(nil, s.stream)
	if len(message) > terms.call {
		t.Fatalf("Send of %d octets, the threshold is %d", len(message), terms.call)
	}
	var pads []Run
	if p.header.Proc == ProcMsgP {
		pads = []Run{{p.pad.Offset, p.pad.Length}}
	}
	rules := *terms.rules
	rules.MSGP = true
	h, stream := received(t, message, lent, pads, &rules)
	if want := bytes.Join(s.stream, nil); !bytes.Equal(stream, want) {
		t.Fatalf("the responder gets %d octets:\n% x\nwant %d:\n% x", len(stream), stream, len(want), want)
	}

	chunks := map[uint32]uint64{}
	segments := map[uint32]int{}
	for _, r := range h.Reads {
		chunks[r.Position] += uint64(r.Length)
		segments[r.Position]++
	}
	for position, n := range chunks {
		if segments[position] > sendSegments {
			t.Errorf("Read chunk at %d has %d segments, want at most %d", position, segments[position], sendSegments)
		}
		if len(chunks) > 1 && n%4 != 0 {
			t.Errorf("Read chunk at %d, one of %d, has %d octets, want a multiple of 4", position, len(chunks), n)
		}
		if position == 0 {
			continue
		}
		i := slices.IndexFunc(s.items, func(item Item) bool { return item.Eligible && item.Offset == int(position) })
		if i < 0 {
			t.Errorf("Read chunk at %d, where nothing may be reduced", position)
		} else if !Holds(n, uint32(s.items[i].Length)) {
			t.Errorf("Read chunk at %d has %d octets, its item %d", position, n, s.items[i].Length)
		}
	}
	if s.protected && (len(h.Writes) > 0 || len(chunks) > 0 && chunks[0] == 0) {
		t.Error("something of a protected message is reduced")
	}

	// The longest reply fits what is offered, and any item that has a chunk its.
	length := max(s.bound.Fixed, minReply)
	var results []Run
	if !s.protected {
		at := 28
		for _, n := range s.bound.Items {
			results = append(results, Run{at, n})
			at += int(rounded(n)) + 4
		}
	}
	for _, n := range s.bound.Items {
		length += int(rounded(n))
	}
	length = max(length, 28+sum(results)+4*len(results))
	var reply ReplyPlan
	if err := reply.Plan(h, length, results, terms.reply); err != nil {
		t.Errorf("the longest reply, of %d octets with %d results, does not fit: %v", length, len(results), err)
	}
	return h
}

func sum(runs []Run) (n int) {
	for _, r := range runs {
		n += int(rounded(r.Length))
	}
	return n
}

// Claims: P-3.2-1 P-3.4-5 P-3.4-13 P-3.7-4 P-4-2 P-5.1-1 P-5.2-2 P-6.2-6 P5667-3-1 P8166-3.4.2-1 P8166-3.4.2-2 P8166-3.4.4.1-1
// Claims: P8166-3.4.4.4-1 P8166-3.4.4.4-2 P8166-3.4.5-1 P8166-3.4.5.2-1 P8166-3.4.5.2-3 P8166-3.4.6-2 P8166-3.4.6.2-1 P8166-3.5.2-1
// Claims: P8166-3.5.3-1 P8166-3.5.3-2 P8166-4.2.4-5 P8166-4.3.2.2-2 P8166-4.3.2.3-1 P8166-4.3.3-1 P8166-4.3.3-2 P8166-6.1-1 P8166-6.1-2
// Claims: P8166-8.2.2.3-1
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
			s = append(s, pattern(i, n))
		}
		return s
	}
	segments := func(n ...int) (c []WriteChunk) {
		for _, n := range n {
			if n == 0 {
				c = append(c, nil)
			} else {
				c = append(c, WriteChunk{{Length: uint32(n)}})
			}
		}
		return c
	}
	read := func(position uint32, n int) ReadSegment { return ReadSegment{position, Segment{Length: uint32(n)}} }
	for _, test := range []struct {
		name   string
		items  [][]byte
		wanted []int
		sinks  [][]byte
		change func(*callShape)
		terms  callTerms
		want   Header
	}{
		{name: "nothing but a header"},
		// 28 + 40 + 4 + 4 + 4 + n + 4 is 1024 for 940.
		{name: "an item that just fits", items: items(940)},
		{name: "an item that does not", items: items(941), want: Header{Reads: []ReadSegment{read(head+4, 941)}}},
		{name: "the longest of three", items: items(500, 600, 8), want: Header{Reads: []ReadSegment{read(head+4+500+4, 600)}}},
		{name: "two of three, with roundup", items: items(1001, 2, 1002), want: Header{Reads: []ReadSegment{
			read(head+4, 1004), read(head+4+1004+4+4+4, 1004),
		}}},
		{name: "an item in its place", items: items(5000), want: Header{Reads: []ReadSegment{read(head+4, 5000)}}},
		{name: "a protected item", items: items(1002), change: func(s *callShape) { s.protected = true },
			want: Header{Proc: ProcNoMsg, Reads: []ReadSegment{read(0, head+4+1004+4)}}},
		{name: "an item that is not eligible", items: items(1002), change: func(s *callShape) { s.items[1].Eligible = false },
			want: Header{Proc: ProcNoMsg, Reads: []ReadSegment{read(0, head+4+1004+4)}}},

		// The reply: 28 + 24 + 8 + 4 + n + 4 is 1024 for 956.
		{name: "a result that just fits", wanted: []int{956}, sinks: sinks(956)},
		{name: "a result that does not", wanted: []int{957}, sinks: sinks(957), want: Header{Writes: segments(957)}},
		{name: "the same without a sink", wanted: []int{957}, want: Header{HasReply: true, Reply: segments(24 + 8 + 4 + 960 + 4)[0]}},
		{name: "a sink that is too short", wanted: []int{957, 5}, sinks: sinks(956, 5), want: Header{
			Writes: segments(0, 5), HasReply: true, Reply: segments(24 + 8 + 8 + 960 + 4)[0],
		}},
		{name: "a last sink that is too short", wanted: []int{957, 960}, sinks: sinks(957, 956), want: Header{
			Writes: segments(957), HasReply: true, Reply: segments(24 + 8 + 8 + 960 + 4)[0],
		}},
		{name: "more sinks than results", wanted: []int{957}, sinks: sinks(957, 5), want: Header{Writes: segments(957)}},
		{name: "more results than sinks", wanted: []int{957, 956}, sinks: sinks(957), want: Header{
			Writes: segments(957), HasReply: true, Reply: segments(24 + 8 + 8 + 956 + 4)[0],
		}},
		{name: "a protected result", wanted: []int{957}, sinks: sinks(957), change: func(s *callShape) { s.protected = true },
			want: Header{HasReply: true, Reply: segments(24 + 8 + 4 + 960 + 4)[0]}},
		{name: "a reply chunk of what the program says", change: func(s *callShape) { s.bound = ReplyBound{Fixed: 9001} },
			want: Header{HasReply: true, Reply: segments(9004)[0]}},

		{name: "both, with larger thresholds", terms: callTerms{call: 4096, reply: 4096}, items: items(3000), wanted: []int{3000}, sinks: sinks(3000)},
		{name: "a call that fits but for what its reply needs", items: items(940), wanted: []int{957}, sinks: sinks(957), want: Header{
			Reads: []ReadSegment{read(head+4, 940)}, Writes: segments(957),
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := exchangeCall(exchangeArgs("", test.items, test.wanted...))
			c.Sinks = test.sinks
			s := shapeOf(t, c, exchangeBinding{}, 0)
			if test.change != nil {
				test.change(s)
			}
			terms := smallest
			if test.terms.call != 0 {
				terms.call, terms.reply = test.terms.call, test.terms.reply
			}
			var p callPlan
			if err := p.plan(s, &terms); err != nil {
				t.Fatal(err)
			}
			test.want.Version = 1
			if diff := cmp.Diff(test.want, p.header, parsed); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
			checkPlan(t, s, &terms, &p)
		})
	}
}

func TestMemoryIsExposedInPlaceWhenItIsLong(t *testing.T) {
	long, short := pattern(1, inPlace), pattern(2, inPlace-1)
	tail := pattern(3, 9)
	c := exchangeCall([][]byte{long, short, tail[:1], tail[1:5], long[:0], long, tail[5:]}) // a multiple of 4 in all
	s := shapeOf(t, c, nil, 100)
	var p callPlan
	if err := p.plan(s, &smallest); err != nil {
		t.Fatal(err)
	}
	checkPlan(t, s, &smallest, &p)
	var lengths []int
	for _, r := range p.header.Reads {
		lengths = append(lengths, int(r.Length))
	}
	if want := []int{40, inPlace, inPlace + 4, inPlace, 4}; !slices.Equal(lengths, want) {
		t.Errorf("segments of %v octets, want %v", lengths, want)
	}
	for i, e := range p.exposed {
		if want := i == 1 || i == 3; want != (e.memory != nil && &e.memory[0] == &long[0]) {
			t.Errorf("segment %d: in its place %v, want %v", i, !want, want)
		}
	}

	c.Args = nil
	for range sendSegments {
		c.Args = append(c.Args, long)
	}
	s = shapeOf(t, c, nil, 100)
	if err := p.plan(s, &smallest); err != nil { // one more with the header
		t.Fatal(err)
	}
	checkPlan(t, s, &smallest, &p)
	if n := len(p.header.Reads); n != 1 {
		t.Errorf("%d segments, want 1 that gathers", n)
	}
}

// Claims: P-6.2-12 P8166-4.5.4-1
func TestACallThatCannotTravelIsRefused(t *testing.T) {
	big := func(n int) [][]byte { return exchangeArgs("", [][]byte{make([]byte, n)}) }
	for _, test := range []struct {
		name  string
		call  *oncrpc.ClientCall
		terms callTerms
	}{
		{"octets that are no words", exchangeCall([][]byte{{1, 2, 3}}), smallest},
		{"more in Read chunks than the limit", exchangeCall(big(5000)), callTerms{call: 1024, reply: 1024, rules: &Rules{Octets: 4999}}},
		{"more in Write chunks than the limit", &oncrpc.ClientCall{Call: exchangeCall(nil).Call, Args: exchangeArgs("", nil, 5000), Sinks: [][]byte{make([]byte, 5000)}},
			callTerms{call: 1024, reply: 1024, rules: &Rules{Octets: 4999}}},
		{"a longer reply than the limit", exchangeCall(exchangeArgs("", nil, 5000)), callTerms{call: 1024, reply: 1024, rules: &Rules{Octets: 4999}}},
		{"a long call to who does not read", exchangeCall(big(5000)), callTerms{call: 1024, reply: 1024, rules: &Rules{}, noReads: true}},
	} {
		s := &callShape{}
		head, _ := test.call.Call.Append(nil)
		binding := Binding(exchangeBinding{})
		if len(test.call.Args[0]) == 3 {
			binding = nil
		}
		if err := s.of(head, test.call, binding, &Cursor{}, 100); err != nil {
			t.Fatal(err)
		}
		var p callPlan
		wantFault(t, p.plan(s, &test.terms), FaultLocal)
		if t.Failed() {
			t.Fatal(test.name)
		}
	}
}

// The program's memory is cut as M3, M8, M9 and M10 of the worked messages have
// it; handles and offsets are theirs.
//
// Claims: P-3.4-19 P-3.4-22 P-4.1-2 P-4.1-18 P-5.2-1 P8166-4-1 P8166-4.2.2-1 P-5.2-6
func TestRealCallsTravelAsTheWorkedMessages(t *testing.T) {
	file := unhex(t, fileHandle)
	data := pattern(1, 65536)
	write := func(proc uint32, head []byte, pieces ...[]byte) *oncrpc.ClientCall {
		return &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 100003, Vers: 3, Proc: proc}, Args: slices.Concat([][]byte{file, head}, pieces)}
	}
	for _, test := range []struct {
		name     string
		xid      uint32
		call     *oncrpc.ClientCall
		reply    int // MaxReply
		terms    callTerms
		segments []Segment // handles and offsets, in the order of the header
	}{
		{"M1 RDMA_MSG", 0x5a5a0001, &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 100003, Vers: 3}}, 24, smallest, nil},
		{"M3 Read list", 0x5a5a0002, write(7, unhex(t, "00000000 00000000 00001003 00000002 00001003"), data[:4096], data[:3], []byte{0}), 160, smallest,
			[]Segment{{Handle: 0x1100, Offset: 0x10000}, {Handle: 0x1101, Offset: 0x20000}}},
		{"M6 Reply chunk", 0x5a5a0004, write(16, unhex(t, "00000000 00000000 00000000 00000000 00002000")), 8192, smallest,
			[]Segment{{Handle: 0x3300, Offset: 0x50000}}},
		{"M8 RDMA_NOMSG", 0x5a5a0005, &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 9}, Args: [][]byte{data[:4000], data[:960]}}, 100, smallest,
			[]Segment{{Handle: 0x4400, Offset: 0x60000}}},
		{"M9 everything", 0x5a5a0006, &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 0x20000a0a, Vers: 1, Proc: 2}, Args: [][]byte{data[:2356], word(65536), data}}, 4096, smallest,
			[]Segment{{Handle: 0x4401, Offset: 0x70000}, {Handle: 0x1102, Offset: 0x80000}, {Handle: 0x3301, Offset: 0x90000}}},
		{"M10 RDMA_MSGP", 0x5a5a0007, write(7, unhex(t, "00000000 00000000 00000258 00000002 00000258"), data[:600]), 160,
			callTerms{call: 1024, reply: 1024, rules: &rfc5666, align: 256}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := vectors[slices.IndexFunc(vectors, func(v vector) bool { return v.want.XID == test.xid })]
			test.call.XID, test.call.MaxReply = test.xid, test.reply
			s := shapeOf(t, test.call, workedBinding{}, 0)
			var p callPlan
			if err := p.plan(s, &test.terms); err != nil {
				t.Fatal(err)
			}
			checkPlan(t, s, &test.terms, &p)
			segments := test.segments
			for i := range p.header.Reads {
				p.header.Reads[i].Handle, p.header.Reads[i].Offset = segments[0].Handle, segments[0].Offset
				segments = segments[1:]
			}
			for i := range p.header.Reply {
				p.header.Reply[i].Handle, p.header.Reply[i].Offset = segments[0].Handle, segments[0].Offset
			}
			p.header.Credits = 32
			got := p.appendMessage(nil, s.stream)
			want := slices.Concat(unhex(t, v.header), unhex(t, v.payload))
			if p.header.Proc == ProcMsgP {
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
type workedBinding struct{ exchangeBinding }

func (workedBinding) WalkCall(proc uint32, c *Cursor) error {
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
	padding := callTerms{call: 2048, reply: 2048, rules: &rfc5666, align: 256}
	last := func(first, n int) *oncrpc.ClientCall {
		args := [][]byte{word(uint32(first)), pattern(1, first), make([]byte, Pad(uint64(first))), word(uint32(n)), pattern(2, n), make([]byte, Pad(uint64(n)))}
		return &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 1}, Args: args, MaxReply: 100}
	}
	for _, test := range []struct {
		name   string
		call   *oncrpc.ClientCall
		change func(*callTerms, *callShape)
		want   Proc
		thresh uint32
	}{
		{"longer than all else", last(20, 600), nil, ProcMsgP, 512},
		{"at the least threshold", last(20, 512), nil, ProcMsg, 0},
		{"above the least threshold", last(20, 513), nil, ProcMsgP, 512},
		{"one longer than another", last(600, 601), nil, ProcMsg, 0},
		{"two longer than another", last(600, 602), nil, ProcMsgP, 601},
		{"without an alignment", last(20, 600), func(c *callTerms, _ *callShape) { c.align = 1 }, ProcMsg, 0},
		{"with too large an alignment", last(20, 600), func(c *callTerms, _ *callShape) { c.align = MaxAlign + 4 }, ProcMsg, 0},
		{"where the pad does not fit", last(20, 600), func(c *callTerms, _ *callShape) { c.align = 2048 }, ProcMsg, 0},
		{"with a long credential", last(20, 600), func(_ *callTerms, s *callShape) { s.longest = 599 }, ProcMsg, 0},
		{"of a protected message", last(20, 600), func(_ *callTerms, s *callShape) { s.protected = true }, ProcMsg, 0},
		{"with a Reply chunk", last(20, 600), func(_ *callTerms, s *callShape) { s.bound.Fixed = 5000 }, ProcMsg, 0},
		{"where it needs no pad", last(20, 600), func(c *callTerms, _ *callShape) { c.align = 4 }, ProcMsgP, 512},
	} {
		terms := padding
		s := shapeOf(t, test.call, twoItems{}, 0)
		if test.change != nil {
			test.change(&terms, s)
		}
		var p callPlan
		if err := p.plan(s, &terms); err != nil {
			t.Fatal(test.name, err)
		}
		if p.header.Proc != test.want || p.header.Threshold != test.thresh {
			t.Errorf("%s: %v with threshold %d, want %v with %d", test.name, p.header.Proc, p.header.Threshold, test.want, test.thresh)
			continue
		}
		message := p.appendMessage(nil, s.stream)
		if p.header.Proc != ProcMsgP {
			checkPlan(t, s, &terms, &p)
			continue
		}
		if at := bytes.Index(message, pattern(2, s.items[1].Length)); at%int(terms.align) != 0 {
			t.Errorf("%s: the item is at octet %d", test.name, at)
		}
		// Both readings of the threshold find the same pads.
		for _, above := range []bool{false, true} {
			var h Header
			payload, err := h.Parse(message, &rfc5666)
			if err != nil {
				t.Fatal(err)
			}
			padding := h.Padding()
			padding.Above = above
			var c Cursor
			c.Padded(payload, 40, &padding)
			_ = twoItems{}.WalkCall(0, &c)
			if err := c.End(); err != nil {
				t.Errorf("%s, above %v: %v", test.name, above, err)
			}
			_, stream := received(t, message, nil, c.Pads(), &rfc5666)
			if !bytes.Equal(stream, bytes.Join(s.stream, nil)) {
				t.Errorf("%s, above %v: another message arrives", test.name, above)
			}
		}
	}
}

type twoItems struct{ exchangeBinding }

func (twoItems) WalkCall(_ uint32, c *Cursor) error {
	c.Opaque(1 << 20)
	c.Opaque(1 << 20)
	return c.Err()
}
