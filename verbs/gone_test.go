package verbs_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// everything makes one object of each kind, in use, so that nothing is confused with what
// is destroyed.
func everything(t *testing.T, s *side) []any {
	t.Helper()
	srq := must(s.pd.CreateSRQ(verbs.SRQConfig{WRs: 1}))(t)
	mw := must(s.pd.AllocMW())(t)
	return []any{
		s.rnic, s.pd, s.sendCQ, s.qp, srq, s.mr, mw,
		must(s.qp.User())(t), must(s.sendCQ.User())(t), must(srq.User())(t),
	}
}

// notVerbs are methods that return an error and are no verbs: what was learned
// remains known.
var notVerbs = []string{"QP.Err", "QP.WaitState"}

// wantGone calls every method that can fail of each object, with arguments that
// mean nothing, and expects ErrRNIC.
func wantGone(t *testing.T, objects []any, except ...string) {
	t.Helper()
	for _, object := range objects {
		v := reflect.ValueOf(object)
		for i := range v.NumMethod() {
			name := v.Type().Elem().Name() + "." + v.Type().Method(i).Name
			method := v.Method(i).Type()
			if n := method.NumOut(); n == 0 || method.Out(n-1) != reflect.TypeFor[error]() || slices.Contains(except, name) {
				continue
			}
			var args []reflect.Value
			for j := range method.NumIn() {
				switch in := method.In(j); {
				case in == reflect.TypeFor[context.Context]():
					args = append(args, reflect.ValueOf(t.Context()))
				case in.Kind() == reflect.Slice && !method.IsVariadic():
					args = append(args, reflect.MakeSlice(in, 1, 1))
				default:
					args = append(args, reflect.Zero(in))
				}
			}
			out := v.Method(i).Call(args)
			err, _ := out[len(out)-1].Interface().(error)
			if !errors.Is(err, verbs.ErrRNIC) {
				t.Errorf("%s: %v, expected %v", name, err, verbs.ErrRNIC)
			}
		}
	}
}

// Once the RNIC is closed every verb of every object says so, rather than what
// has become of the object itself.
//
// Claims: V-9.2.1.3-1 V-9.2.1.3-3
// Claims: V-9.2.1.2-2 V-9.2.1.3-2 V-9.2.2.1-2 V-9.2.2.2-2 V-9.2.3.1-4 V-9.2.3.2-2 V-9.2.3.3-3 V-9.2.3.4-2 V-9.2.4.1-3 V-9.2.4.2-1 V-9.2.4.3-3
// Claims: V-9.2.4.4-1 V-9.2.5.1-15 V-9.2.5.2-2 V-9.2.5.3-10 V-9.2.5.4-3 V-9.2.6.1-5 V-9.2.6.2-10 V-9.2.6.3-4 V-9.2.6.4-2 V-9.2.6.5-7 V-9.2.6.6-5
// Claims: V-9.2.6.7-2 V-9.2.6.8-2 V-9.3.1.1-22 V-9.3.1.2-4 V-9.3.2.1-4 V-9.3.2.2-2 V-9.4.1-9 V-9.4.2-3 V-9.5.1.1-1 V-9.5.1.2-1 V-9.5.1.3-1
// Claims: V-9.5.1.4-1 V-9.5.1.8-1
func TestAfterCloseEveryVerbSaysThatTheRNICIsGone(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, reads, reads)
		objects := everything(t, a)
		gone := a.newQP(verbs.QPConfig{})
		check(t, gone.Destroy())
		fill(t, a.flusher(verbs.QPConfig{}), 0, 3)
		check(t, a.rnic.Close())
		wantGone(t, append(objects, gone), notVerbs...)
		if n := a.sendCQ.Poll(make([]verbs.WC, 3)); n != 0 {
			t.Errorf("a CQ gave %d completions", n)
		}
		if u := a.rnic.Usage(); u != (verbs.Usage{}) {
			t.Errorf("left behind: %+v", u)
		}
		reach(t, b.qp, verbs.Error)
	})
}

// An RNIC that fails ends every stream with a Terminate message 0/2/08, raises one event,
// and can only be closed.
//
// Claims: V-9.5.3-43 V-8.3.3-12
func TestAnRNICThatFailsCanOnlyBeClosed(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		nettest.CheckLeaks(t)
		a, b := newSideOf(t, verbs.Config{Name: "failing"}, reads), newSide(t, reads)
		second, peer := a.newQP(verbs.QPConfig{}), b.newQP(verbs.QPConfig{})
		w.connect(t, a.qp, b.qp, cm.Params{})
		w.connect(t, second, peer, cm.Params{})
		objects := everything(t, a)
		idle := a.newQP(verbs.QPConfig{})
		fill(t, a.flusher(verbs.QPConfig{}), 0, 3)
		empty := must(a.rnic.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
		waited := make(chan error, 1)
		go func() { waited <- empty.Wait(t.Context()) }()

		cause := errors.New("smoke")
		check(t, a.rnic.Fail(cause))
		e := a.wantEvents(verbs.EventRNICCatastrophic)[0]
		if e.RNIC != a.rnic || e.Resource != verbs.ResourceRNIC || !errors.Is(e.Err, cause) || e.QP != nil {
			t.Errorf("the event is %+v", e)
		}
		for _, qp := range []*verbs.QP{b.qp, peer} {
			reach(t, qp, verbs.Error)
			var term *rdmap.TerminateError
			if !errors.As(qp.Err(), &term) || !term.Remote || term.Layer != 0 || term.EType != 2 || term.Code != 8 {
				t.Errorf("the peer got %v, expected 0/2/08", qp.Err())
			}
		}
		wantError(t, nettest.Await(t, waited), verbs.ErrRNIC)
		wantGone(t, append(objects, idle), append(notVerbs, "RNIC.Close")...)
		if n := a.sendCQ.Poll(make([]verbs.WC, 3)); n != 0 {
			t.Errorf("a CQ gave %d completions", n)
		}
		_, err := verbs.Open(verbs.Config{Name: "failing"})
		wantError(t, err, verbs.ErrRNICInUse)
		a.wantEvents(verbs.EventRNICCatastrophic) // and no other
		check(t, a.rnic.Close())
		wantError(t, a.rnic.Close(), verbs.ErrRNIC)
		wantGone(t, objects, notVerbs...)
		check(t, must(verbs.Open(verbs.Config{Name: "failing"}))(t).Close())
	})
}
