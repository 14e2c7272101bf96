package main

import (
	"context"
	"io"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestASignalEndsACommandInOrderAndIsItsStatus(t *testing.T) {
	for signal, want := range map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143} {
		synctest.Test(t, func(t *testing.T) {
			signals := make(chan os.Signal, 1)
			signals <- signal
			var why error
			status := untilSignals(signals, func(ctx context.Context) int {
				<-ctx.Done()
				why = context.Cause(ctx)
				return run(ctx, []string{"info"}, io.Discard, io.Discard)
			})
			if status != want || why.(signalError).signal != signal {
				t.Errorf("%v: status %d, cause %v; want %d", signal, status, why, want)
			}
		})
	}
}

func TestACommandThatASignalDoesNotEndIsLeftWithinASecond(t *testing.T) {
	for name, grace := range map[string]time.Duration{"a command": 0, "a server": 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			signals := make(chan os.Signal, 1)
			stuck := make(chan struct{})
			defer close(stuck)
			announced := false
			began := time.Now()
			status := untilSignals(signals, func(ctx context.Context) int {
				if grace > 0 {
					endWithin(ctx, grace)
				}
				atAbruptEnd(ctx, func() { announced = true })
				signals <- syscall.SIGTERM
				<-stuck // knows no context
				return 0
			})
			limit := max(time.Second, grace)
			if took := time.Since(began); status != 143 || took > limit || took < grace || !announced {
				t.Errorf("%s: status %d after %v, announced %v; want 143 within %v", name, status, took, announced, limit)
			}
		})
	}
}

func TestASecondSignalEndsACommandAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 2)
		stuck := make(chan struct{})
		defer close(stuck)
		began := time.Now()
		status := untilSignals(signals, func(ctx context.Context) int {
			endWithin(ctx, time.Hour)
			signals <- syscall.SIGTERM
			signals <- os.Interrupt
			<-stuck
			return 0
		})
		if took := time.Since(began); status != 130 || took != 0 {
			t.Errorf("status %d after %v, want 130 at once", status, took)
		}
	})
}

func TestACommandWithoutASignalHasItsOwnStatus(t *testing.T) {
	if got := untilSignals(nil, func(context.Context) int { return 7 }); got != 7 {
		t.Errorf("status %d, want 7", got)
	}
}
