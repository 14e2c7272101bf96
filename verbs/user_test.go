package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// A Non-Privileged Mode consumer has four verbs (PostSQ, PostRQ, Poll and
// Request Completion Notification, in the forms that the objects themselves have),
// and nothing that leads from a view to an object. A privileged one has them all:
// every verb is a method of what Open returned, or of what those methods return.
//
// Claims: V-9.1-2 V-9.1-3 V-9.1-7
// Claims: V-7.5-1
// Claims: V-9.1-1 V-10-4 V-10-5
func TestAUsersViewHasFourVerbsAndNoWayOut(t *testing.T) {
	methods := func(of reflect.Type) (names []string) {
		for i := range of.NumMethod() {
			names = append(names, of.Method(i).Name)
		}
		return names
	}
	for view, want := range map[reflect.Type][]string{
		reflect.TypeFor[*verbs.UserQP]():  {"Num", "PostRecv", "PostRecvs", "PostSend", "PostSends"},
		reflect.TypeFor[*verbs.UserSRQ](): {"PostRecv", "PostRecvs"},
		reflect.TypeFor[*verbs.UserCQ]():  {"Completions", "Poll", "PollOne", "RequestNotify", "Wait"},
	} {
		if got := methods(view); !slices.Equal(got, want) {
			t.Errorf("%v has %v, expected %v", view, got, want)
		}
		for i := range view.Elem().NumField() {
			if f := view.Elem().Field(i); f.IsExported() {
				t.Errorf("%v shows its field %s", view, f.Name)
			}
		}
		for i := range view.NumMethod() {
			m := view.Method(i)
			for j := range m.Type.NumOut() {
				out := m.Type.Out(j)
				if out == reflect.TypeFor[iter.Seq[verbs.WC]]() {
					continue // of those that Poll gives
				}
				if out.Kind() == reflect.Pointer || out.Kind() == reflect.Func {
					t.Errorf("%v.%s gives out a %v", view, m.Name, out)
				}
			}
		}
	}
	// The 31 verbs, with those for QP and S-RQ or MR and MW apart where Go has
	// them so.
	have := map[string]bool{"Open": true} // this file would not compile without
	for _, object := range []reflect.Type{
		reflect.TypeFor[*verbs.RNIC](), reflect.TypeFor[*verbs.PD](), reflect.TypeFor[*verbs.CQ](), reflect.TypeFor[*verbs.QP](),
		reflect.TypeFor[*verbs.SRQ](), reflect.TypeFor[*verbs.MR](), reflect.TypeFor[*verbs.MW](),
	} {
		for _, name := range methods(object) {
			have[object.Elem().Name()+"."+name] = true
		}
	}
	for _, verb := range strings.Fields(`Open RNIC.Query RNIC.Close RNIC.AllocPD PD.Dealloc
		RNIC.CreateCQ CQ.Query CQ.Resize CQ.Destroy PD.CreateSRQ SRQ.Query SRQ.Modify SRQ.Destroy
		PD.CreateQP QP.Query QP.Modify QP.Destroy
		PD.AllocMR PD.RegisterMR MR.Query MR.Deallocate MR.Reregister MR.RegisterShared PD.AllocMW MW.Query MW.Deallocate
		QP.PostSends QP.PostRecvs SRQ.PostRecvs CQ.PollOne CQ.RequestNotify RNIC.SetCompletionHandler RNIC.SetAsyncHandler`) {
		if !have[verb] {
			t.Errorf("there is no %s", verb)
		}
	}
}

