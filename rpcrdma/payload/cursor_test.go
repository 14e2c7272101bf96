package payload_test

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/internal/worked"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// walkItems visits all of c as EXCHANGE results do: eligible items to the end.
func walkItems(c *payload.Cursor) {
	for c.Err() == nil && c.Left() > 0 {
		c.Eligible(math.MaxUint32)
	}
}

// cuts are all ways to cut b into two pieces, and into its octets.
func cuts(b []byte) (all [][][]byte) {
	for i := range len(b) + 1 {
		all = append(all, [][]byte{b[:i], b[i:]})
	}
	octets := [][]byte{nil}
	for i := range b {
		octets = append(octets, b[i:i+1], nil)
	}
	return append(all, octets)
}

func TestACursorFindsTheSameItemsWhereverAMessageIsCut(t *testing.T) {
	message := slices.Concat(make([]byte, 40), slices.Concat(exchange.Args("abcde", [][]byte{exchange.Pattern(1, 5), nil, exchange.Pattern(2, 8)}, 1, 2)...))
	var whole payload.Cursor
	whole.Whole(message, 40)
	_ = exchange.Binding{}.WalkCall(exchange.Proc, &whole)
	if err := whole.End(); err != nil {
		t.Fatal(err)
	}
	want := []payload.Item{
		{Run: payload.Run{44, 5}, At: 44, Chunk: -1},
		{Run: payload.Run{60, 5}, Eligible: true, At: 60, Chunk: -1},
		{Run: payload.Run{72, 0}, Eligible: true, At: 72, Chunk: -1},
		{Run: payload.Run{76, 8}, Eligible: true, At: 76, Chunk: -1},
	}
	if diff := cmp.Diff(want, whole.Items()); diff != "" {
		t.Fatalf("items (-want +got):\n%s", diff)
	}
	var c payload.Cursor
	for _, pieces := range cuts(message) {
		c.WholePieces(pieces, 40)
		if got := c.Opaque(exchange.MaxTag); string(got) != "abcde" {
			t.Errorf("cut into %d: tag %q", len(pieces), got)
		}
		c.WholePieces(pieces, 40)
		_ = exchange.Binding{}.WalkCall(exchange.Proc, &c)
		if err := c.End(); err != nil || c.Pos() != len(message) {
			t.Fatalf("cut into %d: %v, at octet %d", len(pieces), err, c.Pos())
		}
		if diff := cmp.Diff(want, c.Items()); diff != "" {
			t.Fatalf("cut into %d: items (-want +got):\n%s", len(pieces), diff)
		}
	}
}

func TestACursorReadsWordsAcrossPieces(t *testing.T) {
	message := worked.Unhex(t, "0102030405060708 00000001 aabbccdd 00000002")
	for _, pieces := range cuts(message) {
		var c payload.Cursor
		c.WholePieces(pieces, 0)
		if v := c.Uint64(); v != 0x0102030405060708 {
			t.Errorf("cut into %d: %#x", len(pieces), v)
		}
		if !c.Bool() {
			t.Errorf("cut into %d: not true", len(pieces))
		}
		c.Skip(3)
		if c.Left() != 4 {
			t.Errorf("cut into %d: %d octets left", len(pieces), c.Left())
		}
		c.Rest()
		if err := c.End(); err != nil || c.Pos() != len(message) {
			t.Errorf("cut into %d: %v at %d", len(pieces), err, c.Pos())
		}
	}
}

