package verbs_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

// BenchmarkRoundTrip is one message at a time over TCP, polled for.
func BenchmarkRoundTrip(b *testing.B) {
	for _, op := range []verbs.Op{verbs.OpWrite, verbs.OpRead, verbs.OpFetchAdd} {
		for _, size := range []int{8, 4096} {
			if op == verbs.OpFetchAdd && size != 8 {
				continue
			}
			b.Run(fmt.Sprintf("%v/%d", op, size), func(b *testing.B) {
				x, y := linked(b, wires[0], reads, reads)
				wr := x.write(1, y, 0, size)
				wr.Op = op
				var wc [1]verbs.WC
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					check(b, x.qp.PostSend(wr))
					for x.sendCQ.Poll(wc[:]) == 0 {
						runtime.Gosched()
					}
				}
			})
		}
	}
}

// BenchmarkPostAndPoll is what the queues cost alone: a queue pair in Error
// completes each request at once.
func BenchmarkPostAndPoll(b *testing.B) {
	for _, batch := range []int{1, 16} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			s := newSide(b, verbs.QPConfig{})
			qp := s.flusher(verbs.QPConfig{SendDepth: 64})
			wrs := make([]verbs.SendWR, batch)
			for i := range wrs {
				wrs[i] = verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{s.mr.SGE(0, 64)}}
			}
			wcs := make([]verbs.WC, batch)
			b.ReportAllocs()
			for b.Loop() {
				if n, err := qp.PostSends(wrs); n != batch {
					b.Fatal(err)
				}
				if s.sendCQ.Poll(wcs) != batch {
					b.Fatal("a completion is missing")
				}
			}
		})
	}
}
