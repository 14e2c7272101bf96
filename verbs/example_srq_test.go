package verbs_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// sharingServer connects n clients to queue pairs that share srq.
func sharingServer(srq *verbs.SRQ, cq *verbs.CQ, n int) (clients []*verbs.QP) {
	ctx := context.Background()
	pd := srq.PD()
	ln, err := cm.Listen(ctx, pd.RNIC(), "tcp", "127.0.0.1:0", cm.ListenConfig{})
	ok(err)
	for range n {
		server, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SRQ: srq})
		ok(err)
		accepted := make(chan error)
		go func() {
			req, err := ln.Accept(ctx)
			if err == nil {
				_, err = req.Accept(ctx, server, cm.Params{})
			}
			accepted <- err
		}()
		out, err := pd.RNIC().CreateCQ(verbs.CQConfig{Entries: 16})
		ok(err)
		client, err := pd.CreateQP(verbs.QPConfig{SendCQ: out, RecvCQ: out})
		ok(err)
		_, err = cm.Dial(ctx, client, "tcp", ln.Addr().String(), cm.Params{})
		ok(errors.Join(err, <-accepted))
		clients = append(clients, client)
	}
	ok(ln.Close())
	return clients
}

// Three connections share four receives: a message of any of them takes the next one.
func ExamplePD_CreateSRQ() {
	rnic, err := verbs.Open(verbs.Config{})
	ok(err)
	defer func() { ok(rnic.Close()) }()
	pd, err := rnic.AllocPD()
	ok(err)
	cq, err := rnic.CreateCQ(verbs.CQConfig{Entries: 16})
	ok(err)
	buf := make([]byte, 4*64)
	mr, err := pd.Register(buf, verbs.LocalRead|verbs.LocalWrite)
	ok(err)

	srq, err := pd.CreateSRQ(verbs.SRQConfig{WRs: 4, SGEs: 1})
	ok(err)
	for i := range 4 {
		ok(srq.PostRecv(verbs.RecvWR{ID: uint64(i), SGL: []verbs.SGE{mr.SGE(i*64, 64)}}))
	}
	words, err := pd.Register([]byte("first, second and third"), verbs.LocalRead)
	ok(err)
	for i, client := range sharingServer(srq, cq, 3) {
		part := [...]verbs.SGE{words.SGE(0, 5), words.SGE(7, 6), words.SGE(18, 5)}[i]
		ok(client.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{part}}))
		ok(cq.Wait(context.Background()))
		var wc [1]verbs.WC
		cq.Poll(wc[:])
		fmt.Printf("receive %d: %s\n", wc[0].ID, buf[wc[0].ID*64:][:wc[0].Bytes])
	}
	a, err := srq.Query()
	ok(err)
	fmt.Println("left:", a.Posted, "used by:", a.QPs)
	// Output:
	// receive 0: first
	// receive 1: second
	// receive 2: third
	// left: 1 used by: 3
}

// An event reports that few receives are left; the handler posts more and arms the limit
// again.
func ExampleSRQ_Modify() {
	rnic, err := verbs.Open(verbs.Config{})
	ok(err)
	defer func() { ok(rnic.Close()) }()
	pd, err := rnic.AllocPD()
	ok(err)
	cq, err := rnic.CreateCQ(verbs.CQConfig{Entries: 16})
	ok(err)
	srq, err := pd.CreateSRQ(verbs.SRQConfig{WRs: 4, Limit: 2})
	ok(err)
	refilled := make(chan int)
	ok(rnic.SetAsyncHandler(func(e verbs.Event) {
		if e.ID != verbs.EventSRQLimit {
			return
		}
		wrs := 8
		_, err := e.SRQ.Modify(verbs.SRQModify{WRs: &wrs, Arm: true})
		ok(err)
		n, _ := e.SRQ.PostRecvs(make([]verbs.RecvWR, 8)) // as many as there is room for
		refilled <- n
	}))
	_, err = srq.PostRecvs(make([]verbs.RecvWR, 4)) // for messages of no octets
	ok(err)
	client := sharingServer(srq, cq, 1)[0]
	for range 3 {
		ok(client.PostSend(verbs.SendWR{Op: verbs.OpSend}))
	}
	fmt.Println("posted", <-refilled, "more")
	// Output: posted 4 more
}

// Completions name the queue pair, which shows how much of a shared queue a peer uses. A
// peer that uses too much is disconnected.
func ExampleSRQ() {
	rnic, err := verbs.Open(verbs.Config{})
	ok(err)
	defer func() { ok(rnic.Close()) }()
	pd, err := rnic.AllocPD()
	ok(err)
	cq, err := rnic.CreateCQ(verbs.CQConfig{Entries: 16})
	ok(err)
	srq, err := pd.CreateSRQ(verbs.SRQConfig{WRs: 8})
	ok(err)
	_, err = srq.PostRecvs(make([]verbs.RecvWR, 8))
	ok(err)
	clients := sharingServer(srq, cq, 2)
	for i, n := range []int{1, 5} {
		for range n {
			ok(clients[i].PostSend(verbs.SendWR{Op: verbs.OpSend}))
		}
	}
	taken := map[*verbs.QP]int{}
	for got := 0; got < 6; {
		ok(cq.Wait(context.Background()))
		var wcs [8]verbs.WC
		n := cq.Poll(wcs[:])
		for _, wc := range wcs[:n] {
			taken[wc.QP]++
		}
		got += n
	}
	for qp, n := range taken {
		if n > 4 {
			fmt.Println("one has taken", n)
			qp.Abort()
		}
	}
	// Output: one has taken 5
}
