package nettest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// A fatal records the message of a failed test, and goes on.
type fatal struct {
	testing.TB
	message string
}

func (f *fatal) Helper()                           {}
func (f *fatal) Fatalf(format string, args ...any) { f.message = fmt.Sprintf(format, args...) }

func TestAwaitReceives(t *testing.T) {
	ch := make(chan int, 1)
	ch <- 7
	if got := Await(t, ch); got != 7 {
		t.Errorf("received %d, expected 7", got)
	}
	var wg sync.WaitGroup
	wg.Go(func() {})
	AwaitGroup(t, &wg)
	steps := 0
	Until(t, func() bool { steps++; return steps == 3 })
	if steps != 3 {
		t.Errorf("%d steps, expected 3", steps)
	}
}

func TestAwaitFailsWithTheStacksWhenNothingArrives(t *testing.T) {
	f := &fatal{TB: t}
	await(f, make(chan int), time.Nanosecond)
	if !strings.Contains(f.message, "TestAwaitFailsWithTheStacks") {
		t.Errorf("the failure is %q, expected one with stacks", f.message)
	}
}
