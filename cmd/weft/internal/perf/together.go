package perf

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// together carries out part for each of n connections at the same time and
// returns when all have ended. The first that fails is the error, and ends the
// context of the others.
func together(ctx context.Context, n int, part func(ctx context.Context, i int) error) error {
	if n == 1 {
		return part(ctx, 0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := part(ctx, i); err != nil {
				cancel(fmt.Errorf("connection %d of %d: %w", i+1, n, err))
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// timed is together with how long it took.
func timed(ctx context.Context, n int, part func(ctx context.Context, i int) error) (time.Duration, error) {
	start := time.Now()
	err := together(ctx, n, part)
	return time.Since(start), err
}
