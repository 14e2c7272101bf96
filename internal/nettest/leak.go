// This file finds goroutines that a test has left behind.

package nettest

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"
)

// module is in the stacks of the goroutines that CheckLeaks looks for.
const module = "github.com/weft-rdma/weft/"

// patience is how long goroutines may take to end.
const patience = 10 * time.Second

// CheckLeaks fails the test if, at its end, goroutines of this module run that did
// not run when CheckLeaks was called. Call it first, so that it runs after the other
// cleanups, and not in tests that run in parallel with others. A bubble of
// testing/synctest needs no such check: it ends after its goroutines.
func CheckLeaks(t testing.TB) {
	t.Helper()
	checkLeaks(t, patience)
}

func checkLeaks(t testing.TB, patience time.Duration) {
	before := goroutines()
	t.Cleanup(func() {
		// Goroutines that are to end need a moment to do so.
		end := time.Now().Add(patience)
		for {
			left := goroutines()
			for id := range before {
				delete(left, id)
			}
			if len(left) == 0 {
				return
			}
			if time.Now().After(end) {
				for _, stack := range left {
					t.Errorf("goroutine left behind:\n%s", stack)
				}
				return
			}
			runtime.Gosched()
		}
	})
}

// goroutines returns the stacks of the module's goroutines by the number in their
// first line, without those that run tests.
func goroutines() map[string]string {
	found := make(map[string]string)
	for stack := range bytes.SplitSeq(stacks(), []byte("\n\n")) {
		s := string(stack)
		if strings.Contains(s, module) && !strings.Contains(s, "testing.tRunner(") && !strings.Contains(s, "testing.runFuzzing(") {
			id, _, _ := strings.Cut(s, " [") // "goroutine 7"
			found[id] = s
		}
	}
	return found
}
