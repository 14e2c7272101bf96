package verbs_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// An endpoint is what each example has at either end of a connection.
type endpoint struct {
	cq  *verbs.CQ
	pd  *verbs.PD
	qp  *verbs.QP
	mr  *verbs.MR
	buf []byte // the region's
}

// examplePair connects two endpoints of one RNIC over loopback, each with 64
// octets of memory. The first one dials, and so is the one to send first.
func examplePair() (client, server *endpoint, done func()) {
	return examplePairOf(verbs.QPConfig{IRD: 4, ORD: 4, Extensions: true, BindWindows: true})
}

// examplePairOf does so with queue pairs as cfg says.
func examplePairOf(cfg verbs.QPConfig) (client, server *endpoint, done func()) {
	rnic, err := verbs.Open(verbs.Config{})
	ok(err)
	endpoints := [2]*endpoint{}
	for i := range endpoints {
		e := &endpoint{buf: make([]byte, 64)}
		e.pd, err = rnic.AllocPD()
		ok(err)
		e.cq, err = rnic.CreateCQ(verbs.CQConfig{Entries: 64})
		ok(err)
		e.mr, err = e.pd.Register(e.buf, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic|verbs.BindWindow)
		ok(err)
		cfg.SendCQ, cfg.RecvCQ = e.cq, e.cq
		e.qp, err = e.pd.CreateQP(cfg)
		ok(err)
		endpoints[i] = e
	}
	ctx := context.Background()
	ln, err := cm.Listen(ctx, rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{})
	ok(err)
	accepted := make(chan error)
	go func() {
		req, err := ln.Accept(ctx)
		if err == nil {
			_, err = req.Accept(ctx, endpoints[1].qp, cm.Params{})
		}
		accepted <- err
	}()
	_, err = cm.Dial(ctx, endpoints[0].qp, "tcp", ln.Addr().String(), cm.Params{})
	ok(errors.Join(err, <-accepted, ln.Close()))
	return endpoints[0], endpoints[1], func() { ok(rnic.Close()) }
}

// completion waits for the next one.
func (e *endpoint) completion() verbs.WC {
	var wc [1]verbs.WC
	for e.cq.Poll(wc[:]) == 0 {
		ok(e.cq.Wait(context.Background()))
	}
	return wc[0]
}

func ok(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A message there and one back.
func Example_pingPong() {
	client, server, done := examplePair()
	defer done()

	// Receives are posted before the messages can come.
	ok(server.qp.PostRecv(verbs.RecvWR{ID: 1, SGL: []verbs.SGE{server.mr.SGE(0, 32)}}))
	ok(client.qp.PostRecv(verbs.RecvWR{ID: 2, SGL: []verbs.SGE{client.mr.SGE(0, 32)}}))

	n := copy(client.buf[32:], "ping")
	ok(client.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{client.mr.SGE(32, n)}}))
	wc := server.completion()
	fmt.Printf("%v %d: %s\n", wc.Op, wc.ID, server.buf[:wc.Bytes])

	n = copy(server.buf[32:], "pong")
	ok(server.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{server.mr.SGE(32, n)}}))
	wc = client.completion()
	fmt.Printf("%v %d: %s\n", wc.Op, wc.ID, client.buf[:wc.Bytes])
	// Output:
	// Receive 1: ping
	// Receive 2: pong
}

// Octets are written into the peer's memory. When the message behind them arrives they are
// in place.
func ExampleQP_PostSends() {
	client, server, done := examplePair()
	defer done()
	ok(server.qp.PostRecv(verbs.RecvWR{ID: 1}))

	n := copy(client.buf, "written from afar")
	_, err := client.qp.PostSends([]verbs.SendWR{
		{Op: verbs.OpWrite, SGL: []verbs.SGE{client.mr.SGE(0, n)}, Remote: server.mr.Remote(10)},
		{ID: 7, Op: verbs.OpSend, Flags: verbs.Signaled},
	})
	ok(err)

	server.completion() // without it nobody may look
	fmt.Printf("%s\n", server.buf[10:10+n])
	fmt.Println(client.completion().ID, "and all before it are done")
	// Output:
	// written from afar
	// 7 and all before it are done
}

// The peer's memory is read without involving its program.
func ExampleQP_PostSend_read() {
	client, server, done := examplePair()
	defer done()
	copy(server.buf, "there to be read")
	ok(client.qp.PostSend(verbs.SendWR{
		ID: 1, Op: verbs.OpRead, Flags: verbs.Signaled,
		SGL:    []verbs.SGE{client.mr.SGE(0, 16)}, // where to
		Remote: server.mr.Remote(0),               // where from
	}))
	fmt.Println(client.completion().Status.String())
	fmt.Printf("%s\n", client.buf[:16])
	// Output:
	// success
	// there to be read
}

