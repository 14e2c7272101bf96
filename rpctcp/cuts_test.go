package rpctcp

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/oncrpc"
)

// TestCallsComeThroughRandomCuts has several goroutines make calls, of all sizes
// and in pieces, some of which are called back for, over connections that are cut
// anywhere, delayed and chopped. Some calls are given up. All others come back
// with the right octets.
func TestCallsComeThroughRandomCuts(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) { comeThrough(t, seed) })
	}
}

func comeThrough(t *testing.T, seed uint64) {
	const calls = 5
	// Handlers that wait for Request.Back have to be fewer than calls: calls that
	// were given up are among them.
	backs := make(chan struct{}, calls-1)
	s := newServer(t, ServerConfig{Memory: 4 << 20, Calls: calls, Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		if r.Proc != 2 {
			return echo(ctx, r)
		}
		select {
		case backs <- struct{}{}:
			defer func() { <-backs }()
			back, err := r.Back.Call(ctx, &oncrpc.ClientCall{Args: [][]byte{r.Args}})
			if err != nil {
				return nil, oncrpc.ErrNoReply // the connection has ended
			}
			back.Release()
		default:
		}
		return echo(ctx, r)
	})})
	// The seed decides what is done; when, with respect to what else, does not
	// matter.
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1))
	roll := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	var serving sync.WaitGroup
	c := newClient(t, ClientConfig{Calls: 6, Reverse: echo, Dial: func(context.Context) (net.Conn, error) {
		if roll(10) == 0 {
			return nil, errors.New("refused")
		}
		ours, theirs := iwarptest.BufferedPipe(100 + roll(100_000))
		for _, end := range []*iwarptest.Conn{ours, theirs} {
			end.Delay(time.Duration(roll(3)) * time.Millisecond)
			end.ReadSizes(iwarptest.RandomSizes(uint64(roll(1e9)), 100+roll(50_000)))
			if n := uint64(roll(200_000)); roll(2) == 0 {
				end.FinAfter(n)
			} else {
				end.ResetAfter(n)
			}
		}
		serving.Go(func() { _ = s.ServeConn(context.Background(), theirs) })
		return ours, nil
	}})

	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range 10 {
				args := make([]byte, 4*roll(1<<roll(15)))
				first := roll(256)
				for i := range args {
					args[i] = byte(first + i*i)
				}
				cut := 0
				if len(args) > 0 {
					cut = roll(len(args))
				}
				call := &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 7, Proc: uint32(1 + roll(2))}, Args: [][]byte{args[:cut], args[cut:]}}
				if roll(2) == 0 {
					call.Alloc = func(n int) []byte { return make([]byte, n) }
				}
				ctx, cancel := context.WithCancel(context.Background())
				if roll(4) == 0 {
					ctx, cancel = context.WithTimeout(ctx, time.Duration(roll(10))*time.Millisecond)
				}
				r, err := c.Call(ctx, call)
				if err == nil {
					if !bytes.Equal(r.Results, args) {
						t.Errorf("seed %d: %d octets came back as %d others", seed, len(args), len(r.Results))
					}
					r.Release()
				} else if ctx.Err() == nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				cancel()
			}
		})
	}
	callers.Wait()
	c.Close()
	serving.Wait()
}
