package perf

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-rdma/weft/verbs"
)

// Whatever the division, all connections are measured and verified, with every operation.
func TestConsumersWorkOnSeveralConnections(t *testing.T) {
	addr, _ := servePeer(t, nil)
	for _, n := range []int{1, 2, 5} {
		for _, spin := range []time.Duration{0, time.Millisecond} {
			cfg := quick(addr, Ops...)
			cfg.Sizes, cfg.Connections, cfg.Consumers, cfg.Tuning.Spin = []int{100}, 5, n, spin
			opened := make(chan *verbs.RNIC, 1)
			cfg.Opened = func(r *verbs.RNIC) { opened <- r }
			var queues atomic.Int64
			cfg.Progress = func(int, int) {
				if len(opened) > 0 {
					queues.Store(int64((<-opened).Usage().CQs))
				}
			}
			rep, err := Run(t.Context(), cfg)
			if err != nil {
				t.Fatalf("%d consumers: %v", n, err)
			}
			if got := int(queues.Load()); got != n*len(cfg.CRC) {
				t.Errorf("%d consumers have %d completion queues, with CRC and without", n, got)
			}
			if rep.Settings.Consumers != n {
				t.Errorf("the report says %d consumers, expected %d", rep.Settings.Consumers, n)
			}
			for _, r := range rep.Results {
				if trips := total(r.Latency.Histogram); r.BytesPerSecond <= 0 || r.Verified%5 != 0 || r.Verified == 0 || trips == 0 || trips%5 != 0 {
					t.Errorf("%d consumers, %s: %+v", n, r.Op, r)
				}
			}
		}
	}
}

// A measurement with consumers fails as one without does, at either end.
func TestConsumersEndWithWhatFails(t *testing.T) {
	addr, stop := servePeer(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cfg := quick(addr, Send, FetchAdd)
	cfg.Connections, cfg.Consumers, cfg.Duration = 3, 1, time.Hour
	cfg.Progress = func(step, _ int) {
		if step == 3 {
			cancel()
		}
	}
	if _, err := Run(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	cfg.Progress = func(step, _ int) {
		if step == 3 {
			go stop()
		}
	}
	if _, err := Run(t.Context(), cfg); err == nil {
		t.Error("the peer has gone: no error")
	}
}

// The part of an endpoint that fails stops those of the others, and is the error.
func TestTheFirstEndpointThatFailsStopsItsConsumer(t *testing.T) {
	broken := errors.New("broken")
	r, err := verbs.Open(verbs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cs, err := newConsumers(r, 1, 3, 16, Tuning{})
	if err != nil {
		t.Fatal(err)
	}
	var endpoints []*endpoint
	for i := range 3 {
		e, err := newEndpoint(r, 8, 16, Tuning{}, cs.next(i))
		if err != nil {
			t.Fatal(err)
		}
		endpoints = append(endpoints, e)
	}
	stopped := 0
	err = cs.together(t.Context(), 3, func(ctx context.Context, i int) error {
		if i == 2 {
			return broken
		}
		_, err := endpoints[i].completions(ctx)
		if errors.Is(err, errStopped) {
			stopped++
		}
		return err
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "connection 3 of 3") || stopped != 2 {
		t.Errorf("together returned %v, and %d were stopped", err, stopped)
	}
	for _, e := range endpoints {
		if err := e.close(); err != nil {
			t.Error(err)
		}
	}
	if err := cs.close(); err != nil {
		t.Error(err)
	}
}

func TestASessionHasNoMoreConsumersThanConnections(t *testing.T) {
	s := new(session)
	for _, n := range []int{-1, 3} {
		h := &hello{Protocol: protocol, Token: make([]byte, tokenLen), Connections: 2, Consumers: n, Room: 8, Depth: 1}
		if err := s.check(&request{Do: doHello, Hello: h}); err == nil || !strings.Contains(err.Error(), "consumers") {
			t.Errorf("%d consumers for 2 connections: %v", n, err)
		}
	}
}
