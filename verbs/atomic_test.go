package verbs_test

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/verbs"
)

// word is the 64-bit value at an offset of a side's memory, in the host's order.
func (s *side) word(off int) uint64 { return binary.NativeEndian.Uint64(s.buf[off:]) }

func (s *side) setWord(off int, v uint64) { binary.NativeEndian.PutUint64(s.buf[off:], v) }

// atomic is a signaled atomic on the word at off of another side, which puts
// what it found at sink.
func (s *side) atomic(id uint64, op verbs.Op, to *side, off, sink int, operands verbs.Atomic) verbs.SendWR {
	return verbs.SendWR{ID: id, Op: op, Flags: verbs.Signaled, SGL: []verbs.SGE{s.mr.SGE(sink, 8)}, Remote: to.mr.Remote(off), Atomic: operands}
}

// Operations of one stream work one after the other, in the order of posting.
//
// Claims: X-1.1-1 X-5-4 X-5.2.1-19 X-5.2.1-20 X-5.2.1-21 X-5.2.2-7 X-5.2.2-11 X-5.4-10 X-5.4-11
func TestAtomicsOfOneStreamWorkInTheOrderOfPosting(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, reads, reads)
		all := ^uint64(0)
		b.setWord(64, 5)
		wrs := []verbs.SendWR{
			a.atomic(0, verbs.OpFetchAdd, b, 64, 0, verbs.Atomic{Data: 10}),
			a.atomic(1, verbs.OpCmpSwap, b, 64, 8, verbs.Atomic{Data: 100, Mask: all, Compare: 15, CompareMask: all}),
			a.atomic(2, verbs.OpCmpSwap, b, 64, 16, verbs.Atomic{Data: 7, Mask: all, Compare: 15, CompareMask: all}), // finds 100
			a.read(3, b, 64, 8),
			a.atomic(4, verbs.OpFetchAdd, b, 64, 32, verbs.Atomic{Data: all}), // -1
			a.atomic(5, verbs.OpCmpSwap, b, 64, 40, verbs.Atomic{Data: 0xAB00, Mask: 0xFF00, Compare: 3, CompareMask: 1}),
			a.atomic(6, verbs.OpFetchAdd, b, 64, 48, verbs.Atomic{Data: 0x0101, Mask: 0x8080}), // octet by octet
		}
		a.post(wrs...)
		for i := range wrs {
			wantDone(t, a.sendCQ, done{uint64(i), verbs.Success})
		}
		for i, want := range []uint64{5, 15, 100, 0, 100, 99, 0xAB00 | 99} {
			if got := a.word(8 * i); i != 3 && got != want {
				t.Errorf("operation %d found %#x, expected %#x", i, got, want)
			}
		}
		if got := a.word(64); got != 100 {
			t.Errorf("the Read in between found %d, expected 100", got)
		}
		if got, want := b.word(64), uint64(0xAC00|100); got != want {
			t.Errorf("the word is %#x, expected %#x", got, want)
		}
	})
}

// Many streams and the host itself add to one word: no update is lost, and no
// two of them find the same value.
//
// Claims: X-5-2 X-5.3-1 X-5.4-3
func TestAtomicsOfManyStreamsLoseNoUpdate(t *testing.T) {
	const streams, each = 4, 200
	overWires(t, func(t *testing.T, w wire) {
		a, b := newSide(t, verbs.QPConfig{}), newSide(t, verbs.QPConfig{})
		target := (*uint64)(unsafe.Pointer(&b.buf[0]))
		found := make([]uint64, 0, (streams+1)*each)
		var wg sync.WaitGroup
		for i := range streams {
			cq := must(a.rnic.CreateCQ(verbs.CQConfig{Entries: 16}))(t)
			cfg := verbs.QPConfig{IRD: 4, ORD: 4, SendCQ: cq}
			qp, peer := a.newQP(cfg), b.newQP(reads)
			w.connect(t, qp, peer, cm.Params{})
			wg.Go(func() {
				for n := range each {
					sink := 8 * (i*each + n)
					if err := qp.PostSend(a.atomic(1, verbs.OpFetchAdd, b, 0, sink, verbs.Atomic{Data: 1})); err != nil {
						t.Error(err)
						return
					}
					wantDone(t, cq, done{1, verbs.Success})
				}
			})
		}
		var own []uint64
		wg.Go(func() {
			for range each {
				own = append(own, atomic.AddUint64(target, 1)-1)
			}
		})
		nettest.AwaitGroup(t, &wg)
		found = append(found, own...)
		for i := range streams * each {
			found = append(found, a.word(8*i))
		}
		slices.Sort(found)
		for i, v := range found {
			if v != uint64(i) {
				t.Fatalf("the values found are not 0 to %d, each once: %d in place %d", len(found)-1, v, i)
			}
		}
		if got := atomic.LoadUint64(target); got != (streams+1)*each {
			t.Errorf("the word is %d, expected %d", got, (streams+1)*each)
		}
	})
}
