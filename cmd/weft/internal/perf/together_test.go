package perf

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestTheFirstThatFailsEndsTheOthers(t *testing.T) {
	broken := errors.New("broken")
	err := together(t.Context(), "connection", 3, func(ctx context.Context, i int) error {
		if i == 1 {
			return broken
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "connection 2 of 3") {
		t.Errorf("together returned %v, want that connection 2 of 3 is %v", err, broken)
	}
}

func TestAllAreUnderWayAtTheSameTime(t *testing.T) {
	const n = 4
	came, all := make(chan int, n), make(chan struct{})
	go func() {
		for range n {
			<-came
		}
		close(all)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	elapsed, err := timed(ctx, nil, n, func(ctx context.Context, i int) error {
		came <- i
		select {
		case <-all:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil || elapsed <= 0 {
		t.Errorf("timed returned %v and %v", elapsed, err)
	}
}

func TestTheEndOfTheContextIsTheError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	cancel(over)
	err := together(ctx, "connection", 2, func(ctx context.Context, _ int) error { return context.Cause(ctx) })
	if !errors.Is(err, over) {
		t.Errorf("together returned %v, want %v", err, over)
	}
}
