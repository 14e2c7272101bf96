// This file ends a command after a signal: cleanly if that is quick, and otherwise at
// once.

package main

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"
)

// endTime is how long a command may clean up after the first signal. Servers ask for
// more.
const endTime = 850 * time.Millisecond

// lastTime limits the functions of atAbruptEnd.
const lastTime = 50 * time.Millisecond

// signalStatus plus the number of the signal is the exit status, as in shells.
const signalStatus = 128

// A signalError is the cause of a context that a signal has ended. It is a
// context.Canceled.
type signalError struct{ signal os.Signal }

func (e signalError) Error() string {
	if e.signal == os.Interrupt {
		return "interrupted"
	}
	return "terminated"
}

func (e signalError) Is(target error) bool { return target == context.Canceled }

// status is the exit status.
func (e signalError) status() int {
	if n, ok := e.signal.(syscall.Signal); ok {
		return signalStatus + int(n)
	}
	return signalStatus + int(syscall.SIGINT)
}

// signaled returns the signal that has ended ctx, if any.
func signaled(ctx context.Context) (e signalError, ok bool) {
	e, ok = context.Cause(ctx).(signalError)
	return e, ok
}

// An ending holds what a command wants at its end. It is in the context of the command.
type ending struct {
	mu    sync.Mutex
	grace time.Duration
	last  []func()
	well  bool
}

type endingKey struct{}

// endWithin gives the command of ctx the time d after the first signal.
func endWithin(ctx context.Context, d time.Duration) {
	if e, ok := ctx.Value(endingKey{}).(*ending); ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.grace = d
	}
}

// ended makes the exit status of the command of ctx 0 in spite of the signal, because the
// signal is its ordinary end.
func ended(ctx context.Context) {
	if e, ok := ctx.Value(endingKey{}).(*ending); ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.well = true
	}
}

// endedWell reports whether the command of ctx has called ended.
func endedWell(ctx context.Context) bool {
	e, ok := ctx.Value(endingKey{}).(*ending)
	if !ok {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.well
}

// atAbruptEnd registers f, which is called if the command of ctx does not end in time.
// The command may still be running then.
func atAbruptEnd(ctx context.Context, f func()) {
	if e, ok := ctx.Value(endingKey{}).(*ending); ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.last = append(e.last, f)
	}
}

// runLast calls the functions of atAbruptEnd, and waits for them for lastTime.
func (e *ending) runLast() {
	e.mu.Lock()
	last := e.last
	e.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, f := range last {
			f()
		}
	}()
	late := time.NewTimer(lastTime)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C: // standard error is stuck, too
	}
}

func (e *ending) limit() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.grace
}

// untilSignals runs a command and returns its exit status. The first signal ends the
// context of the command. If the command does not end in time, or after a second
// signal, untilSignals returns while it is running: the caller has to exit the process.
func untilSignals(signals <-chan os.Signal, command func(context.Context) int) int {
	e := &ending{grace: endTime}
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), endingKey{}, e))
	defer cancel(nil)
	done := make(chan int, 1)
	go func() { done <- command(ctx) }()
	select {
	case status := <-done:
		return status
	case s := <-signals:
		cancel(signalError{s})
	}
	late := time.NewTimer(e.limit())
	defer late.Stop()
	select {
	case status := <-done:
		return status
	case s := <-signals:
		e.runLast()
		return signalError{s}.status()
	case <-late.C:
		e.runLast()
		end, _ := signaled(ctx)
		return end.status()
	}
}
