package verbs_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

// A kind of message, as it is posted over and over.
type traffic struct {
	name   string
	octets int
	wr     verbs.SendWR
}

// trafficOf are messages of every operation, from a to b or for it.
func trafficOf(a, b *side) []traffic {
	return []traffic{
		{"Send", 64, a.send(1, 0, 64)},
		{"Write of 64", 64, a.write(1, b, 0, 64)},
		{"Write of 100000", 100000, a.write(1, b, 0, 100000)},
		{"Read of 64", 64, a.read(1, b, 0, 64)},
		{"Read of 100000", 100000, a.read(1, b, 0, 100000)},
		{"Immediate Data", 8, verbs.SendWR{ID: 1, Op: verbs.OpImmediate, Flags: verbs.Signaled}},
		{"FetchAdd", 8, a.atomic(1, verbs.OpFetchAdd, b, 0, 64, verbs.Atomic{Data: 1})},
		{"CmpSwap", 8, a.atomic(1, verbs.OpCmpSwap, b, 0, 64, verbs.Atomic{Data: 1, Mask: 1, Compare: 1, CompareMask: 1})},
	}
}

// moves returns what posts n times wr, receives for it if it needs some, and polls
// all the completions.
func moves(t testing.TB, a, b *side, wr verbs.SendWR, n int) func() {
	ctx := context.Background()
	wrs, recvs, wcs := make([]verbs.SendWR, n), make([]verbs.RecvWR, n), make([]verbs.WC, n)
	for i := range n {
		wrs[i], recvs[i] = wr, verbs.RecvWR{ID: 2, SGL: []verbs.SGE{b.mr.SGE(0, 64)}}
	}
	poll := func(cq *verbs.CQ) {
		for got := 0; got < n; {
			check(t, cq.Wait(ctx))
			k := cq.Poll(wcs[got:])
			for _, wc := range wcs[got : got+k] {
				check(t, wc.Err())
			}
			got += k
		}
	}
	return func() {
		receives := wr.Op == verbs.OpSend || wr.Op == verbs.OpImmediate
		if receives {
			_, err := b.qp.PostRecvs(recvs)
			check(t, err)
		}
		_, err := a.qp.PostSends(wrs)
		check(t, err)
		poll(a.sendCQ)
		if receives {
			poll(b.recvCQ)
		}
	}
}

// BenchmarkOperation is each operation over TCP, in lists of so many: posted,
// received, completed and waited for.
func BenchmarkOperation(b *testing.B) {
	x, y := linked(b, wires[0], reads, reads)
	for _, k := range trafficOf(x, y) {
		for _, list := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/list=%d", k.name, list), func(b *testing.B) {
				run := moves(b, x, y, k.wr, list)
				b.SetBytes(int64(list * k.octets))
				b.ReportAllocs()
				for b.Loop() {
					run()
				}
			})
		}
	}
}

// BenchmarkLend is memory that is made valid and invalid again by work requests,
// as for one message.
func BenchmarkLend(b *testing.B) {
	x, _ := linked(b, wires[0], able, reads)
	lent := func(b *testing.B, post func() []verbs.SendWR) {
		var wc [1]verbs.WC
		b.ReportAllocs()
		for b.Loop() {
			x.post(post()...)
			check(b, x.sendCQ.Wait(b.Context()))
			x.sendCQ.Poll(wc[:])
			check(b, wc[0].Err())
		}
	}
	var wrs [2]verbs.SendWR
	b.Run("Bind", func(b *testing.B) {
		mw, mr := x.window(), x.mrOf(verbs.MRConfig{Buf: x.buf, Access: bindable})
		lent(b, func() []verbs.SendWR {
			binding := mw.Binding(mr, 0, 4096, verbs.RemoteRead)
			wrs[0] = verbs.SendWR{Op: verbs.OpBind, Bind: &binding}
			wrs[1] = verbs.SendWR{Op: verbs.OpInvalidate, Flags: verbs.Signaled, Invalidate: binding.Window}
			return wrs[:]
		})
	})
	b.Run("FastRegister", func(b *testing.B) {
		mr := must(x.pd.AllocMR(1, true))(b)
		lent(b, func() []verbs.SendWR {
			f := mr.FastRegister(x.buf[:4096], verbs.LocalRead|verbs.RemoteRead)
			wrs[0] = verbs.SendWR{Op: verbs.OpFastRegister, FastRegister: &f}
			wrs[1] = verbs.SendWR{Op: verbs.OpInvalidate, Flags: verbs.Signaled, Invalidate: f.STag}
			return wrs[:]
		})
	})
}

// BenchmarkStream is lists of 1024 operations of 64 octets, every 64th signaled, with several
// lists under way. With -cpu 1 its time is the processor time of both ends.
func BenchmarkStream(b *testing.B) {
	const list, signal, lists = 1024, 64, 8
	for _, op := range []verbs.Op{verbs.OpWrite, verbs.OpRead} {
		b.Run(op.String(), func(b *testing.B) {
			deep := verbs.QPConfig{SendDepth: (lists + 1) * list, IRD: 128, ORD: 128}
			x, y := linked(b, wires[0], deep, deep)
			wrs := make([]verbs.SendWR, list)
			for i := range wrs {
				wrs[i] = x.write(uint64(i), y, 64*i%1024, 64)
				wrs[i].Op, wrs[i].Flags = op, 0
				if i%signal == signal-1 {
					wrs[i].Flags = verbs.Signaled
				}
			}
			wcs, inFlight := make([]verbs.WC, 64), 0
			b.ReportAllocs()
			for n := 0; n < b.N; n += list {
				for inFlight += list; inFlight > lists*list; {
					check(b, x.sendCQ.Wait(b.Context()))
					inFlight -= signal * x.sendCQ.Poll(wcs)
				}
				x.post(wrs...)
			}
			for inFlight > 0 {
				check(b, x.sendCQ.Wait(b.Context()))
				inFlight -= signal * x.sendCQ.Poll(wcs)
			}
		})
	}
}
