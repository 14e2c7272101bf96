package main

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs/gateway"
	"github.com/weft-rdma/weft/oncrpc"
)

// A quietCaller answers when it is let.
type quietCaller struct{ answers chan error }

func (c *quietCaller) Call(ctx context.Context, _ *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	select {
	case err := <-c.answers:
		return &oncrpc.ClientReply{}, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *quietCaller) Close() error { return nil }

// watched is a watch of a quietCaller, with the notices that it has printed.
type watched struct {
	*watch
	quiet   *quietCaller
	notices []string
}

func watchQuiet(limit, silent time.Duration) *watched {
	w := &watched{quiet: &quietCaller{answers: make(chan error)}}
	w.watch = newWatch("H", limit, silent, func(text string) { w.notices = append(w.notices, text) })
	w.caller = w.quiet
	return w
}

// call makes a call that ends with the returned channel's error.
func (w *watched) call(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := w.Call(ctx, new(oncrpc.ClientCall))
		done <- err
	}()
	synctest.Wait()
	return done
}

func (w *watched) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.notices, want) {
		t.Errorf("notices %q, want %q", w.notices, want)
	}
	w.notices = nil
}

// answer answers one call.
func (w *watched) answer(t *testing.T, done <-chan error, with error) {
	t.Helper()
	w.quiet.answers <- with
	if err := nettest.Await(t, done); !errors.Is(err, with) {
		t.Errorf("the call ended with %v, want %v", err, with)
	}
}

func TestAServerThatStopsAnsweringIsToldOfAndSoIsItsReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchQuiet(contactTime, 0)
		w.answer(t, w.call(t.Context()), nil)
		done := w.call(t.Context())
		time.Sleep(silentNotice - 1)
		w.want(t)
		time.Sleep(time.Nanosecond)
		w.want(t, "server H is not responding, still trying (10 s)")
		time.Sleep(10 * time.Second)
		w.want(t, "server H is not responding, still trying (20 s)")
		w.answer(t, done, nil)
		w.want(t, "server H responds again")
		time.Sleep(time.Hour) // nobody calls
		w.want(t)
	})
}

func TestALostConnectionIsToldOfSoonerAndWithItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchQuiet(contactTime, 0)
		w.answer(t, w.call(t.Context()), nil)
		done := w.call(t.Context())
		time.Sleep(time.Second)
		w.retrying(errors.New("reset"))
		w.retrying(errors.New("refused"))
		time.Sleep(2 * time.Second)
		w.want(t, "server H is not responding, still trying (3 s): refused")
		w.answer(t, done, nil)
		w.want(t, "server H responds again")
		done = w.call(t.Context())
		time.Sleep(5 * time.Second) // there is a connection again
		w.want(t)
		w.answer(t, done, nil)
	})
}

func TestAShortInterruptionIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchQuiet(contactTime, 0)
		w.answer(t, w.call(t.Context()), nil)
		done := w.call(t.Context())
		w.retrying(errors.New("reset"))
		time.Sleep(2 * time.Second)
		w.answer(t, done, nil)
		time.Sleep(time.Minute)
		w.want(t)
	})
}

func TestEveryAnswerOfOneOfManyCallsIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchQuiet(contactTime, 30*time.Second)
		w.answer(t, w.call(t.Context()), nil)
		slow := w.call(t.Context())
		_ = slow
		for range 10 {
			done := w.call(t.Context())
			time.Sleep(9 * time.Second)
			// Either of both calls gets it.
			w.quiet.answers <- &oncrpc.AcceptError{Stat: oncrpc.SystemErr}
			synctest.Wait()
			select {
			case <-done:
			case <-slow:
				slow = done
			}
		}
		w.want(t)
		w.answer(t, slow, nil)
	})
}

func TestAServerThatWasGivenUpIsNotWaitedForLongAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchQuiet(contactTime, time.Minute)
		w.answer(t, w.call(t.Context()), nil)
		<-w.call(t.Context())
		began := time.Now()
		err := <-w.call(t.Context())
		if took := time.Since(began); took != hurriedTime || !silent(err) || !w.givenUp() {
			t.Errorf("the next call ended with %v after %v, want a time-out after %v", err, took, hurriedTime)
		}
		w.answer(t, w.call(t.Context()), nil)
		began = time.Now()
		<-w.call(t.Context())
		if took := time.Since(began); took != time.Minute {
			t.Errorf("a call to a server that responds again ended after %v", took)
		}
	})
}

func TestSilenceEndsCallsWhereThereIsALimit(t *testing.T) {
	for _, tt := range []struct {
		name      string
		timeout   time.Duration
		answered  bool
		connected bool
		want      time.Duration // 0: never
	}{
		{"after an answer, without a limit", 0, true, true, 0},
		{"after an answer", 20 * time.Second, true, true, 20 * time.Second},
		{"before any", 0, false, true, contactTime},
		{"before there is a connection, which is the caller's", 0, false, false, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := watchQuiet(contactTime, tt.timeout)
			if tt.answered {
				w.answer(t, w.call(t.Context()), nil)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			one, two := w.call(ctx), w.call(ctx)
			if tt.connected {
				w.contact()
			}
			began := time.Now()
			for _, done := range []<-chan error{one, two} {
				err := <-done
				var end *silentError
				took := time.Since(began)
				switch {
				case tt.want == 0 && (errors.As(err, &end) || took != time.Hour):
					t.Errorf("%s: ended with %v after %v", tt.name, err, took)
				case tt.want > 0 && (!errors.As(err, &end) || took != tt.want || end.first == tt.answered || !silent(err)):
					t.Errorf("%s: ended with %v after %v, want a time-out after %v", tt.name, err, took, tt.want)
				}
			}
		})
	}
}

// A portCaller knows where it calls from.
type portCaller struct{ *quietCaller }

func (portCaller) LocalPort() int { return 1023 }

func TestAServerBehindIsWatchedOverAllItsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchQuiet(0, 0)
		w.connected, w.answered = true, true
		b := w.wrapBackend(gateway.Backend{Open: func(gateway.Front) (oncrpc.Caller, error) { return portCaller{w.quiet}, nil }})
		done := make(chan error, 2)
		for range 2 {
			c, err := b.Open(gateway.Front{})
			if err != nil {
				t.Fatal(err)
			}
			if got := c.(interface{ LocalPort() int }).LocalPort(); got != 1023 {
				t.Errorf("it calls from port %d", got)
			}
			go func() {
				_, err := c.Call(t.Context(), new(oncrpc.ClientCall))
				done <- err
			}()
		}
		synctest.Wait()
		w.retrying(errors.New("refused"))
		time.Sleep(brokenNotice)
		w.want(t, "server H is not responding, still trying (3 s): refused")
		for range 2 {
			w.quiet.answers <- nil
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		w.want(t, "server H responds again")
	})
}
