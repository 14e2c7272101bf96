package cm

import (
	"context"
	"testing"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/verbs"
)

// A connection whose request waits for Accept has left start-up: another that comes at
// that very moment cannot take a place from it that is the request's by now, and every
// connection is counted in and out once.
//
// Claims: S-6.4.1-1
func TestARequestThatWaitsGivesItsPlaceToNobody(t *testing.T) {
	rnic, err := verbs.Open(verbs.Config{Limits: verbs.Limits{PendingConnections: 2}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rnic.Close() })
	l := &Listener{
		rnic: rnic, ctx: context.Background(), arrived: make(chan struct{}, 1),
		starts: fairness.NewPlaces(1), waits: fairness.NewPlaces(1), starting: make(map[*starting]struct{}),
		latest: make(map[origin.Share]*starting),
	}
	enter := func() *starting {
		_, nc := iwarptest.Pipe()
		s, err := l.enter(nc, origin.Of(nil))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	leave := func(s *starting) {
		s.end()
		s.place.Free()
	}
	for _, step := range []struct {
		name string
		do   func()
		want int
	}{
		{"one loses its place and comes too late", func() {
			first := enter()
			entered := make(chan *starting)
			go func() { entered <- enter() }()
			<-first.ctx.Done()
			if l.offer(first, &Request{mpa: new(mpa.Request)}) == nil {
				t.Error("taken without a place")
			}
			leave(first)
			leave(<-entered)
		}, 0},
		{"one waits, another comes, both leave", func() {
			first := enter()
			if err := l.offer(first, &Request{mpa: new(mpa.Request)}); err != nil {
				t.Errorf("there is room for the request: %v", err)
			}
			first.place.Free()
			second := enter()
			if n := rnic.Usage().PendingConnections; n != 2 {
				t.Errorf("%d connections are counted, expected 2", n)
			}
			first.end()
			leave(second)
		}, 1},
		{"accepted", func() { l.next() }, 0},
	} {
		step.do()
		if n := rnic.Usage().PendingConnections; n != step.want {
			t.Errorf("%s: %d connections are counted, expected %d", step.name, n, step.want)
		}
	}
	if l.starts.Len() != 0 || l.waits.Len() != 0 {
		t.Errorf("%d places in start-up and %d in the queue are left", l.starts.Len(), l.waits.Len())
	}
}
