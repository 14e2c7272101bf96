package verbs_test

import (
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/verbs"
)

// Each CQ calls the function that is set for its identifier now, and each call
// has to be asked for.
//
// Claims: V-8.2.5-1 V-9.2.3.1-1 V-9.2.3.1-7 V-9.3.2.2-3 V-9.4.1-1 V-9.4.1-3 V-9.4.1-6 V-9.4.1-7 V-9.4.1-8
// Claims: V-9.4.1-5 V-9.4.1-9
func TestCompletionHandlersAreSetChangedAndCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSide(t, verbs.QPConfig{})
		var called []string
		handler := func(name string) func(*verbs.CQ) {
			return func(cq *verbs.CQ) {
				if cq.RNIC() != s.rnic {
					t.Error("the handler was given a CQ of another RNIC")
				}
				called = append(called, name)
			}
		}
		red, blue := s.handler(handler("red")), s.handler(handler("blue"))
		if red == blue || red == 0 || blue == 0 {
			t.Fatalf("the identifiers are %d and %d", red, blue)
		}
		cqs := map[string]*verbs.CQ{}
		qps := map[string]*verbs.QP{}
		for name, id := range map[string]verbs.HandlerID{"red": red, "red too": red, "blue": blue, "none": 0} {
			cqs[name] = must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 100, Handler: id}))(t)
			if a := must(cqs[name].Query())(t); a.Handler != id {
				t.Errorf("%s: the CQ has handler %d, expected %d", name, a.Handler, id)
			}
			qps[name] = s.flusher(verbs.QPConfig{SendCQ: cqs[name]})
		}
		// complete generates a completion on a CQ, and checks which handler was called.
		complete := func(cq string, arm bool, want ...string) {
			t.Helper()
			if arm {
				check(t, cqs[cq].RequestNotify(verbs.NotifyNext))
			}
			called = nil
			check(t, qps[cq].PostSend(verbs.SendWR{Op: verbs.OpSend}))
			quiesce()
			if len(called) != len(want) || len(want) == 1 && called[0] != want[0] {
				t.Errorf("a completion of %q called %v, expected %v", cq, called, want)
			}
			wantDone(t, cqs[cq], done{0, verbs.Flushed}) // whatever was called
		}
		set := func(fn func(*verbs.CQ), id verbs.HandlerID) {
			t.Helper()
			if got := must(s.rnic.SetCompletionHandler(fn, id))(t); got != id {
				t.Errorf("the identifier %d was returned for %d", got, id)
			}
		}
		complete("red", false)
		complete("red", true, "red")
		complete("red", false)
		complete("red too", true, "red")
		complete("blue", true, "blue")
		complete("none", true)
		set(handler("green"), red)
		complete("red", false) // setting a handler requests no notification
		complete("red", true, "green")
		complete("blue", true, "blue")
		set(nil, red)
		complete("red", true)
		complete("red too", true)
		complete("blue", true, "blue")
		set(nil, red) // again, which changes nothing
		set(handler("white"), red)
		complete("red too", true, "white")
	})
}

// Claims: V-9.2.3.1-7
// Claims: V-9.4.1-9
func TestHandlerIdentifiersThatAreNotSetAreRefused(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	nothing := func(*verbs.CQ) {}
	cleared := s.handler(nothing)
	must(s.rnic.SetCompletionHandler(nil, cleared))(t)
	for _, id := range []verbs.HandlerID{cleared, cleared + 1, ^verbs.HandlerID(0)} {
		before := s.rnic.Usage()
		_, err := s.rnic.CreateCQ(verbs.CQConfig{Entries: 1, Handler: id})
		wantError(t, err, verbs.ErrHandler)
		if s.rnic.Usage() != before {
			t.Error("the refusal left something behind")
		}
	}
	for _, fn := range []func(*verbs.CQ){nil, nothing} {
		_, err := s.rnic.SetCompletionHandler(fn, cleared+1)
		wantError(t, err, verbs.ErrHandler)
	}
	_, err := s.rnic.SetCompletionHandler(nil, 0)
	wantError(t, err, verbs.ErrHandler)
}

// Claims: V-8.2.5-1 V-9.5.1.8-2
// Claims: V-9.2.1.2-11
func TestAsManyCompletionHandlersAreSetAsTheLimitSays(t *testing.T) {
	s := newSideOf(t, verbs.Config{Limits: verbs.Limits{CompletionHandlers: 2}}, verbs.QPConfig{})
	nothing := func(*verbs.CQ) {}
	one, _ := s.handler(nothing), s.handler(nothing)
	full := func(id verbs.HandlerID) {
		t.Helper()
		_, err := s.rnic.SetCompletionHandler(nothing, id)
		wantLimit(t, err, verbs.ErrResources, "Limits.CompletionHandlers")
	}
	full(0)
	must(s.rnic.SetCompletionHandler(nothing, one))(t) // a change is not one more
	must(s.rnic.SetCompletionHandler(nil, one))(t)
	third := s.handler(nothing)
	full(0)
	full(one) // nor may one that was cleared come back
	must(s.rnic.SetCompletionHandler(nil, third))(t)
	must(s.rnic.SetCompletionHandler(nothing, one))(t)
	if n := s.rnic.Usage().CompletionHandlers; n != 2 {
		t.Errorf("%d handlers are counted, expected 2", n)
	}
}

// Events go to the handler that was set last, and a nil one is none (§9.4.2).
func TestAHandlerThatWasPutAsideHearsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSide(t, verbs.QPConfig{})
		var first, second int
		check(t, s.rnic.SetAsyncHandler(func(verbs.Event) { first++ }))
		overflow := func() {
			t.Helper()
			cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
			qp := s.flusher(verbs.QPConfig{SendCQ: cq})
			for range 2 {
				check(t, qp.PostSend(verbs.SendWR{Op: verbs.OpSend}))
			}
			quiesce()
		}
		overflow()
		check(t, s.rnic.SetAsyncHandler(func(verbs.Event) { second++ }))
		overflow()
		check(t, s.rnic.SetAsyncHandler(nil))
		overflow()
		if first != 1 || second != 1 {
			t.Errorf("the handlers were called %d and %d times, expected once each", first, second)
		}
		if n := s.rnic.Stats().Events[verbs.EventCQOverflow]; n != 3 {
			t.Errorf("%d overflows are counted, expected 3", n)
		}
	})
}
