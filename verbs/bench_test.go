package verbs_test

import (
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/weft-rdma/weft/cm"
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

// BenchmarkReceive is one empty message at a time over TCP into a receive, of the
// queue pair's own queue and of a shared one.
func BenchmarkReceive(b *testing.B) {
	for _, shared := range []bool{false, true} {
		b.Run(fmt.Sprintf("shared=%v", shared), func(b *testing.B) {
			x, y := newSide(b, verbs.QPConfig{}), newSide(b, verbs.QPConfig{})
			srq := must(y.pd.CreateSRQ(verbs.SRQConfig{WRs: 16}))(b)
			var qp *verbs.QP
			var post func(verbs.RecvWR) error
			if shared {
				qp, post = y.newQP(verbs.QPConfig{SRQ: srq}), srq.PostRecv
			} else {
				qp = y.newQP(verbs.QPConfig{})
				post = qp.PostRecv
			}
			wires[0].connect(b, x.qp, qp, cm.Params{})
			var wc [1]verbs.WC
			b.ReportAllocs()
			for b.Loop() {
				check(b, post(verbs.RecvWR{}))
				check(b, x.qp.PostSend(verbs.SendWR{Op: verbs.OpSend}))
				for y.recvCQ.Poll(wc[:]) == 0 {
					runtime.Gosched()
				}
			}
		})
	}
}

// BenchmarkPostAndPollReceives is what receive queues cost alone.
func BenchmarkPostAndPollReceives(b *testing.B) {
	s := newSide(b, verbs.QPConfig{})
	qp := s.flusher(verbs.QPConfig{RecvDepth: 64})
	wrs := make([]verbs.RecvWR, 16)
	for i := range wrs {
		wrs[i] = verbs.RecvWR{SGL: []verbs.SGE{s.mr.SGE(0, 64)}}
	}
	wcs := make([]verbs.WC, len(wrs))
	b.ReportAllocs()
	for b.Loop() {
		if n, err := qp.PostRecvs(wrs); n != len(wrs) {
			b.Fatal(err)
		}
		if s.recvCQ.Poll(wcs) != len(wrs) {
			b.Fatal("a completion is missing")
		}
	}
}

// BenchmarkPostOne is Writes of 64 octets, each posted by itself, to a peer that has
// nothing to do with them; and as many octets written to TCP, for comparison.
func BenchmarkPostOne(b *testing.B) {
	b.Run("Write", func(b *testing.B) {
		x, y := linked(b, wires[0], verbs.QPConfig{SendDepth: 1024}, reads)
		wr := x.write(1, y, 0, 64)
		var wcs [16]verbs.WC
		b.SetBytes(64)
		b.ReportAllocs()
		for posted, out := 0, 0; b.Loop(); posted++ {
			if wr.Flags = 0; posted%64 == 0 {
				wr.Flags = verbs.Signaled
				out++
			}
			check(b, x.qp.PostSend(wr))
			for out > 8 {
				out -= x.sendCQ.Poll(wcs[:])
			}
		}
	})
	b.Run("TCP", func(b *testing.B) {
		x, y := wires[0].pair(b)
		go func() {
			_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{y}, make([]byte, 256<<10))
		}()
		msg := make([]byte, 64)
		b.SetBytes(64)
		b.ReportAllocs()
		for b.Loop() {
			_, err := x.Write(msg)
			check(b, err)
		}
	})
}
