package nettest

import (
	"fmt"
	"strings"
	"testing"
)

// A recorder takes the place of a test whose outcome is under test.
type recorder struct {
	testing.TB
	cleanup func()
	failed  []string
}

func (r *recorder) Cleanup(f func()) { r.cleanup = f }
func (r *recorder) Errorf(format string, args ...any) {
	r.failed = append(r.failed, fmt.Sprintf(format, args...))
}

func TestGoroutinesLeftBehindFailTheTest(t *testing.T) {
	CheckLeaks(t) // and it waits for those that are to end
	old, stop := make(chan struct{}), make(chan struct{})
	defer close(stop)
	defer close(old)
	linger(old)
	r := &recorder{TB: t}
	checkLeaks(r, 0)
	r.cleanup()
	if len(r.failed) != 0 {
		t.Errorf("without a leak: %q", r.failed)
	}
	linger(stop)
	r.cleanup()
	if len(r.failed) != 1 || !strings.Contains(r.failed[0], "nettest.linger") {
		t.Errorf("with a leak: %q", r.failed)
	}
}

// linger starts a goroutine that ends when stop is closed.
func linger(stop chan struct{}) {
	started := make(chan struct{})
	go func() {
		close(started)
		<-stop
	}()
	<-started
}
