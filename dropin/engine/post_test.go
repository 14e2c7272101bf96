package main

import (
	"testing"
	"unsafe"

	"github.com/weft-rdma/weft/verbs"
)

// request writes request n of a send queue, with one element of 8 octets.
func (q *queuePair) request(n uint64, op uint8, flags uint8, sges uint16) {
	p := q.sends.slot(n)
	b := unsafe.Slice((*byte)(p), sendSlot)
	clear(b)
	*(*uint64)(p) = n
	b[8], b[9] = op, flags
	*(*uint16)(unsafe.Add(p, 10)) = sges
	*(*uint32)(unsafe.Add(p, 12)) = 0x11223344 // remote key
	*(*uint64)(unsafe.Add(p, 16)) = 0x1000     // remote address
	*(*uint64)(unsafe.Add(p, 24)) = 7          // operand
	*(*uint64)(unsafe.Add(p, 32)) = 9          // compare
	*(*uint32)(unsafe.Add(p, 40)) = 0x55667788 // immediate, or the key to invalidate
	*(*verbs.SGE)(unsafe.Add(p, 48)) = verbs.SGE{TO: 0x2000, STag: 5, Length: 8}
}

// TestRequestsBecomeThoseOfVerbs goes through the operations (enum weft_op).
func TestRequestsBecomeThoseOfVerbs(t *testing.T) {
	anEngine(t, true)
	q := newBed(t).newQP()
	const signaled, solicited, fence = 1, 2, 4
	for _, c := range []struct {
		what  string
		op    uint8
		flags uint8
		sges  uint16
		want  []verbs.Op
		check func(wrs []verbs.SendWR) bool
	}{
		{"send", 1, signaled, 1, []verbs.Op{verbs.OpSend}, func(w []verbs.SendWR) bool { return w[0].Flags == verbs.Signaled && w[0].SGL[0].Length == 8 }},
		{"send solicited", 1, solicited, 0, []verbs.Op{verbs.OpSendSE}, func(w []verbs.SendWR) bool { return w[0].Flags == 0 && len(w[0].SGL) == 0 }},
		{"send with immediate", 2, signaled, 1, []verbs.Op{verbs.OpImmediate, verbs.OpSend}, func(w []verbs.SendWR) bool {
			return w[0].Flags == 0 && w[0].ID&partial != 0 && w[0].Immediate == [8]byte{0x88, 0x77, 0x66, 0x55, 0xFF, 0xFF, 0xFF, 0xFF} && w[1].Flags == verbs.Signaled
		}},
		{"send with invalidate", 3, 0, 1, []verbs.Op{verbs.OpSendInvalidate}, func(w []verbs.SendWR) bool { return w[0].Invalidate == 0x55667788 }},
		{"write", 4, fence, 1, []verbs.Op{verbs.OpWrite}, func(w []verbs.SendWR) bool {
			return w[0].Flags == verbs.ReadFence && w[0].Remote == verbs.Remote{STag: 0x11223344, TO: 0x1000}
		}},
		{"write with immediate", 5, signaled | solicited, 1, []verbs.Op{verbs.OpWrite, verbs.OpImmediateSE}, func(w []verbs.SendWR) bool {
			return w[0].Flags == 0 && w[0].ID&partial != 0 && w[1].Immediate == [8]byte{0x88, 0x77, 0x66, 0x55, 0, 0, 0, 8}
		}},
		{"read", 6, signaled, 1, []verbs.Op{verbs.OpRead}, func(w []verbs.SendWR) bool { return w[0].SGL[0].STag == 5 }},
		{"read of nothing", 6, signaled, 0, []verbs.Op{verbs.OpRead}, func(w []verbs.SendWR) bool { return len(w[0].SGL) == 1 && w[0].SGL[0].Length == 0 }},
		{"compare and swap", 7, signaled, 1, []verbs.Op{verbs.OpCmpSwap}, func(w []verbs.SendWR) bool { return w[0].Atomic.Data == 7 && w[0].Atomic.Compare == 9 }},
		{"fetch and add", 8, signaled, 1, []verbs.Op{verbs.OpFetchAdd}, func(w []verbs.SendWR) bool { return w[0].Atomic.Data == 7 }},
		{"invalidate", 10, signaled, 0, []verbs.Op{verbs.OpInvalidate}, func(w []verbs.SendWR) bool { return w[0].Invalidate == 0x55667788 }},
	} {
		const n = 3
		q.request(n, c.op, c.flags, c.sges)
		var wrs [partsOf]verbs.SendWR
		got := wrs[:q.sends.translate(wrs[:], n)]
		if len(got) != len(c.want) {
			t.Errorf("%s: %d requests, expected %d", c.what, len(got), len(c.want))
			continue
		}
		for i := range got {
			if got[i].Op != c.want[i] || got[i].ID&^partial != n {
				t.Errorf("%s: part %d is %v of %#x, expected %v", c.what, i, got[i].Op, got[i].ID, c.want[i])
			}
		}
		if !c.check(got) {
			t.Errorf("%s: %+v", c.what, got)
		}
	}
}
