package verbs_test

import (
	"context"
	"fmt"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// A consumer's objects, from the first to the last: the RNIC and its handlers, a
// domain, completion queues, queue pairs, memory, the stream; and back. Each verb
// succeeds, because nothing is taken away that something else stands on.
//
// Claims: V-5.1.1.1-1 V-5.1.1.2-1
func Example_lifetime() {
	ctx := context.Background()
	rnic, err := verbs.Open(verbs.Config{})
	ok(err)
	ok(rnic.SetAsyncHandler(func(verbs.Event) {}))
	pd, err := rnic.AllocPD()
	ok(err)
	handler, err := rnic.SetCompletionHandler(func(*verbs.CQ) {}, 0)
	ok(err)
	cq, err := rnic.CreateCQ(verbs.CQConfig{Entries: 64, Handler: handler})
	ok(err)
	srq, err := pd.CreateSRQ(verbs.SRQConfig{WRs: 8})
	ok(err)
	cfg := verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SRQ: srq, BindWindows: true, IRD: 1, ORD: 1}
	a, err := pd.CreateQP(cfg)
	ok(err)
	b, err := pd.CreateQP(cfg)
	ok(err)
	buf := make([]byte, 64)
	mr, err := pd.Register(buf, verbs.LocalRead|verbs.LocalWrite|verbs.BindWindow)
	ok(err)
	stag, err := pd.AllocMR(1, true)
	ok(err)
	mw, err := pd.AllocMW()
	ok(err)
	ok(srq.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{mr.SGE(0, 32)}}))
	ln, err := cm.Listen(ctx, rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{})
	ok(err)
	accepted := make(chan error)
	go func() {
		req, err := ln.Accept(ctx)
		if err == nil {
			_, err = req.Accept(ctx, b, cm.Params{})
		}
		accepted <- err
	}()
	_, err = cm.Dial(ctx, a, "tcp", ln.Addr().String(), cm.Params{})
	ok(err)
	ok(<-accepted)

	binding := mw.Binding(mr, 0, 32, verbs.RemoteWrite)
	n := copy(buf[32:], "a message")
	_, err = a.PostSends([]verbs.SendWR{
		{Op: verbs.OpBind, Bind: &binding},
		{Op: verbs.OpSend, SGL: []verbs.SGE{mr.SGE(32, n)}},
		{Op: verbs.OpInvalidate, Flags: verbs.Signaled, Invalidate: binding.Window},
	})
	ok(err)
	var wc [1]verbs.WC
	for range 2 {
		for cq.Poll(wc[:]) == 0 {
			ok(cq.Wait(ctx))
		}
		ok(wc[0].Status.Err())
	}
	fmt.Printf("%s\n", buf[:n])

	closed := make(chan error)
	go func() { closed <- b.Close(ctx) }()
	ok(a.Close(ctx))
	ok(<-closed)
	fmt.Println(a.State(), b.State())
	ok(mw.Deallocate())
	ok(stag.Deallocate())
	ok(mr.Deallocate())
	ok(a.Destroy())
	ok(b.Destroy())
	ok(srq.Destroy())
	ok(cq.Destroy())
	ok(pd.Dealloc())
	ok(ln.Close())
	ok(rnic.Close())
	// Output:
	// a message
	// Idle Idle
}
