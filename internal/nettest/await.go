// This file waits for what tests expect, with a limit.

package nettest

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// awaitLimit is longer than a slow machine needs, and shorter than go test's own limit.
const awaitLimit = 3 * time.Minute

// Await receives from ch. If nothing arrives within three minutes it fails the test, with the
// stacks of all goroutines. Only the test's own goroutine may call it. In a bubble of
// testing/synctest use a plain receive, which fails at once if nothing can arrive.
func Await[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	return await(t, ch, awaitLimit)
}

// AwaitGroup waits for wg as Await does for a channel.
func AwaitGroup(t testing.TB, wg *sync.WaitGroup) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	await(t, done, awaitLimit)
}

// Until calls step until it returns true, or fails the test as Await does.
func Until(t testing.TB, step func() bool) {
	t.Helper()
	for end := time.Now().Add(awaitLimit); !step(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("did not happen within %v\n%s", awaitLimit, stacks())
		}
	}
}

func await[T any](t testing.TB, ch <-chan T, limit time.Duration) (v T) {
	t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case v = <-ch:
	case <-timer.C:
		t.Fatalf("nothing arrived within %v\n%s", limit, stacks())
	}
	return v
}

// stacks returns the stacks of all goroutines.
func stacks() []byte {
	buf := make([]byte, 1<<16)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			return buf[:n]
		}
		buf = make([]byte, 2*len(buf))
	}
}
