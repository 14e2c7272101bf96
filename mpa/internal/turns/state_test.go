package turns

import (
	"maps"
	"testing"
)

// Every edge, and that there is no other.
func TestWhoWaitsNext(t *testing.T) {
	type edges map[Event]State
	table := map[State]edges{
		Reading: {Sleep: Free, Come: Wanted, Quit: Wanted, Close: Closed},
		Wanted:  {Found: Reading, Close: Closed},
		Free:    {Come: Led, Quit: Reading, Recall: Reading, Neglect: Lapsed, Close: Closed},
		Led:     {Done: Free, CallOff: Reading, Come: LedLast, Quit: LedLast, Close: Closed},
		LedLast: {Done: Reading, CallOff: Reading, Close: Closed},
		Lapsed:  {Wake: Reading, Come: Wanted, Quit: Wanted, Close: Closed},
		Closed:  {},
	}
	for s := Reading; s <= Closed; s++ {
		for e := Sleep; e <= Close; e++ {
			want, ok := table[s][e]
			if !ok {
				want = s
			}
			if got := next(s, e); got != want {
				t.Errorf("%v, %v: %v, expected %v", s, e, got, want)
			}
		}
	}
}

// Whatever happens: while somebody sleeps until there are octets somebody else waits for
// them, and the reader is woken by each event that ends its sleep.
func TestNobodySleepsWhileNobodyWaits(t *testing.T) {
	for s := Reading; s <= Closed; s++ {
		for _, e := range []Event{Come, Quit} {
			if to := next(s, e); to == Free || to == Led && s != Free {
				t.Errorf("%v, %v: %v, in which nobody waits for who has gone to sleep", s, e, to)
			}
		}
		if to := next(s, Done); s == LedLast && to.asleep() {
			t.Errorf("%v: %v, expected that the reader is next", s, to)
		}
		if to := next(s, Sleep); s != Reading && to != s {
			t.Errorf("%v: the reader sleeps in %v", s, to)
		}
	}
}

// A reader that stays never sleeps, so that nobody leads.
func TestAReaderThatStaysReadsOrIsWanted(t *testing.T) {
	reached := map[State]bool{Reading: true}
	for todo := []State{Reading}; len(todo) > 0; todo = todo[1:] {
		for e := Sleep + 1; e <= Close; e++ {
			if to := next(todo[0], e); !reached[to] {
				reached[to] = true
				todo = append(todo, to)
			}
		}
	}
	if want := map[State]bool{Reading: true, Wanted: true, Closed: true}; !maps.Equal(reached, want) {
		t.Errorf("states %v, expected %v", reached, want)
	}
}
