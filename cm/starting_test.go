package cm

import (
	"context"
	"testing"

	"github.com/weft-rdma/weft/mpa"
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
	l := &Listener{rnic: rnic, cfg: ListenConfig{Backlog: 1}, ctx: context.Background(), arrived: make(chan struct{}, 1)}
	enter := func() *starting {
		_, s, err := l.enter()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, step := range []struct {
		name string
		do   func()
		want int
	}{
		{"one loses its place and comes too late", func() {
			first, second := enter(), enter()
			if l.offer(first, &Request{mpa: new(mpa.Request)}) {
				t.Error("taken without a place")
			}
			l.leave(first)
			l.leave(second)
		}, 0},
		{"one waits, another comes, both leave", func() {
			first := enter()
			if !l.offer(first, &Request{mpa: new(mpa.Request)}) {
				t.Error("there is room for the request")
			}
			second := enter()
			if n := rnic.Usage().PendingConnections; n != 2 {
				t.Errorf("%d connections are counted, expected 2", n)
			}
			l.leave(first)
			l.leave(second)
		}, 1},
		{"accepted", func() { l.next() }, 0},
	} {
		step.do()
		if n := rnic.Usage().PendingConnections; n != step.want {
			t.Errorf("%s: %d connections are counted, expected %d", step.name, n, step.want)
		}
	}
}
