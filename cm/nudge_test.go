package cm_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// nudged connects two ends, of which the one that is dialed is sluggish so many
// times.
func nudged(t *testing.T, nudge time.Duration, times int, p2p bool) (a, b *end, ca, cb *cm.Conn) {
	t.Helper()
	a, b = newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
	x, y := iwarptest.Pipe()
	accepted := make(chan error, 1)
	go func() {
		req, err := cm.Receive(t.Context(), nettest.Sluggish(y, times), mpa.Config{})
		if err == nil {
			cb, err = req.Accept(t.Context(), b.qp, cm.Params{})
		}
		accepted <- err
	}()
	ca, err := cm.Connect(t.Context(), a.qp, x, cm.Params{MPA: mpa.Config{PeerToPeer: p2p}, Nudge: nudge})
	if err := errors.Join(err, nettest.Await(t, accepted)); err != nil {
		t.Fatal(err)
	}
	return a, b, ca, cb
}

// say posts a Send of one octet.
func (e *end) say(t *testing.T) {
	t.Helper()
	if err := e.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{e.mr.SGE(0, 1)}}); err != nil {
		t.Fatal(err)
	}
}

// hear posts a receive of one octet.
func (e *end) hear(t *testing.T) {
	t.Helper()
	if err := e.qp.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{e.mr.SGE(1, 1)}}); err != nil {
		t.Fatal(err)
	}
}

func TestANudgeGetsAFirstMessageReadThatWasLeft(t *testing.T) {
	for times, want := range []time.Duration{0, 20, 80, 260, 800, 2420} {
		for _, p2p := range []bool{false, true} {
			if p2p && times > 0 {
				continue // Accept waits for the first message, which is not the consumer's
			}
			synctest.Test(t, func(t *testing.T) {
				a, b, ca, cb := nudged(t, cm.DefaultNudge, times, p2p)
				a.hear(t)
				b.hear(t)
				begun := time.Now()
				a.say(t)
				if wc := b.next(t); wc.Op != verbs.OpRecv || wc.Status != verbs.Success {
					t.Errorf("received %+v", wc)
				}
				if took := time.Since(begun); took != want*time.Millisecond {
					t.Errorf("left unread %d times: it took %v, expected %v", times, took, want*time.Millisecond)
				}
				b.say(t)
				if wc := a.next(t); wc.Op != verbs.OpRecv || wc.Status != verbs.Success {
					t.Errorf("received %+v", wc)
				}
				time.Sleep(time.Hour)
				if n := ca.Stats().FPDUsOut; n != uint64(1+times+btoi(p2p)) {
					t.Errorf("%d FPDUs were sent, expected the message and %d nudges", n, times)
				}
				go cb.Shutdown(t.Context())
				if err := ca.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Without Params.Nudge no nudge is sent, and a peer that stays silent is not nudged
// forever.
func TestNudgesAreFew(t *testing.T) {
	for nudge, want := range map[time.Duration]uint64{0: 1, -1: 1, time.Second: 1 + 5} {
		synctest.Test(t, func(t *testing.T) {
			a, b, ca, _ := nudged(t, nudge, 0, false)
			b.hear(t)
			time.Sleep(time.Hour)
			if n := ca.Stats().FPDUsOut; n != 0 {
				t.Errorf("%d FPDUs were sent before the first message", n)
			}
			a.say(t)
			time.Sleep(time.Hour)
			if n := ca.Stats().FPDUsOut; n != want {
				t.Errorf("nudge %v: %d FPDUs were sent, expected %d", nudge, n, want)
			}
			if wc := b.next(t); wc.Status != verbs.Success {
				t.Errorf("received %+v", wc)
			}
			if n := b.cq.Poll(make([]verbs.WC, 1)); n != 0 {
				t.Error("a nudge completed something")
			}
		})
	}
}

// A close that has begun is not disturbed.
func TestNobodyIsNudgedAfterAClose(t *testing.T) {
	for _, reset := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, b, ca, cb := nudged(t, time.Second, 0, false)
			b.hear(t)
			a.say(t)
			b.next(t)
			if reset {
				a.qp.Abort()
			} else {
				go cb.Shutdown(context.Background())
				if err := ca.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(time.Hour)
			if n := ca.Stats().FPDUsOut; n != 1 {
				t.Errorf("%d FPDUs were sent, expected 1", n)
			}
		})
	}
}