// Two atomic operations on a counter in the peer's memory.
func ExampleAtomic() {
	client, server, done := examplePair()
	defer done()
	binary.NativeEndian.PutUint64(server.buf, 40)
	add := verbs.SendWR{
		Op: verbs.OpFetchAdd, Flags: verbs.Signaled,
		SGL: []verbs.SGE{client.mr.SGE(0, 8)}, Remote: server.mr.Remote(0),
		Atomic: verbs.Atomic{Data: 2},
	}
	ok(client.qp.PostSend(add))
	client.completion()
	fmt.Println("found", binary.NativeEndian.Uint64(client.buf))

	all := ^uint64(0)
	swap := add
	swap.Op, swap.Atomic = verbs.OpCmpSwap, verbs.Atomic{Compare: 42, CompareMask: all, Data: 7, Mask: all}
	ok(client.qp.PostSend(swap))
	client.completion()
	fmt.Println("found", binary.NativeEndian.Uint64(client.buf))
	fmt.Println("left", binary.NativeEndian.Uint64(server.buf))
	// Output:
	// found 40
	// found 42
	// left 7
}

// Eight octets in the completion itself.
func ExampleQP_PostSend_immediate() {
	client, server, done := examplePair()
	defer done()
	ok(server.qp.PostRecv(verbs.RecvWR{ID: 3}))
	ok(client.qp.PostSend(verbs.SendWR{Op: verbs.OpImmediateSE, Immediate: [8]byte{'i', 'm', 'm', 'e', 'd', '.'}}))
	wc := server.completion()
	fmt.Printf("%v %d: %s, solicited %v\n", wc.Op, wc.ID, wc.Immediate[:6], wc.Solicited)
	// Output: Receive of Immediate Data 3: immed., solicited true
}

// The peer invalidates the STag that was advertised to it, with its last message.
func ExampleWC() {
	client, server, done := examplePair()
	defer done()
	lent, err := server.pd.Register(make([]byte, 100), verbs.LocalWrite|verbs.RemoteWrite)
	ok(err)
	ok(server.qp.PostRecv(verbs.RecvWR{}))
	ok(client.qp.PostSend(verbs.SendWR{Op: verbs.OpSendInvalidate, Invalidate: lent.STag()}))
	wc := server.completion()
	fmt.Println(wc.HasInvalidated, wc.Invalidated == lent.STag(), lent.Valid())
	// Output: true true false
}

// One completion queue serves many queue pairs: each completion says whose it is.
func ExampleRNIC_CreateCQ() {
	rnic, err := verbs.Open(verbs.Config{})
	ok(err)
	defer func() { ok(rnic.Close()) }()
	pd, err := rnic.AllocPD()
	ok(err)
	cq, err := rnic.CreateCQ(verbs.CQConfig{Entries: 8})
	ok(err)
	for range 2 {
		qp, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq})
		ok(err)
		ok(qp.PostRecv(verbs.RecvWR{ID: uint64(qp.Num()) * 100}))
		qp.Abort() // flushes what was posted
	}
	var wcs [8]verbs.WC
	for _, wc := range wcs[:cq.Poll(wcs[:])] {
		fmt.Println("queue pair", wc.QP.Num(), "request", wc.ID, wc.Status.String())
	}
	// Output:
	// queue pair 1 request 100 flushed
	// queue pair 2 request 200 flushed
}

// A handler instead of a wait: poll, request a notification, and poll again, so that no
// completion in between is missed.
func ExampleCQ_RequestNotify() {
	_, server, done := examplePair()
	defer done()
	called := make(chan struct{}, 1)
	rnic := server.qp.RNIC()
	handler, err := rnic.SetCompletionHandler(func(*verbs.CQ) { called <- struct{}{} }, 0)
	ok(err)
	cq, err := rnic.CreateCQ(verbs.CQConfig{Entries: 8, Handler: handler})
	ok(err)
	qp, err := server.pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq})
	ok(err)
	var wc [1]verbs.WC
	poll := func() {
		for cq.Poll(wc[:]) > 0 {
			fmt.Println("request", wc[0].ID, wc[0].Status.String())
		}
	}
	poll()
	ok(cq.RequestNotify(verbs.NotifyNext))
	poll()
	ok(qp.PostRecv(verbs.RecvWR{ID: 5}))
	qp.Abort()
	<-called
	poll()
	// Output: request 5 flushed
}

