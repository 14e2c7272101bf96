package cm_test

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// Every wait has a limit: each step of the start-up has its
// limit, and a context cuts every one short.
func TestEveryWaitIsBounded(t *testing.T) {
	const limit = 3 * time.Second
	cfg := mpa.Config{ReplyTimeout: limit, RequestTimeout: limit, DecisionTimeout: limit}
	for _, tt := range []struct {
		name string
		wait func(ctx context.Context, e *end, ours, theirs net.Conn) error
		most time.Duration
	}{
		{"for the reply", func(ctx context.Context, e *end, ours, _ net.Conn) error {
			_, err := cm.Connect(ctx, e.qp, ours, cm.Params{MPA: cfg})
			return err
		}, limit},
		{"for the request", func(ctx context.Context, e *end, ours, _ net.Conn) error {
			_, err := cm.Receive(ctx, ours, cfg)
			return err
		}, limit},
		{"for the message that opens the stream", func(ctx context.Context, e *end, ours, theirs net.Conn) error {
			go mpa.Initiate(context.Background(), theirs, mpa.Config{PeerToPeer: true}, nil) // and says nothing
			req, err := cm.Receive(ctx, ours, cfg)
			if err != nil {
				return err
			}
			_, err = req.Accept(ctx, e.qp, cm.Params{})
			if s := e.qp.State(); s != verbs.Error {
				t.Errorf("the queue pair is %v", s)
			}
			return err
		}, 10*time.Second + time.Millisecond}, // and the look for octets behind the request
	} {
		for _, cut := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := newEnd(t, verbs.QPConfig{})
					ours, theirs := iwarptest.Pipe()
					defer theirs.Close()
					ctx, want, most := t.Context(), error(os.ErrDeadlineExceeded), tt.most
					if cut {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, time.Second)
						defer cancel()
						want, most = context.DeadlineExceeded, time.Second
					}
					begun := time.Now()
					err := tt.wait(ctx, e, ours, theirs)
					if !errors.Is(err, want) && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("the error is %v", err)
					}
					if took := time.Since(begun); took != most {
						t.Errorf("it took %v, expected %v", took, most)
					}
				})
			})
		}
	}
}

// A request that is not decided upon in time is closed; deciding then fails.
func TestADecisionThatComesTooLateFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
		x, y := iwarptest.Pipe()
		dialed := make(chan error, 1)
		go func() {
			_, err := cm.Connect(t.Context(), a.qp, x, cm.Params{})
			dialed <- err
		}()
		req, err := cm.Receive(t.Context(), y, mpa.Config{DecisionTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-dialed; !errors.Is(err, mpa.ErrUnanswered) {
			t.Errorf("the dialer's error is %v", err)
		}
		if _, err := req.Accept(t.Context(), b.qp, cm.Params{}); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("accepted too late: %v", err)
		}
		if err := req.Reject(nil); !errors.Is(err, mpa.ErrAnswered) {
			t.Errorf("rejected after that: %v", err)
		}
		if s := b.qp.State(); s != verbs.Idle {
			t.Errorf("the queue pair is %v", s)
		}
	})
}
