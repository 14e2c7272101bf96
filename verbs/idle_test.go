package verbs_test

import (
	"net"
	"runtime"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/verbs"
)

// rests are what queue pairs can have done before they fall idle.
var rests = []struct {
	name string
	do   func(t testing.TB, a, b *side)
}{
	{"nothing", func(testing.TB, *side, *side) {}},
	{"64 octets", func(t testing.TB, a, b *side) { exchange(t, a, b, 64) }},
	{"1 MiB", func(t testing.TB, a, b *side) { exchange(t, a, b, 1<<20) }},
}

// exchange does as much of each kind as the queues take, one way and the other,
// with messages of n octets, and leaves receives behind.
func exchange(t testing.TB, a, b *side, n int) {
	recvs := make([]verbs.RecvWR, 16)
	for range 2 {
		for i := range recvs {
			recvs[i].SGL = []verbs.SGE{b.mr.SGE(0, n)}
		}
		must(b.qp.PostRecvs(recvs))(t)
		add := verbs.Atomic{Data: 1}
		for _, wr := range []verbs.SendWR{a.send(1, 0, n), a.write(1, b, 0, n), a.read(1, b, 0, n), a.atomic(1, verbs.OpFetchAdd, b, 0, 64, add)} {
			for range 16 {
				a.post(wr)
			}
			for _, wc := range take(t, a.sendCQ, 16) {
				check(t, wc.Err())
			}
		}
		take(t, b.recvCQ, 16)
		must(b.qp.PostRecvs(recvs))(t)
		a, b = b, a
	}
}

// idle connects n queue pairs with n others, over TCP, which fall idle after rest,
// and returns what the process uses the more for it, in octets for each of the 2n:
// of the heap, and of the stacks of goroutines.
func idle(t testing.TB, n int, rest func(t testing.TB, a, b *side)) (heap, stack int) {
	l := nettest.Listen(t, "tcp4")
	var open []net.Conn
	t.Cleanup(func() {
		for _, c := range open {
			_ = c.Close()
		}
	})
	a, b := newSide(t, reads), newSide(t, reads)
	connect := func(a, b *side) {
		x := must(net.Dial("tcp4", l.Addr().String()))(t)
		y := must(l.Accept())(t)
		open = append(open, x, y)
		join(t, a.qp, b.qp, x, y, cm.Params{})
		rest(t, a, b)
	}
	connect(a, b) // what there is once, and is shared, has been made
	before := used()
	for range n {
		connect(a.sibling(), b.sibling())
	}
	after := used()
	runtime.KeepAlive(a.rnic)
	runtime.KeepAlive(b.rnic)
	return int(after.HeapAlloc-before.HeapAlloc) / (2 * n), int(after.StackInuse-before.StackInuse) / (2 * n)
}

// sibling is another queue pair of the same RNIC, with the same CQs.
func (s *side) sibling() *side {
	return &side{t: s.t, rnic: s.rnic, pd: s.pd, sendCQ: s.sendCQ, recvCQ: s.recvCQ, mr: s.mr, buf: s.buf, qp: s.newQP(reads)}
}

// used is what is in use when nothing is left that need not be.
func used() (m runtime.MemStats) {
	for range 4 {
		runtime.GC() // pools go with the second, stacks shrink by half with each
	}
	runtime.ReadMemStats(&m)
	return m
}

// BenchmarkIdleQP reports how much memory a connected queue pair uses that does
// nothing, its share of CQs and memory regions aside. Time means nothing in it.
func BenchmarkIdleQP(b *testing.B) {
	for _, r := range rests {
		b.Run("after "+r.name, func(b *testing.B) {
			heap, stack := idle(b, 100, r.do)
			for b.Loop() {
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(heap), "heap-B/QP")
			b.ReportMetric(float64(stack), "stack-B/QP")
			b.ReportMetric(float64(heap+stack), "B/QP")
		})
	}
}

// A queue pair that does nothing keeps little, whatever it did before: about 16
// KiB, of which the two queues of 16 are a third.
func TestAnIdleQueuePairIsSmall(t *testing.T) {
	const most = 24 << 10
	for _, r := range rests {
		if heap, stack := idle(t, 12, r.do); heap+stack > most {
			t.Errorf("after %s a queue pair uses %d octets of heap and %d of stack, expected at most %d together", r.name, heap, stack, most)
		}
	}
}