// A user sends, receives, polls and is notified by views alone.
//
// Claims: V-9.3.2.1-13
// Claims: V-9.3.2.1-3
func TestUsersPostAndPollByTheirViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newSide(t, reads), newSide(t, reads)
		rung := newBell()
		cq := must(b.rnic.CreateCQ(verbs.CQConfig{Entries: 10, Handler: b.handler(rung.ring)}))(t)
		srq := must(b.pd.CreateSRQ(verbs.SRQConfig{WRs: 4}))(t)
		b.qp = b.newQP(verbs.QPConfig{RecvCQ: cq, IRD: 4, ORD: 4})
		shared := b.newQP(verbs.QPConfig{RecvCQ: cq, SRQ: srq})
		ax, bx := a.qp, a.newQP(verbs.QPConfig{})
		x, y := iwarptest.Pipe()
		join(t, ax, b.qp, x, y, cm.Params{})
		x, y = iwarptest.Pipe()
		join(t, bx, shared, x, y, cm.Params{})
		qp, sq := must(b.qp.User())(t), must(srq.User())(t)
		ucq, out := must(cq.User())(t), must(b.sendCQ.User())(t)
		if qp.Num() != b.qp.Num() {
			t.Errorf("the view is of queue pair %d, expected %d", qp.Num(), b.qp.Num())
		}
		sge := []verbs.SGE{b.mr.SGE(0, 16)}
		check(t, qp.PostRecv(verbs.RecvWR{ID: 1, SGL: sge}))
		if n, err := qp.PostRecvs([]verbs.RecvWR{{ID: 2, SGL: sge}, {ID: 3, SGL: sge}}); n != 2 || err != nil {
			t.Errorf("%d receives were posted (%v)", n, err)
		}
		check(t, sq.PostRecv(verbs.RecvWR{ID: 4, SGL: sge}))
		if n, err := sq.PostRecvs([]verbs.RecvWR{{ID: 5, SGL: sge}}); n != 1 || err != nil {
			t.Errorf("%d receives were posted (%v)", n, err)
		}
		check(t, ucq.RequestNotify(verbs.NotifyNext))
		check(t, ax.PostSend(a.send(0, 0, 16)))
		check(t, ucq.Wait(t.Context()))
		check(t, bx.PostSend(a.send(0, 0, 16)))
		if rung.count() != 1 {
			t.Errorf("the handler was called %d times, expected once", rung.count())
		}
		var wcs [4]verbs.WC
		wcs[0] = must(ucq.PollOne())(t)
		if n := ucq.Poll(wcs[1:]); n != 1 {
			t.Fatalf("%d more completions, expected 1", n)
		}
		for i, want := range []struct {
			id uint64
			qp *verbs.QP
		}{{1, b.qp}, {4, shared}} {
			if wc := wcs[i]; wc.ID != want.id || wc.QPNum != want.qp.Num() || wc.QP != nil || wc.Status != verbs.Success {
				t.Errorf("completion %d is of %d, queue pair %d (%p): %v", i, wc.ID, wc.QPNum, wc.QP, wc.Status)
			}
		}
		check(t, qp.PostSend(b.write(6, a, 0, 10)))
		if n, err := qp.PostSends([]verbs.SendWR{b.write(7, a, 0, 10), b.read(8, a, 0, 10)}); n != 2 || err != nil {
			t.Errorf("%d requests were posted (%v)", n, err)
		}
		quiesce()
		if n := out.Poll(wcs[:]); n != 3 || wcs[2].ID != 8 || wcs[2].Status != verbs.Success || wcs[2].QP != nil {
			t.Errorf("%d completions, the last is %+v", n, wcs[2])
		}
		// What was polled is free again: the depth is the queue's.
		for range 4 {
			if err := sq.PostRecv(verbs.RecvWR{}); errors.Is(err, verbs.ErrFull) {
				break
			}
			_ = sq.PostRecv(verbs.RecvWR{})
		}
		if a := must(srq.Query())(t); a.Free != 0 || a.Posted != 4 {
			t.Errorf("%d receives are posted and %d free, expected 4 and 0", a.Posted, a.Free)
		}
	})
}

// Claims: V-5.1-3 V-9.1-7 V-9.2.5.1-7 V-10.6-5
// Claims: V-10-4 V-9.1-3
func TestUsersDoNothingThatIsPrivileged(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	_, err := s.newQP(verbs.QPConfig{Privileged: true}).User()
	wantError(t, err, verbs.ErrModifier)

	// Of a list all that goes before is posted.
	u := must(s.qp.User())(t)
	mr := must(s.pd.AllocMR(4, true))(t)
	what := mr.FastRegister(make([]byte, 10), verbs.LocalRead)
	fast := verbs.SendWR{ID: 9, Op: verbs.OpFastRegister, FastRegister: &what}
	wantError(t, u.PostSend(fast), verbs.ErrOp)
	for at, list := range [][]verbs.SendWR{{fast, {Op: verbs.OpSend}}, {{ID: 1, Op: verbs.OpSend}, fast}, {{ID: 2, Op: verbs.OpSend}, fast, fast}} {
		n, err := u.PostSends(list)
		if wantError(t, err, verbs.ErrOp); n != min(at, 1) {
			t.Errorf("%d of list %d were posted", n, at)
		}
	}
	n, err := u.PostSends([]verbs.SendWR{{Op: 200}, fast})
	if wantError(t, err, verbs.ErrOp); n != 0 || strings.Contains(err.Error(), "Privileged") {
		t.Errorf("%d were posted, and the error is %v", n, err)
	}
	s.qp.Abort()
	wantDone(t, s.sendCQ, done{1, verbs.Flushed}, done{2, verbs.Flushed})
	wantNone(t, s.sendCQ)
}

