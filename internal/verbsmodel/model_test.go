package verbsmodel_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

var (
	stepsFlag = flag.Int("model.steps", 3000, "steps of each run")
	seedFlag  = flag.Uint64("model.seed", 0, "seed of the run; 0 is one run each of seeds 1 to 6")
)

// Random sequences of verbs and work requests come out as the model says.
func TestTheVerbsDoWhatTheModelSays(t *testing.T) {
	seeds := []uint64{*seedFlag}
	if *seedFlag == 0 {
		seeds = []uint64{1, 2, 3, 4, 5, 6}
	}
	for _, seed := range seeds {
		n := 2 + int(seed%3)
		t.Run(fmt.Sprintf("seed %d, %d queue pairs", seed, n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed, n)
				defer func() {
					if t.Failed() {
						t.Logf("before:\n%s", strings.Join(w.story, "\n"))
						t.Logf("repeat with -model.seed %d -model.steps %d", seed, w.step)
					}
				}()
				for w.step = 1; w.step <= *stepsFlag; w.step++ {
					w.act()
					w.check()
				}
				w.poll(0)
				t.Logf("%d steps: %v", *stepsFlag, w.counts)
			})
		})
	}
}
