package turns

import "testing"

// expects has x begin n Reads for which more is expected, with something coming while the
// reader polls or not, and returns in how many it polled.
func expects(x *expectation, n int, comes bool) (polled int) {
	for range n {
		x.soon = true
		switch {
		case !x.due():
			continue
		case comes:
			x.came()
		default:
			x.failed()
		}
		polled++
	}
	return polled
}

func TestAReaderPollsForWhatIsExpectedAsLongAsItPays(t *testing.T) {
	var x expectation
	for _, step := range []struct {
		reads  int
		comes  bool
		polled int
		name   string
	}{
		{10 * expectProbe, false, 10, "nothing comes: it probes"},
		{expectProbe, true, 1, "something does: a probe finds out"},
		{10 * (expectRun + 1), true, 10 * expectRun, "it goes on, and parks now and then"},
		{expectCredit, false, expectCredit, "nothing comes any more"},
		{expectProbe, false, 1, "it has given up"},
	} {
		if got := expects(&x, step.reads, step.comes); got != step.polled {
			t.Errorf("%s: it polls in %d of %d Reads, expected %d", step.name, got, step.reads, step.polled)
		}
	}
	x.credit = expectCredit
	if x.due() {
		t.Error("it polls although nothing is expected")
	}
}

// After Expect the reader finds what comes soon without waiting, once. A Source that wakes
// it by itself has it wait.
func TestAReaderPollsOnceAfterExpect(t *testing.T) {
	turns := New(impatient{newPipe()}, nil)
	turns.expect.credit = expectCredit
	turns.Begin()
	defer turns.End()
	rested := func() bool {
		u := &unwilling{attempts: 2}
		if n, err := turns.Read(u, false); n != 1 || err != nil {
			t.Fatalf("%d octets, %v", n, err)
		}
		return u.rested
	}
	if !rested() {
		t.Error("it polls before anything is expected")
	}
	turns.Expect()
	if rested() {
		t.Error("it waits although something is expected")
	}
	if !rested() {
		t.Error("it polls again")
	}
	turns.Stay()
	turns.Expect()
	if !rested() {
		t.Error("it polls although it is woken otherwise")
	}
}
