package verbs_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/verbs"
)

// spoken is linked after a message of a's: before, b may not send.
func spoken(t *testing.T, cfg verbs.QPConfig) (a, b *side) {
	t.Helper()
	a, b = linked(t, wires[0], cfg, cfg)
	b.receives(0, 1, 0)
	a.post(a.send(0, 0, 0))
	wantDone(t, a.sendCQ, done{0, verbs.Success})
	wantDone(t, b.recvCQ, done{0, verbs.Success})
	return a, b
}

// waiting starts a Wait on a's receive CQ, as the leader if possible. For that several
// messages of b have to be waited for first. The channel has the result of Wait.
func waiting(t *testing.T, ctx context.Context, a, b *side) <-chan error {
	t.Helper()
	for i := uint64(0); ; i++ {
		result := make(chan error, 1)
		go func() { result <- a.recvCQ.Wait(ctx) }()
		var leads, may bool
		nettest.Until(t, func() (waits bool) {
			waits, leads, may = a.recvCQ.Waiting()
			return waits
		})
		if leads || !may {
			return result
		}
		check(t, a.qp.PostRecv(verbs.RecvWR{ID: i}))
		check(t, b.qp.PostSend(b.send(i, 0, 0)))
		check(t, nettest.Await(t, result))
		wantDone(t, a.recvCQ, done{i, verbs.Success})
		wantDone(t, b.sendCQ, done{i, verbs.Success})
	}
}

func TestAWaitInTheReadersPlaceEnds(t *testing.T) {
	for _, v := range []struct {
		name string
		end  func(t *testing.T, a, b *side, cancel func())
		want error
		left int // completions
	}{
		{"with a message", func(t *testing.T, a, b *side, _ func()) {
			check(t, a.qp.PostRecv(verbs.RecvWR{}))
			check(t, b.qp.PostSend(b.send(0, 0, 0)))
		}, nil, 1},
		{"with its context", func(_ *testing.T, _, _ *side, cancel func()) { cancel() }, context.Canceled, 0},
		{"with a completion of another queue pair", func(t *testing.T, a, _ *side, _ func()) {
			check(t, a.flusher(verbs.QPConfig{}).PostRecv(verbs.RecvWR{}))
		}, nil, 1},
		{"with the queue pair", func(t *testing.T, a, _ *side, _ func()) {
			check(t, a.qp.PostRecv(verbs.RecvWR{}))
			a.qp.Abort()
		}, nil, 1},
		{"with the peer", func(t *testing.T, a, b *side, _ func()) {
			check(t, a.qp.PostRecv(verbs.RecvWR{}))
			b.qp.Abort()
		}, nil, 1},
		{"with an error of the peer", func(t *testing.T, a, b *side, _ func()) {
			check(t, b.qp.PostSend(b.send(0, 0, 0))) // and nothing to receive it
			_, err := a.qp.WaitState(context.Background(), verbs.Error)
			check(t, err)
			check(t, a.qp.PostRecv(verbs.RecvWR{}))
		}, nil, 1},
		{"with the RNIC", func(t *testing.T, a, _ *side, _ func()) { check(t, a.rnic.Close()) }, verbs.ErrRNIC, 0},
	} {
		t.Run(v.name, func(t *testing.T) {
			a, b := spoken(t, verbs.QPConfig{})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			result := waiting(t, ctx, a, b)
			v.end(t, a, b, cancel)
			wantError(t, nettest.Await(t, result), v.want)
			var wcs [2]verbs.WC
			if n := a.recvCQ.Poll(wcs[:]); n != v.left {
				t.Errorf("%d completions, expected %d", n, v.left)
			}
		})
	}
}

