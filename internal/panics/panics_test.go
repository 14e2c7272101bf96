package panics_test

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/internal/panics"
)

// A goroutine does what one of the core does.
func goroutine(f func()) (over <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer panics.Recover()
		f()
	}()
	return done
}

func breakDown() { panic("a test") }

// The handler gets the value, and sees the stack of the panic.
func TestTheHandlerGetsThePanic(t *testing.T) {
	defer panics.Handle(nil)
	var got any
	var stack string
	panics.Handle(func(v any) { got, stack = v, string(debug.Stack()) })
	<-goroutine(breakDown)
	if got != "a test" || !strings.Contains(stack, "breakDown") {
		t.Errorf("%v, expected the value of the panic; its stack:\n%s", got, stack)
	}
}

func TestAGoroutineThatEndsIsNoPanic(t *testing.T) {
	defer panics.Handle(nil)
	panics.Handle(func(v any) { t.Errorf("the handler was called: %v", v) })
	<-goroutine(func() {})
	<-goroutine(runtime.Goexit)
}

// Without a handler a program ends as if nothing had been deferred: its last words
// are the panic and the stack of it, and nothing was recovered.
func TestWithoutAHandlerAPanicIsGos(t *testing.T) {
	if os.Getenv("PANICS_TEST") != "" {
		<-goroutine(breakDown)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(slices.Clone(os.Environ()), "PANICS_TEST=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("the program survived:\n%s", out)
	}
	says := string(out)
	if !strings.Contains(says, "panic: a test\n") || !strings.Contains(says, "breakDown") || strings.Contains(says, "recovered") {
		t.Errorf("the panic was not left as it was:\n%s", says)
	}
}