// What went wrong is in three places: the completion of the request, the error
// of the queue pair, and at the peer its event.
func ExampleQP_Err() {
	client, server, done := examplePair()
	defer done()
	told := make(chan verbs.Event, 2)
	ok(server.qp.RNIC().SetAsyncHandler(func(e verbs.Event) {
		if e.QP == server.qp {
			told <- e
		}
	}))
	beyond := server.mr.Remote(len(server.buf) - 3)
	ok(client.qp.PostSend(verbs.SendWR{ID: 1, Op: verbs.OpRead, SGL: []verbs.SGE{client.mr.SGE(0, 4)}, Remote: beyond}))
	fmt.Println(client.completion().Status.String())
	fmt.Println((<-told).ID)
	_, err := client.qp.WaitState(context.Background(), verbs.Error)
	ok(err)
	var term *rdmap.TerminateError
	if errors.As(client.qp.Err(), &term) {
		fmt.Printf("terminated by the peer: %v, %d/%d/%02x\n", term.Remote, term.Layer, term.EType, term.Code)
	}
	// Output:
	// remote termination error
	// IRRQ Protection Error: tagged base and bounds violation
	// terminated by the peer: true, 0/1/01
}

// A server takes completions as they come until it is told to stop. What it has not
// taken by then stays in the queue.
func ExampleCQ_Completions() {
	client, server, done := examplePair()
	defer done()
	for id := range uint64(3) {
		ok(server.qp.PostRecv(verbs.RecvWR{ID: id, SGL: []verbs.SGE{server.mr.SGE(0, 10)}}))
	}
	for _, n := range []int{5, 7, 9} {
		ok(client.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{client.mr.SGE(0, n)}}))
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	for wc := range server.cq.Completions(ctx) {
		ok(wc.Err())
		fmt.Println("message", wc.ID, "of", wc.Bytes, "octets")
		if wc.ID == 2 {
			stop()
		}
	}
	fmt.Println("the end:", context.Cause(ctx))
	// Output:
	// message 0 of 5 octets
	// message 1 of 7 octets
	// message 2 of 9 octets
	// the end: context canceled
}

// A completion in error says what was wrong, and those behind it why they were
// flushed. Each is its status to errors.Is.
func ExampleWC_Err() {
	client, server, done := examplePair()
	defer done()
	sink := client.mr.SGE(0, 4)
	ok(client.qp.PostSend(verbs.SendWR{ID: 1, Op: verbs.OpWrite, SGL: []verbs.SGE{sink}})) // and no Remote
	ok(client.qp.PostSend(verbs.SendWR{ID: 2, Op: verbs.OpRead, SGL: []verbs.SGE{sink}, Remote: server.mr.Remote(0)}))
	for range 2 {
		wc := client.completion()
		err := wc.Err()
		fmt.Println(errors.Is(err, wc.Status), err)
	}
	// Output:
	// true RDMA Write: invalid STag: SendWR.Remote.STag is 0: set it to the STag that the peer advertised
	// true RDMA Read: flushed: the stream ended because this side terminated the stream: work request ended: invalid STag: SendWR.Remote.STag is 0: set it to the STag that the peer advertised (0/0/00)
}

// A queue pair is closed, and connected again.
func ExampleQP_Close() {
	client, server, done := examplePair()
	defer done()
	ctx := context.Background()
	ok(client.qp.Close(ctx))
	_, err := server.qp.WaitState(ctx, verbs.Idle)
	ok(err)
	fmt.Println(client.qp.State(), server.qp.State())
	// Output: Idle Idle
}

// A verb that is refused says which limit, and changes nothing.
func ExampleOpen() {
	rnic, err := verbs.Open(verbs.Config{Name: "left", Limits: verbs.Limits{PDs: 1}})
	ok(err)
	a, err := rnic.Query()
	ok(err)
	fmt.Println(a.Name, a.Limits.PDs)
	_, err = rnic.AllocPD()
	ok(err)
	_, err = rnic.AllocPD()
	fmt.Println(errors.Is(err, verbs.ErrResources))
	fmt.Println(err)
	fmt.Println(rnic.Usage().PDs)
	ok(rnic.Close())
	// Output:
	// left 1
	// true
	// verbs: allocate PD: insufficient resources to complete the request: the limit is 1 protection domains (Limits.PDs)
	// 1
}

// Memory has a name, a range of offsets and rights, until it is taken back.
func ExamplePD_RegisterMR() {
	rnic, err := verbs.Open(verbs.Config{})
	ok(err)
	defer func() { ok(rnic.Close()) }()
	pd, err := rnic.AllocPD()
	ok(err)
	mr, err := pd.RegisterMR(verbs.MRConfig{
		Buf: make([]byte, 4096), Access: verbs.LocalRead | verbs.RemoteRead, Key: 0x42, VA: 0x10000,
	})
	ok(err)
	fmt.Printf("key %#x, %d octets from %#x\n", uint8(mr.STag()), mr.Len(), mr.Base())
	fmt.Printf("element %#x, %d octets\n", mr.SGE(16, 8).TO, mr.SGE(16, 8).Length)
	ok(mr.Deallocate())
	fmt.Println(mr.Valid())
	ok(pd.Dealloc())
	// Output:
	// key 0x42, 4096 octets from 0x10000
	// element 0x10010, 8 octets
	// false
}