// Several goroutines may wait, one of them as the leader. Each is woken.
func TestAllWhoWaitAreWoken(t *testing.T) {
	const others = 4
	a, b := spoken(t, verbs.QPConfig{})
	first := waiting(t, context.Background(), a, b)
	results := make(chan error, others)
	for range others {
		go func() { results <- a.recvCQ.Wait(context.Background()) }()
	}
	a.receives(0, 1+others, 0)
	for i := range uint64(1 + others) {
		check(t, b.qp.PostSend(b.send(i, 0, 0)))
	}
	check(t, nettest.Await(t, first))
	for range others {
		check(t, nettest.Await(t, results))
	}
	for i := range uint64(1 + others) {
		wantDone(t, a.recvCQ, done{i, verbs.Success})
	}
}

// While nobody waits, the peer's requests are answered.
func TestThePeerIsAnsweredWhileTheConsumerDoesSomethingElse(t *testing.T) {
	a, b := spoken(t, reads)
	result := waiting(t, context.Background(), a, b)
	check(t, a.qp.PostRecv(verbs.RecvWR{}))
	check(t, b.qp.PostSend(b.send(0, 0, 0)))
	check(t, nettest.Await(t, result))
	for i := range uint64(10) {
		b.post(b.read(1+i, a, 0, 100))
	}
	take(t, b.sendCQ, 11)
}

// A leader at one CQ of a queue pair receives for the other CQ, too.
func TestBothQueuesOfAQueuePairAreWaitedFor(t *testing.T) {
	a, b := spoken(t, reads)
	ctx := context.Background()
	for i := range uint64(200) {
		check(t, a.qp.PostRecv(verbs.RecvWR{ID: i}))
		sent, received := make(chan error, 1), make(chan error, 1)
		go func() { sent <- a.sendCQ.Wait(ctx) }()
		go func() { received <- a.recvCQ.Wait(ctx) }()
		a.post(a.read(i, b, 0, 10))
		check(t, b.qp.PostSend(b.send(i, 0, 0)))
		check(t, nettest.Await(t, sent))
		check(t, nettest.Await(t, received))
		wantDone(t, a.sendCQ, done{i, verbs.Success})
		wantDone(t, a.recvCQ, done{i, verbs.Success})
		wantDone(t, b.sendCQ, done{i, verbs.Success})
	}
}

// With several connections attached to the CQ, Wait does not lead.
func TestAnotherConnectionEndsTheWaitInTheReadersPlace(t *testing.T) {
	a, b := spoken(t, verbs.QPConfig{})
	result := waiting(t, context.Background(), a, b)
	other, peer := a.newQP(verbs.QPConfig{}), newSide(t, verbs.QPConfig{})
	wires[0].connect(t, peer.qp, other, cm.Params{})
	nettest.Until(t, func() bool {
		_, leads, _ := a.recvCQ.Waiting()
		return !leads
	})
	check(t, a.qp.PostRecv(verbs.RecvWR{ID: 7}))
	check(t, b.qp.PostSend(b.send(0, 0, 0)))
	check(t, nettest.Await(t, result))
	wantDone(t, a.recvCQ, done{7, verbs.Success})
}

// A caller whose deadline is near does not lead: it would learn of the deadline too late.
func TestWhoWaitsBrieflyDoesNotTakeTheReadersPlace(t *testing.T) {
	a, b := spoken(t, verbs.QPConfig{})
	for range 10 {
		led := waiting(t, context.Background(), a, b) // so that the place can be taken
		check(t, a.qp.PostRecv(verbs.RecvWR{}))
		check(t, b.qp.PostSend(b.send(0, 0, 0)))
		check(t, nettest.Await(t, led))
		wantDone(t, a.recvCQ, done{0, verbs.Success})
		wantDone(t, b.sendCQ, done{0, verbs.Success})
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Millisecond)
		result := make(chan error, 1)
		go func() { result <- a.recvCQ.Wait(ctx) }()
		for err := error(nil); err == nil; {
			select {
			case err = <-result:
				wantError(t, err, context.DeadlineExceeded)
			default:
				if _, leads, _ := a.recvCQ.Waiting(); leads {
					t.Error("it has taken it")
				}
				runtime.Gosched()
			}
		}
		cancel()
	}
}