// Claims: P-3.4-13 P-3.6-4 P8166-3.4.4.1-1 P8166-3.4.5-1 P8166-3.4.6.1-1
func TestItemsInChunksCountInPositionsWithTheirRoundup(t *testing.T) {
	for _, test := range []struct {
		name    string
		message []byte // count words, and what is inline
		chunks  []int
		want    []payload.Item
		met     int
	}{
		{"exact and rounded up", slices.Concat(exchange.Word(5), exchange.Word(6)), []int{5, 8}, []payload.Item{
			{Run: payload.Run{4, 5}, Eligible: true, At: 4, Chunk: 0}, {Run: payload.Run{16, 6}, Eligible: true, At: 8, Chunk: 1},
		}, 2},
		{"more items than chunks", slices.Concat(exchange.Word(5), exchange.Word(2), exchange.Word(0)), []int{5}, []payload.Item{
			{Run: payload.Run{4, 5}, Eligible: true, At: 4, Chunk: 0}, {Run: payload.Run{16, 2}, Eligible: true, At: 8, Chunk: -1},
		}, 1},
		{"fewer items than chunks", exchange.Word(5), []int{5, 0}, []payload.Item{{Run: payload.Run{4, 5}, Eligible: true, At: 4, Chunk: 0}}, 1},
		{"one in the stream after all", slices.Concat(exchange.Word(4), exchange.Word(7), exchange.Word(4)), []int{payload.Inline, 4}, []payload.Item{
			{Run: payload.Run{4, 4}, Eligible: true, At: 4, Chunk: -1}, {Run: payload.Run{12, 4}, Eligible: true, At: 12, Chunk: 1},
		}, 2},
		{"no octets use up a chunk of none", slices.Concat(exchange.Word(0), exchange.Word(3)), []int{0, 3}, []payload.Item{
			{Run: payload.Run{4, 0}, Eligible: true, At: 4, Chunk: 0}, {Run: payload.Run{8, 3}, Eligible: true, At: 8, Chunk: 1},
		}, 2},
		{"no octets leave a chunk that holds some", slices.Concat(exchange.Word(0), exchange.Word(3)), []int{3, 0}, []payload.Item{
			{Run: payload.Run{4, 0}, Eligible: true, At: 4, Chunk: -1}, {Run: payload.Run{8, 3}, Eligible: true, At: 8, Chunk: 0},
		}, 1},
	} {
		var c payload.Cursor
		c.Reduced(test.message, 0, test.chunks)
		walkItems(&c)
		if err := c.End(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if diff := cmp.Diff(test.want, c.Items()); diff != "" {
			t.Errorf("%s: items (-want +got):\n%s", test.name, diff)
		}
		if c.Chunks() != test.met {
			t.Errorf("%s: %d chunks met, want %d", test.name, c.Chunks(), test.met)
		}
	}
}

// Claims: P-3.4-14 P-3.4-15 P8166-3.4.5.2-2 P8166-3.4.5.2-3
func TestACursorRefusesWhatDoesNotAgree(t *testing.T) {
	limited := func(c *payload.Cursor) { c.Eligible(4) }
	for _, test := range []struct {
		name    string
		message []byte
		chunks  []int
		walk    func(*payload.Cursor)
	}{
		{"a chunk shorter than its item", exchange.Word(5), []int{4}, walkItems},
		{"a chunk longer than its item and roundup", exchange.Word(5), []int{9}, walkItems},
		{"a chunk between item and roundup", exchange.Word(5), []int{7}, walkItems},
		{"an item with octets whose chunk has none", exchange.Word(5), []int{0}, walkItems},
		{"an item beyond its limit", exchange.Word(5), []int{5}, limited},
		{"an item beyond its limit, inline", slices.Concat(exchange.Word(5), make([]byte, 8)), nil, limited},
		{"an item of the most octets that a word can say", exchange.Word(math.MaxUint32), nil, walkItems},
		{"an item of all octets of a stream", exchange.Word(payload.MaxStream), nil, walkItems},
		{"an item without its roundup", slices.Concat(exchange.Word(5), make([]byte, 5)), nil, walkItems},
		{"items beyond the largest position", slices.Concat(exchange.Word(1<<30), exchange.Word(1<<30-3)), []int{1 << 30, 1<<30 - 3}, walkItems},
		{"half a word", []byte{0, 0}, nil, walkItems},
		{"a boolean of 2", exchange.Word(2), nil, func(c *payload.Cursor) { c.Bool() }},
		{"fixed data without roundup", make([]byte, 5), nil, func(c *payload.Cursor) { c.Skip(5) }},
		{"fixed data of fewer than no octets", make([]byte, 5), nil, func(c *payload.Cursor) { c.Skip(-1) }},
		{"fixed data of the most octets", make([]byte, 5), nil, func(c *payload.Cursor) { c.Skip(math.MaxInt) }},
		{"more elements than can follow", slices.Concat(exchange.Word(3), make([]byte, 8)), nil, func(c *payload.Cursor) { c.Count(9, 4) }},
		{"more elements than are allowed", slices.Concat(exchange.Word(2), make([]byte, 8)), nil, func(c *payload.Cursor) { c.Count(1, 4) }},
		{"octets that are left over", exchange.Word(0), nil, func(c *payload.Cursor) {}},
		{"a beginning behind the end", nil, nil, func(c *payload.Cursor) { c.Whole(make([]byte, 3), 4) }},
		{"a beginning before the start", nil, nil, func(c *payload.Cursor) { c.Whole(make([]byte, 3), -1) }},
	} {
		var c payload.Cursor
		c.Reduced(test.message, 0, test.chunks)
		test.walk(&c)
		err := c.End()
		worked.WantFault(t, err, wire.FaultStream)
		if t.Failed() {
			t.Fatal(test.name)
		}
		if c.Left() != 0 || c.Uint32() != 0 || c.Uint64() != 0 || c.Bool() || c.Count(1, 4) != 0 || c.Opaque(1) != nil || c.Eligible(1) != 0 || c.Err() != err {
			t.Errorf("%s: something is read after the error %v", test.name, err)
		}
	}
}

// Claims: P-3.9-5 P-3.9-6
func TestACursorPassesThePadsOfAnRDMAMSGP(t *testing.T) {
	// A header of 36 octets, an item of 2 octets at 8 that is below the threshold
	// and one of 8 at 16, which would be at 36+16 = 52: its pad is 12 octets.
	inline := slices.Concat(exchange.Word(7), exchange.Word(2), []byte{1, 2, 0, 0}, exchange.Word(8), make([]byte, 12), exchange.Pattern(3, 8), exchange.Word(9))
	var c payload.Cursor
	c.Padded(inline, 4, &wire.Padding{Align: 64, Threshold: 8, Header: 36})
	if got := c.Opaque(2); !bytes.Equal(got, []byte{1, 2}) {
		t.Errorf("first item %x", got)
	}
	if got := c.Opaque(8); !bytes.Equal(got, exchange.Pattern(3, 8)) {
		t.Errorf("second item %x", got)
	}
	if v := c.Uint32(); v != 9 || c.End() != nil {
		t.Errorf("then %d, %v", v, c.End())
	}
	if diff := cmp.Diff([]payload.Run{{16, 12}}, c.Pads()); diff != "" {
		t.Errorf("pads (-want +got):\n%s", diff)
	}
	want := []payload.Item{{Run: payload.Run{8, 2}, At: 8, Chunk: -1}, {Run: payload.Run{16, 8}, At: 28, Chunk: -1}}
	if diff := cmp.Diff(want, c.Items()); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}

	c.Padded(inline, 4, &wire.Padding{Align: 64, Threshold: 8, Header: 36, Above: true})
	c.Opaque(2)
	c.Opaque(8)
	c.Uint32()
	worked.WantFault(t, c.End(), wire.FaultStream) // by the other reading nothing is a pad

	c.Padded(inline[:20], 12, &wire.Padding{Align: 64, Threshold: 8, Header: 36})
	c.Opaque(8)
	worked.WantFault(t, c.Err(), wire.FaultStream) // the pad is cut off
}

