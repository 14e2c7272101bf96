// This file ends a command when a signal asks for it: in good order if that is
// quick, and otherwise without.

package main

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"
)

// endTime is how long after the first signal a command may go on, to clear up.
// Servers ask for more.
const endTime = 850 * time.Millisecond

// lastTime is what a command that is not waited for any more may still have told.
const lastTime = 50 * time.Millisecond

// signalStatus is the exit status of commands that a signal has ended, without the
// signal's number: what shells show of such commands.
const signalStatus = 128

// A signalError is why a context has ended that a signal ended. It is a
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

// signaled is the signal that has ended ctx, if one has.
func signaled(ctx context.Context) (e signalError, ok bool) {
	e, ok = context.Cause(ctx).(signalError)
	return e, ok
}

// An ending is what a command says about its end. It travels in the command's
// context.
type ending struct {
	mu    sync.Mutex
	grace time.Duration
	last  []func()
}

type endingKey struct{}

// endWithin lets the command of ctx go on for d after the first signal.
func endWithin(ctx context.Context, d time.Duration) {
	if e, ok := ctx.Value(endingKey{}).(*ending); ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.grace = d
	}
}

// atAbruptEnd has f called when the command of ctx is not waited for any more. What
// the command does may still be under way then.
func atAbruptEnd(ctx context.Context, f func()) {
	if e, ok := ctx.Value(endingKey{}).(*ending); ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.last = append(e.last, f)
	}
}

// leave ends the wait for the command.
func (e *ending) leave() {
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

// untilSignals runs a command and returns its exit status. The first signal ends
// the command's context. When that does not end the command in time, as it waits
// for something that knows no context, or when there is another signal, it is left
// alone: the caller is to end the process.
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
		e.leave()
		return signalError{s}.status()
	case <-late.C:
		e.leave()
		end, _ := signaled(ctx)
		return end.status()
	}
}
