package verbs_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// A bell counts the calls of a completion handler.
type bell struct {
	mu    sync.Mutex
	calls int
	rung  chan struct{} // capacity 1
}

func newBell() *bell { return &bell{rung: make(chan struct{}, 1)} }

func (b *bell) ring(*verbs.CQ) {
	b.mu.Lock()
	b.calls++
	b.mu.Unlock()
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// handler sets a completion handler.
func (s *side) handler(fn func(*verbs.CQ)) verbs.HandlerID {
	s.t.Helper()
	return must(s.rnic.SetCompletionHandler(fn, 0))(s.t)
}

// count is how often the handler was called; in a bubble, when all is quiet.
func (b *bell) count() int {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

// Claims: V-8.2.5-3 V-8.2.5-4 V-8.2.5-5 V-8.2.5-6 V-8.2.5-7 V-8.2.5-9 V-9.3.2.2-1 V-9.3.2.2-4 V-9.3.2.2-5 V-9.4.1-4 V-9.5.1.8-3
// Claims: V-9.3.2.2-2
// Claims: R-1.2-3 R-2.4-5
func TestNotificationComesOnceForTheNextCompletionOfItsKind(t *testing.T) {
	// What is asked for, and then: s a Send, e a Send with solicited event, i
	// and j the same of Immediate Data, x an error. The calls of the handler
	// after each are counted.
	for _, tt := range []struct {
		name   string
		ask    []verbs.Notify
		events string
		calls  []int
	}{
		{"nothing asked", nil, "sex", []int{0, 0, 0}},
		{"next", []verbs.Notify{verbs.NotifyNext}, "sse", []int{1, 1, 1}},
		{"solicited", []verbs.Notify{verbs.NotifySolicited}, "ssesex", []int{0, 0, 1, 1, 1, 1}},
		{"solicited, by Immediate Data", []verbs.Notify{verbs.NotifySolicited}, "iiji", []int{0, 0, 1, 1}},
		{"solicited, by an error", []verbs.Notify{verbs.NotifySolicited}, "sx", []int{0, 1}},
		{"next wins over solicited", []verbs.Notify{verbs.NotifyNext, verbs.NotifySolicited}, "se", []int{1, 1}},
		{"next wins over solicited before", []verbs.Notify{verbs.NotifySolicited, verbs.NotifyNext}, "se", []int{1, 1}},
		{"twice is once", []verbs.Notify{verbs.NotifyNext, verbs.NotifyNext}, "ss", []int{1, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := newSide(t, verbs.QPConfig{}), newSide(t, verbs.QPConfig{})
				rung := newBell()
				cq := must(b.rnic.CreateCQ(verbs.CQConfig{Entries: 100, Handler: b.handler(rung.ring)}))(t)
				b.qp = b.newQP(verbs.QPConfig{RecvCQ: cq})
				x, y := iwarptest.Pipe()
				join(t, a.qp, b.qp, x, y, cm.Params{})
				b.receives(0, 10, 100)
				a.post(a.send(0, 0, 10)) // there before it is asked for
				if rung.count() != 0 {
					t.Fatal("called without having been asked for")
				}
				for _, kind := range tt.ask {
					check(t, cq.RequestNotify(kind))
				}
				if rung.count() != 0 {
					t.Fatal("called for a completion that was there before")
				}
				for i, event := range tt.events {
					wr := a.send(1, 0, 10)
					switch event {
					case 'e':
						wr.Op = verbs.OpSendSE
					case 'i', 'j':
						wr.Op, wr.SGL = verbs.OpImmediate, nil
						if event == 'j' {
							wr.Op = verbs.OpImmediateSE
						}
					case 'x':
						wr.SGL[0].Length = 101 // longer than the receive
					}
					a.post(wr)
					if got := rung.count(); got != tt.calls[i] {
						t.Errorf("%d calls after %q, expected %d", got, tt.events[:i+1], tt.calls[i])
					}
				}
				if n := cq.Poll(make([]verbs.WC, 100)); n <= len(tt.events) {
					t.Errorf("%d completions to be polled: the notification took some", n)
				}
			})
		})
	}
	s := newSide(t, verbs.QPConfig{})
	wantError(t, s.sendCQ.RequestNotify(0), verbs.ErrNotify)
	wantError(t, s.sendCQ.RequestNotify(3), verbs.ErrNotify)
}

