package rpcmodel_test

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
)

var (
	stepsFlag = flag.Int("model.steps", 120, "steps of each run")
	seedFlag  = flag.Uint64("model.seed", 0, "seed of the run; 0 is one run each of seeds 1 to 6")
)

// Random calls with random chunks get the replies that the model says, octet for
// octet.
//
// Claims: P8166-3.4.5-1 P8166-3.4.5.2-2 P8166-3.4.5.2-3 P8166-3.4.6-4 P8166-3.4.6.2-2 P8166-3.4.6.2-3 P8166-3.5.3-6 P8166-3.5.3-8
// Claims: P8166-4.3.2-1 P8166-4.3.2.3-2 P8166-4.3.2.3-3 P8166-8.1-1 P-3.4-14 P-3.6-1 P-3.7-3
func TestEveryOctetOfACallAndItsReplyArrives(t *testing.T) {
	seeds := []uint64{*seedFlag}
	if *seedFlag == 0 {
		seeds = []uint64{1, 2, 3, 4, 5, 6}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed)
				for w.step = 1; w.step <= *stepsFlag && !t.Failed(); w.step++ {
					w.act()
				}
				if t.Failed() {
					t.Logf("repeat with -model.seed %d -model.steps %d", seed, w.step)
				}
				w.close()
				t.Logf("%d steps: %v", w.step-1, w.counts)
			})
		})
	}
}
