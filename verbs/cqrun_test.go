package verbs_test

import (
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// Of short Sends that complete their receives together, as many as fit into the CQ can be polled. The
// others are lost, which ends the queue pair.
func TestShortSendsThatOverflowACQ(t *testing.T) {
	for _, entries := range []int{1, 5, 40} {
		a, b := newSide(t, verbs.QPConfig{SendDepth: 128}), newSide(t, verbs.QPConfig{})
		cq := must(b.rnic.CreateCQ(verbs.CQConfig{Entries: entries}))(t)
		b.qp = b.newQP(verbs.QPConfig{RecvDepth: 128, RecvCQ: cq})
		wires[0].connect(t, a.qp, b.qp, cm.Params{})
		b.receives(0, 100, 8)
		var wrs []verbs.SendWR
		for i := range 100 {
			wrs = append(wrs, a.send(uint64(i), 8*i, 8))
		}
		a.post(wrs...)
		reach(t, b.qp, verbs.Error)
		for i, wc := range take(t, cq, entries) {
			if wc.ID != uint64(i) || wc.Status != verbs.Success {
				t.Errorf("completion %d of %d is of %d, %v", i, entries, wc.ID, wc.Status)
			}
		}
		if st := cq.Stats(); st.Lost != 100-uint64(entries) || st.Overflows != 1 || st.MostUsed != entries {
			t.Errorf("%d entries: %+v", entries, st)
		}
	}
}

// Solicited Sends that arrive together fulfil one request for notification, and others none.
func TestShortSolicitedSendsNotifyOnce(t *testing.T) {
	a, b := newSide(t, verbs.QPConfig{SendDepth: 128}), newSide(t, verbs.QPConfig{})
	called := make(chan struct{}, 100)
	id := must(b.rnic.SetCompletionHandler(func(*verbs.CQ) { called <- struct{}{} }, 0))(t)
	cq := must(b.rnic.CreateCQ(verbs.CQConfig{Entries: 256, Handler: id}))(t)
	b.qp = b.newQP(verbs.QPConfig{RecvDepth: 128, RecvCQ: cq})
	wires[0].connect(t, a.qp, b.qp, cm.Params{})
	b.receives(0, 100, 8)
	check(t, cq.RequestNotify(verbs.NotifySolicited))
	var wrs []verbs.SendWR
	for i := range 100 {
		wr := a.send(uint64(i), 8*i, 8)
		if i >= 50 {
			wr.Op = verbs.OpSendSE
		}
		wrs = append(wrs, wr)
	}
	a.post(wrs[:50]...)
	take(t, cq, 50)
	if n := cq.Stats().Notifications; n != 0 {
		t.Errorf("%d notifications of Sends that do not ask for one", n)
	}
	a.post(wrs[50:]...)
	for i, wc := range take(t, cq, 50) {
		if !wc.Solicited || wc.ID != uint64(50+i) {
			t.Errorf("completion %d is %+v", i, wc)
		}
	}
	<-called
	if n := cq.Stats().Notifications; n != 1 || len(called) > 0 {
		t.Errorf("%d notifications, expected one", n)
	}
}

// Completions of two queue pairs at one CQ free the slots of each.
func TestCompletionsOfSeveralQueuesFreeTheirSlots(t *testing.T) {
	a, b := newSide(t, verbs.QPConfig{}), newSide(t, verbs.QPConfig{})
	cq := must(b.rnic.CreateCQ(verbs.CQConfig{Entries: 256}))(t)
	var from, to [2]*verbs.QP
	for i := range 2 {
		from[i] = a.newQP(verbs.QPConfig{SendDepth: 8})
		to[i] = b.newQP(verbs.QPConfig{SendDepth: 8, RecvDepth: 8, RecvCQ: cq, SendCQ: cq})
		wires[0].connect(t, from[i], to[i], cm.Params{})
	}
	for round := range 20 {
		for i := range 2 {
			own := i << 16 // memory of this queue pair
			var wrs []verbs.SendWR
			for at := range 8 {
				check(t, to[i].PostRecv(verbs.RecvWR{ID: uint64(at), SGL: []verbs.SGE{b.mr.SGE(own+8*at, 8)}}))
				wrs = append(wrs, a.send(uint64(at), own+8*at, 8))
			}
			must(from[i].PostSends(wrs))(t)
			for at := range 8 {
				check(t, to[i].PostSend(b.write(uint64(at), a, own+1024+8*at, 8)))
			}
		}
		if n := len(take(t, cq, 32)); n != 32 {
			t.Fatalf("round %d: %d completions", round, n)
		}
		take(t, a.sendCQ, 16)
	}
}