// Claims: V-8.2.5-8
func TestPollArmPollNeverLosesAWakeUp(t *testing.T) {
	nettest.CheckLeaks(t)
	const posters, each = 3, 1000
	s := newSide(t, verbs.QPConfig{})
	rung := newBell()
	cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: posters, Handler: s.handler(rung.ring)}))(t)
	// One completion a poster at a time, so that the CQ is empty again and again.
	credits := make(chan struct{}, posters)
	for range posters {
		credits <- struct{}{}
		qp := s.flusher(verbs.QPConfig{SendCQ: cq})
		go func() {
			for range each {
				<-credits
				if err := qp.PostSend(verbs.SendWR{Op: verbs.OpSend}); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	got := 0
	poll := func() bool {
		var wcs [2]verbs.WC
		n := cq.Poll(wcs[:])
		for range n {
			got++
			if got <= posters*(each-1) {
				credits <- struct{}{}
			}
		}
		return n > 0
	}
	for got < posters*each {
		if poll() {
			continue
		}
		check(t, cq.RequestNotify(verbs.NotifyNext))
		if poll() {
			continue
		}
		select {
		case <-rung.rung:
		case <-t.Context().Done():
			t.Fatalf("asleep with %d of %d completions polled", got, posters*each)
		}
	}
}

// Claims: V-8.2.5-9
func TestACompletionHandlerMayUseEveryVerb(t *testing.T) {
	for _, tt := range []struct {
		name string
		use  func(t *testing.T, b *side, cq *verbs.CQ)
	}{
		{"poll, post and ask again", func(t *testing.T, b *side, cq *verbs.CQ) {
			wantDone(t, cq, done{0, verbs.Success})
			check(t, b.qp.PostRecv(verbs.RecvWR{}))
			check(t, b.qp.PostSend(verbs.SendWR{Op: verbs.OpWrite}))
			check(t, cq.RequestNotify(verbs.NotifyNext))
		}},
		{"deallocate", func(t *testing.T, b *side, _ *verbs.CQ) { check(t, b.mr.Deallocate()) }},
		{"close", func(t *testing.T, b *side, _ *verbs.CQ) { check(t, b.qp.Close(t.Context())) }},
		{"terminate", func(t *testing.T, b *side, _ *verbs.CQ) { check(t, b.qp.Terminate()) }},
		{"abort", func(t *testing.T, b *side, _ *verbs.CQ) { b.qp.Abort() }},
		{"destroy", func(t *testing.T, b *side, _ *verbs.CQ) { check(t, b.qp.Destroy()) }},
		{"close the RNIC", func(t *testing.T, b *side, _ *verbs.CQ) { check(t, b.rnic.Close()) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			overWires(t, func(t *testing.T, w wire) {
				a, b := newSide(t, reads), newSide(t, reads)
				used := make(chan struct{})
				var once sync.Once
				cq := must(b.rnic.CreateCQ(verbs.CQConfig{Entries: 16, Handler: b.handler(func(cq *verbs.CQ) {
					once.Do(func() {
						defer close(used)
						tt.use(t, b, cq)
					})
				})}))(t)
				b.qp = b.newQP(verbs.QPConfig{RecvCQ: cq})
				w.connect(t, a.qp, b.qp, cm.Params{})
				check(t, b.qp.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{b.mr.SGE(0, 10)}}))
				check(t, cq.RequestNotify(verbs.NotifyNext))
				a.post(a.send(1, 0, 10))
				nettest.Await(t, used)
			})
		})
	}
}
