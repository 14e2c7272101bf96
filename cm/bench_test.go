package cm_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// BenchmarkStream moves messages one way between two queue pairs of this
// process, in batches, over TCP on the loopback. Module bench/ compares with
// plain TCP; this one is for profiles.
func BenchmarkStream(b *testing.B) {
	for _, op := range []verbs.Op{verbs.OpWrite, verbs.OpRead, verbs.OpSend} {
		for _, crc := range []bool{true, false} {
			for _, size := range []int{64, 4 << 10, 64 << 10, 1 << 20} {
				b.Run(fmt.Sprintf("%v/crc=%v/%d", op, crc, size), func(b *testing.B) { stream(b, op, crc, size) })
			}
		}
	}
}

// BenchmarkConnect is a connection over TCP on the loopback from beginning to
// end: queue pairs of the default sizes made, MPA's start-up, and their end by a
// reset, which leaves the system nothing to remember.
func BenchmarkConnect(b *testing.B) {
	ctx := b.Context()
	x, y := newEnd(b, verbs.QPConfig{}), newEnd(b, verbs.QPConfig{})
	ln, err := cm.Listen(ctx, y.rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{})
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	addr, accepted := ln.Addr().String(), make(chan error)
	queuePair := func(e *end) *verbs.QP {
		qp, err := e.pd.CreateQP(verbs.QPConfig{SendCQ: e.cq, RecvCQ: e.cq})
		if err != nil {
			b.Fatal(err)
		}
		return qp
	}
	b.ReportAllocs()
	for b.Loop() {
		active, passive := queuePair(x), queuePair(y)
		go func() {
			req, err := ln.Accept(ctx)
			if err == nil {
				_, err = req.Accept(ctx, passive, cm.Params{})
			}
			accepted <- err
		}()
		_, err := cm.Dial(ctx, active, "tcp", addr, cm.Params{})
		if err := errors.Join(err, <-accepted); err != nil {
			b.Fatal(err)
		}
		active.Abort()
		passive.Abort()
		if err := errors.Join(active.Destroy(), passive.Destroy()); err != nil {
			b.Fatal(err)
		}
	}
}

func stream(b *testing.B, op verbs.Op, crc bool, size int) {
	const depth = 256
	cfg := verbs.QPConfig{SendDepth: 2 * depth, RecvDepth: 4 * depth, IRD: 32, ORD: 32, PauseOnEmptyRQ: true}
	x, y := newEnd(b, cfg), newEnd(b, cfg)
	p := cm.Params{MPA: mpa.Config{NoCRC: !crc}}
	recv := make([]verbs.RecvWR, 2*depth)
	for i := range recv {
		recv[i].SGL = []verbs.SGE{y.mr.SGE(0, size)}
	}
	if _, err := y.qp.PostRecvs(recv); err != nil {
		b.Fatal(err)
	}
	connect(b, x, y, p, p)
	done := make(chan struct{})
	if op == verbs.OpSend {
		go func() { // the receiver keeps its queue filled
			defer close(done)
			var wcs [64]verbs.WC
			for y.cq.Wait(b.Context()) == nil {
				n := y.cq.Poll(wcs[:])
				for _, wc := range wcs[:n] {
					if wc.Status != verbs.Success {
						return
					}
				}
				if _, err := y.qp.PostRecvs(recv[:n]); err != nil {
					return
				}
			}
		}()
	} else {
		close(done)
	}
	batch := max(1, min(depth, 256<<10/size))
	wrs := make([]verbs.SendWR, batch)
	for i := range wrs {
		wrs[i] = verbs.SendWR{Op: op, SGL: []verbs.SGE{x.mr.SGE(0, size)}, Remote: y.mr.Remote(0)}
	}
	wrs[batch-1].Flags = verbs.Signaled
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	ctx := b.Context()
	var wc [1]verbs.WC
	next := func() {
		if err := x.cq.Wait(ctx); err != nil {
			b.Fatal(err)
		}
		if x.cq.Poll(wc[:]); wc[0].Status != verbs.Success {
			b.Fatal(wc[0].Status, x.qp.Err(), y.qp.Err())
		}
	}
	pending := 0
	for sent := 0; sent < b.N; {
		if pending < 2 || batch*4 <= depth && pending < 8 {
			n, err := x.qp.PostSends(wrs)
			if err != nil {
				b.Fatal(n, err)
			}
			sent += batch
			pending++
			continue
		}
		next()
		pending--
	}
	for ; pending > 0; pending-- {
		next()
	}
	b.StopTimer()
	x.qp.Abort()
	y.qp.Abort()
	<-done
}
