package turns

import (
	"sync"
	"testing"
	"testing/synctest"
)

// expects has x begin n Reads for which more is expected, with something coming while the
// reader polls or not, and returns in how many it polled.
func expects(x *expectation, n int, comes bool) (polled int) {
	for range n {
		x.soon.Store(true)
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
		{10 * oddsProbe, false, 10, "nothing comes: it probes"},
		{oddsProbe, true, 1, "something does: a probe finds out"},
		{10 * (expectRun + 1), true, 10 * expectRun, "it goes on, and parks now and then"},
		{oddsCredit, false, oddsCredit, "nothing comes any more"},
		{oddsProbe, false, 1, "it has given up"},
	} {
		if got := expects(&x, step.reads, step.comes); got != step.polled {
			t.Errorf("%s: it polls in %d of %d Reads, expected %d", step.name, got, step.reads, step.polled)
		}
	}
	x.credit = oddsCredit
	if x.due() {
		t.Error("it polls although nothing is expected")
	}
}

// After Expect the reader finds what comes soon without waiting, once. A Source that wakes
// it by itself has it wait.
func TestAReaderPollsOnceAfterExpect(t *testing.T) {
	turns := New(impatient{newPipe()}, nil)
	turns.expect.credit = oddsCredit
	turns.Begin()
	defer turns.End()
	rested := func() bool {
		u := &unwilling{attempts: 2}
		if n, err := turns.Read(u); n != 1 || err != nil {
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

// The first Read of a new connection polls, the second does not, and none when it has not paid.
func TestAReaderPollsAtTheBeginningOfAStreamAsLongAsItPays(t *testing.T) {
	odds := NewOdds()
	rested := func(reads, attempts int) (first, last bool) {
		turns := New(impatient{newPipe()}, nil)
		turns.openings = odds
		turns.Open()
		defer turns.End()
		for i := range reads {
			u := &unwilling{attempts: attempts}
			if n, err := turns.Read(u); n != 1 || err != nil {
				t.Fatalf("%d octets, %v", n, err)
			}
			if last = u.rested; i == 0 {
				first = u.rested
			}
		}
		return first, last
	}
	if first, last := rested(2, 2); first || !last {
		t.Errorf("waited in the first Read %t, in the second %t, expected false and true", first, last)
	}
	for range oddsCredit {
		odds.Note(false)
	}
	waited := 0
	for range oddsProbe - 1 {
		if first, _ := rested(1, 2); first {
			waited++
		}
	}
	if waited == 0 {
		t.Error("it polls although that has not paid")
	}
	odds.Note(true)
	if first, _ := rested(1, 2); first {
		t.Error("it waits although polling has paid")
	}
}

// Where another program ran on the processor meanwhile, polling has not paid, whatever came.
func TestPollingDoesNotPayWhereOthersWantTheProcessor(t *testing.T) {
	for _, shared := range []bool{false, true} {
		x := expectation{first: &Odds{}, shared: shared}
		x.came()
		if paid := x.first.odds.credit > 0; paid == shared {
			t.Errorf("shared %t: it has paid %t", shared, paid)
		}
	}
}

// In a bubble of testing/synctest the clock stands still while the reader polls.
func TestAReaderStopsPollingThoughTheClockStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := New(impatient{newPipe()}, nil)
		turns.openings = NewOdds()
		turns.Open()
		defer turns.End()
		u := &unwilling{attempts: 10 * MostPolls}
		if n, err := turns.Read(u); n != 1 || err != nil || !u.rested {
			t.Errorf("%d octets, %v, waited %t", n, err, u.rested)
		}
	})
}

// Who processes what a stream has set aside has not got the token, and says what it expects all the
// same. (The race detector notices where it may not.)
func TestAnybodyMayExpect(t *testing.T) {
	turns := New(newPipe(), nil)
	var others sync.WaitGroup
	others.Go(func() {
		for range 1000 {
			turns.Expect()
		}
	})
	for range 1000 {
		turns.pollTime()
	}
	others.Wait()
	if !turns.expect.soon.Load() {
		turns.Expect()
		if !turns.expect.soon.Load() {
			t.Error("what is expected is forgotten")
		}
	}
}