// Of a message of a peer's, only eligible items are noted where that is asked
// for: it may have any number of others.
func TestACursorMayNoteEligibleItemsOnly(t *testing.T) {
	e := oncrpc.NewEncoder(nil)
	e.Opaque([]byte("plain"), 10)
	e.Opaque([]byte("eligible"), 10)
	e.Opaque(nil, 10)
	b, err := e.Finish()
	if err != nil {
		t.Fatal(err)
	}
	c := payload.Cursor{EligibleOnly: true}
	for range 2 { // it stays so
		c.Whole(b, 0)
		c.Opaque(10)
		c.Eligible(10)
		c.Opaque(10)
		if items := c.Items(); c.End() != nil || len(items) != 1 || items[0].Run != (payload.Run{16, 8}) || !items[0].Eligible {
			t.Errorf("items %+v and %v", items, c.Err())
		}
	}
}

func TestACursorUsedAgainAllocatesNothing(t *testing.T) {
	message := slices.Concat(exchange.Args("abcde", [][]byte{exchange.Pattern(1, 5000)}, 1, 2)...)
	pieces := exchange.Args("abcde", [][]byte{exchange.Pattern(1, 5000)}, 1, 2)
	var c payload.Cursor
	if n := testing.AllocsPerRun(100, func() {
		c.Whole(message, 0)
		_ = exchange.Binding{}.WalkCall(exchange.Proc, &c)
		c.WholePieces(pieces, 0)
		_ = exchange.Binding{}.WalkCall(exchange.Proc, &c)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzCursor walks any octets, in any form, and holds the forms against each
// other.
func FuzzCursor(f *testing.F) {
	f.Add(slices.Concat(exchange.Args("abc", [][]byte{exchange.Pattern(1, 7)}, 9)...), uint8(5), uint16(7), uint16(8))
	f.Add(slices.Concat(exchange.Word(0), exchange.Word(1), exchange.Word(7), exchange.Word(1), exchange.Word(2)), uint8(9), uint16(8), uint16(0))
	f.Fuzz(func(t *testing.T, b []byte, cut uint8, first, second uint16) {
		at := int(cut) % (len(b) + 1)
		var whole, pieces, reduced payload.Cursor
		whole.Whole(b, 0)
		pieces.WholePieces([][]byte{b[:at], nil, b[at:]}, 0)
		for _, c := range []*payload.Cursor{&whole, &pieces} {
			_ = exchange.Binding{}.WalkCall(exchange.Proc, c)
		}
		if (whole.End() == nil) != (pieces.End() == nil) || !slices.Equal(whole.Items(), pieces.Items()) {
			t.Fatalf("whole: %v, %v; in pieces: %v, %v", whole.Items(), whole.Err(), pieces.Items(), pieces.Err())
		}
		chunks := []int{int(first), int(second)}
		reduced.Reduced(b, 0, chunks)
		_ = exchange.Binding{}.WalkCall(exchange.Proc, &reduced)
		if reduced.End() != nil {
			return
		}
		length := len(b)
		for _, item := range reduced.Items() {
			if item.Chunk < 0 {
				continue
			}
			if !wire.Holds(uint64(chunks[item.Chunk]), uint32(item.Length)) {
				t.Fatalf("item %+v in a chunk of %d", item, chunks[item.Chunk])
			}
			length += int(payload.Rounded(item.Length))
		}
		if reduced.Pos() != length {
			t.Fatalf("ends at %d, want %d", reduced.Pos(), length)
		}
		// The same message with everything in its place.
		var out []byte
		from := 0
		for _, item := range reduced.Items() {
			if item.Chunk >= 0 {
				out = append(append(out, b[from:item.At]...), make([]byte, payload.Rounded(item.Length))...)
				from = item.At
			}
		}
		out = append(out, b[from:]...)
		whole.Whole(out, 0)
		_ = exchange.Binding{}.WalkCall(exchange.Proc, &whole)
		if err := whole.End(); err != nil {
			t.Fatal(err)
		}
		for i, item := range whole.Items() {
			if item.Run != reduced.Items()[i].Run {
				t.Fatalf("item %d is %+v, reduced it is %+v", i, item, reduced.Items()[i])
			}
		}
	})
}
