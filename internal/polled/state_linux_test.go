package polled

import "testing"

// Every edge, and that there is no other.
func TestWhoReceivesNext(t *testing.T) {
	type outcome struct {
		to state
		do action
	}
	table := map[state]map[event]outcome{
		watched: {
			arrival: {watched, receive},
			visit:   {leased, follow},
			rest:    {watched, wake},
			closing: {closed, wake},
		},
		leased: {
			leave:   {watched, watch},
			expiry:  {watched, watch},
			rest:    {watched, wake},
			closing: {closed, wake},
		},
		closed: {},
	}
	for s := watched; s <= closed; s++ {
		for e := arrival; e <= closing; e++ {
			want, ok := table[s][e]
			if !ok {
				want = outcome{s, nothing}
			}
			if to, do := next(s, e); to != want.to || do != want.do {
				t.Errorf("%v, %v: %v and %v, expected %v and %v", s, e, to, do, want.to, want.do)
			}
		}
	}
}

// After every event a waiting read is watched or leased: during a lease the timer
// looks after the visitors, and what ends that has the poller watch, or wakes the read.
func TestNoReadIsForgotten(t *testing.T) {
	for s := watched; s <= closed; s++ {
		for e := arrival; e <= closing; e++ {
			to, do := next(s, e)
			switch {
			case s != leased && to == leased && do != follow:
				t.Errorf("%v, %v: nobody looks after the visitors", s, e)
			case s == leased && to != leased && do != watch && do != wake:
				t.Errorf("%v, %v: nobody looks after the read", s, e)
			}
		}
	}
}
