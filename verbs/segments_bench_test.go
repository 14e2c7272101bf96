package verbs_test

import (
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// BenchmarkSegments is messages of 1 MiB in FPDUs for an MTU of 1500, several under way. With
// -cpu 1 its time is the processor time of both ends.
func BenchmarkSegments(b *testing.B) {
	const size, depth = 1 << 20, 4
	for _, op := range []verbs.Op{verbs.OpWrite} {
		b.Run(op.String(), func(b *testing.B) {
			x, y := newSide(b, reads), newSide(b, reads)
			wires[0].connect(b, x.qp, y.qp, cm.Params{MPA: mpa.Config{MaxULPDU: 1442}})
			wr := x.write(1, y, 0, size)
			wr.Op = op
			b.SetBytes(size)
			b.ReportAllocs()
			inFlight := 0
			for b.Loop() {
				if inFlight == depth {
					check(b, take(b, x.sendCQ, 1)[0].Err())
					inFlight--
				}
				if op == verbs.OpSend {
					y.receives(1, 1, size)
				}
				x.post(wr)
				inFlight++
			}
			for _, wc := range take(b, x.sendCQ, inFlight) {
				check(b, wc.Err())
			}
		})
	}
}
