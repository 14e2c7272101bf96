package binding

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// Whatever octets it walks, the binding ends, finds items in their order and
// within the stream, and finds them at the same positions in a stream that lies in
// pieces and in one without them.
func FuzzWalkV4(f *testing.F) {
	for _, m := range compounds(f) {
		f.Add(m.message, uint16(m.at), m.reply)
	}
	for _, ex := range examples4 {
		for _, args := range ex.args {
			f.Add(compoundArgs(fmt.Sprint(ex.op, " ", args), "38 .16 .8 0 'data'"), uint16(walkedFrom), false)
		}
		for _, result := range ex.results {
			f.Add(compoundResults(0, fmt.Sprint(ex.op, " ", result), "25 0 1 'data'"), uint16(walkedFrom), true)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, from uint16, reply bool) {
		if len(b) > 1<<16 {
			return
		}
		at := int(from) &^ 3 // as headers end
		walk := V4{}.WalkCall
		if reply {
			walk = V4{}.WalkReply
		}
		var c payload.Cursor
		c.Whole(b, at)
		bound := V4{}.MaxReply(procCompound4, &c)
		if bound.Fixed < -1 || len(bound.Items) > len(b) {
			t.Fatalf("bound %+v", bound)
		}

		c.Whole(b, at)
		err := walk(procCompound4, &c)
		items := slices.Clone(c.Items())
		end := at
		for _, it := range items {
			if it.Offset < end || it.Offset%4 != 0 || it.Length < 0 || it.Offset+it.Length > len(b) {
				t.Fatalf("item %+v behind %d in %d octets", it, end, len(b))
			}
			end = it.Offset + it.Length
		}

		// The same in pieces.
		c.WholePieces([][]byte{b[:len(b)/3], nil, b[len(b)/3 : len(b)/2], b[len(b)/2:]}, at)
		again := walk(procCompound4, &c)
		if (err == nil) != (again == nil) {
			t.Fatalf("whole: %v, in pieces: %v", err, again)
		}
		same(t, "in pieces", items, c.Items())

		// A whole walk sees what is behind the stream; one that has left the rest
		// alone does not. Counts in what is malformed are as they may be.
		c.Whole(append(slices.Clip(b), 0, 0, 0, 0), at)
		if err != nil || walk(procCompound4, &c) == nil {
			return
		}

		// The same without what is eligible.
		var reduced []byte
		var chunks []int
		end = 0
		for _, it := range items {
			if it.Eligible {
				reduced = append(reduced, b[end:it.Offset]...)
				end = it.Offset + it.Length + wire.Pad(uint64(it.Length))
				chunks = append(chunks, it.Length)
			}
		}
		reduced = append(reduced, b[end:]...)
		c.Reduced(reduced, at, chunks)
		if err := walk(procCompound4, &c); err != nil {
			t.Fatalf("reduced: %v", err)
		}
		same(t, "reduced", items, c.Items())
	})
}

func same(t *testing.T, how string, want, got []payload.Item) {
	if len(want) != len(got) {
		t.Fatalf("%d items, %s %d", len(want), how, len(got))
	}
	for i := range want {
		if want[i].Run != got[i].Run || want[i].Eligible != got[i].Eligible {
			t.Fatalf("item %+v, %s %+v", want[i], how, got[i])
		}
	}
}