// A zero view fails, and a view ends with its object.
func TestAViewOfNothingIsRefused(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	srq := must(s.pd.CreateSRQ(verbs.SRQConfig{WRs: 1}))(t)
	cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
	q, r, c := must(s.qp.User())(t), must(srq.User())(t), must(cq.User())(t)
	check(t, s.qp.Destroy())
	check(t, srq.Destroy())
	check(t, cq.Destroy())
	for i, v := range []struct {
		qp  *verbs.UserQP
		srq *verbs.UserSRQ
		cq  *verbs.UserCQ
	}{{}, {new(verbs.UserQP), new(verbs.UserSRQ), new(verbs.UserCQ)}, {q, r, c}} {
		_, sends := v.qp.PostSends([]verbs.SendWR{{Op: verbs.OpSend}})
		_, recvs := v.qp.PostRecvs([]verbs.RecvWR{{}})
		_, shared := v.srq.PostRecvs([]verbs.RecvWR{{}})
		for j, err := range []error{v.qp.PostSend(verbs.SendWR{Op: verbs.OpSend}), sends, v.qp.PostRecv(verbs.RecvWR{}), recvs} {
			if !errors.Is(err, verbs.ErrQP) {
				t.Errorf("view %d, post %d: %v", i, j, err)
			}
		}
		for j, err := range []error{v.srq.PostRecv(verbs.RecvWR{}), shared} {
			if !errors.Is(err, verbs.ErrSRQ) {
				t.Errorf("view %d, post %d to the S-RQ: %v", i, j, err)
			}
		}
		for j, err := range []error{failure(v.cq.PollOne()), v.cq.Wait(t.Context()), v.cq.RequestNotify(verbs.NotifyNext)} {
			if !errors.Is(err, verbs.ErrCQ) {
				t.Errorf("view %d, verb %d of the CQ: %v", i, j, err)
			}
		}
		if n := v.cq.Poll(make([]verbs.WC, 1)); n != 0 {
			t.Errorf("view %d gave %d completions", i, n)
		}
	}
	for j, err := range []error{failure(s.qp.User()), failure(srq.User()), failure(cq.User())} {
		if want := []error{verbs.ErrQP, verbs.ErrSRQ, verbs.ErrCQ}[j]; !errors.Is(err, want) {
			t.Errorf("a view of something destroyed: %v, expected %v", err, want)
		}
	}
	if n := new(verbs.UserQP).Num(); n != 0 {
		t.Errorf("a view of nothing has QP ID %d", n)
	}
}

// A part of a program that is trusted with a queue pair alone gets a view of it:
// it can send and receive, and reach nothing else.
func ExampleQP_User() {
	client, server, done := examplePair()
	defer done()
	user, err := client.qp.User()
	ok(err)
	completions, err := client.cq.User()
	ok(err)
	ok(server.qp.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{server.mr.SGE(0, 5)}}))
	copy(client.buf, "hello")
	ok(user.PostSend(verbs.SendWR{ID: 1, Op: verbs.OpSend, Flags: verbs.Signaled, SGL: []verbs.SGE{client.mr.SGE(0, 5)}}))
	ok(completions.Wait(context.Background()))
	wc, err := completions.PollOne()
	ok(err)
	fmt.Println(wc.ID, wc.Status, wc.QPNum == user.Num(), wc.QP == nil)
	// Output: 1 success true true
}

// What a connection manager alone has to do with an RNIC is no verb, and not shown.
func TestConsumersSeeNothingOfTheConnectionManager(t *testing.T) {
	rnic := reflect.TypeFor[*verbs.RNIC]()
	for _, name := range []string{"AttachListener", "DetachListener", "AdmitConnection", "DismissConnection"} {
		if _, has := rnic.MethodByName(name); has {
			t.Errorf("%v has %s", rnic, name)
		}
	}
}
