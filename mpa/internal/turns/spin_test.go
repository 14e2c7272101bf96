package turns

import (
	"testing"
	"time"
)

// An unwilling is a Reader that finds octets at the last of so many attempts.
type unwilling struct {
	attempts  int
	rested    bool
	meanwhile func()
}

func (u *unwilling) Try(uintptr) (int, error) {
	if u.attempts--; u.attempts > 0 {
		if u.meanwhile != nil {
			u.meanwhile()
		}
		return 0, ErrNothing
	}
	return 1, nil
}

func (u *unwilling) Rest() { u.rested = true }

// An impatient is a Source that does not wait: it calls again at once.
type impatient struct{ *pipe }

func (impatient) Read(step func(uintptr) bool) error {
	for !step(0) {
	}
	return nil
}

// A reader that spins finds what comes soon without waiting, in a program with one
// processor or several. It waits where visitors poll.
func TestAReaderThatSpinsPollsBeforeItWaits(t *testing.T) {
	yields := 0
	for _, tt := range []struct {
		name   string
		spin   time.Duration
		yield  func()
		visits bool
		waits  bool
	}{
		{name: "no spin", waits: true},
		{name: "spin", spin: time.Hour},
		{name: "spin on one processor", spin: time.Hour, yield: func() { yields++ }},
		{name: "spin beside a visitor", spin: time.Hour, visits: true, waits: true},
		{name: "the time is over", spin: 1, waits: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			turns := New(impatient{newPipe()}, tt.yield)
			turns.Spin(tt.spin)
			u := &unwilling{attempts: 1000}
			if tt.visits {
				u.meanwhile = turns.tally.visit
			}
			turns.Begin()
			n, err := turns.Read(u)
			if n != 1 || err != nil || u.rested != tt.waits {
				t.Errorf("%d octets, %v, waited %t, expected %t", n, err, u.rested, tt.waits)
			}
			turns.End()
		})
	}
	if yields != 1000/pollsToYield {
		t.Errorf("others were let run %d times, expected every %d polls", yields, pollsToYield)
	}
}
