// This file runs something on all connections together.

package perf

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// together runs part for each of n, connections or what is said, at the same time and waits
// for all. The first error is returned, and cancels the context of the others.
func together(ctx context.Context, what string, n int, part func(ctx context.Context, i int) error) error {
	if n == 1 {
		return part(ctx, 0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := part(ctx, i); err != nil {
				cancel(fmt.Errorf("%s %d of %d: %w", what, i+1, n, err))
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// timed is consumers.together, and measures its duration.
func timed(ctx context.Context, cs consumers, n int, part func(ctx context.Context, i int) error) (time.Duration, error) {
	start := time.Now()
	err := cs.together(ctx, n, part)
	return time.Since(start), err
}
