package turns

import "testing"

// waits has y wait n times, with something coming after a yield or not, and returns
// how often it tried.
func waits(y *yielder, n int, comes bool) (tried int) {
	for range n {
		if !y.due() {
			continue
		}
		tried++
		if comes {
			y.came(yieldLong / 2)
		} else {
			y.failed()
		}
	}
	return tried
}

func TestAReaderYieldsAsLongAsItPays(t *testing.T) {
	y := yielder{on: true}
	for _, step := range []struct {
		waits int
		comes bool
		tried int
		name  string
	}{
		{10 * yieldProbe, false, 10, "nobody is there: it probes"},
		{yieldProbe, true, 1, "somebody is: a probe finds out"},
		{10 * (yieldRun + 1), true, 160, "it goes on, and parks now and then"},
		{yieldCredit, false, yieldCredit, "nobody is there any more"},
		{yieldProbe, false, 1, "it has given up"},
	} {
		if got := waits(&y, step.waits, step.comes); got != step.tried {
			t.Errorf("%s: it yields %d times in %d waits, want %d", step.name, got, step.waits, step.tried)
		}
	}
}

func TestAReaderThatGetsTheProcessorBackLateStopsYielding(t *testing.T) {
	y := yielder{on: true, credit: yieldCredit}
	y.came(2 * yieldLong)
	if y.pays() || waits(&y, yieldProbe-1, true) > 0 {
		t.Error("it goes on")
	}
}

func TestAReaderOfManyProcessorsDoesNotYield(t *testing.T) {
	if n := waits(&yielder{}, 10*yieldProbe, true); n > 0 {
		t.Errorf("it yields %d times", n)
	}
}
