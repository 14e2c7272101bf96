// The choice of whose memory is taken back.

package fairness

import (
	"cmp"
	"slices"
	"time"
)

// A holding is the memory of an account.
type holding struct {
	account *Account
	share   *use
	octets  int64
	Stake
}

// A want is a request that has to wait.
type want struct {
	account     *Account
	share       *use
	n           int64
	waited      time.Duration
	limit, used int64 // of the memory; used is without what evicted accounts hold
}

// evictees returns the indices of the holdings to evict for w, none if it has to wait,
// and how much is used without them.
//
//   - First, holdings whose peers have been idle for Patience or longer, of w's own share
//     and of shares that have more than it would have. Largest share first, and within
//     it the longest idle.
//   - Then also active and stuck holdings, of other shares that would still have at least
//     as much as w's.
//   - If all memory is held by accounts that wait for more, one of those, after twice
//     the time.
func evictees(all []holding, w want) (who []int, used int64) {
	octets := make(map[*use]int64)
	waits := int64(0)
	for _, h := range all {
		octets[h.share] += h.octets
		if h.Stuck || h.account == w.account {
			waits += h.octets
		}
	}
	own := octets[w.share]
	idle := func(h *holding) bool {
		return h.account != w.account && h.Theirs && h.Idle >= Patience && (h.share == w.share || octets[h.share] > own+w.n)
	}
	over := func(h *holding) bool {
		return (h.Theirs || h.Stuck) && h.share != w.share && octets[h.share]-h.octets >= min(own+w.n, w.limit/2)
	}
	stuck := func(h *holding) bool { return h.account != w.account && h.Stuck && waits >= w.used }
	for {
		if w.fits(octets[w.share]) {
			return who, w.used
		}
		i := pick(all, who, octets, idle)
		if i < 0 {
			i = pick(all, who, octets, over)
		}
		if i < 0 && len(who) == 0 && w.waited >= 2*Patience {
			i = pick(all, who, octets, stuck)
		}
		if i < 0 {
			return who, w.used
		}
		who = append(who, i)
		h := &all[i]
		octets[h.share] -= h.octets
		w.used -= h.octets
	}
}

// fits reports whether there is room, for a share that has so many octets.
func (w *want) fits(octets int64) bool {
	if w.used <= 0 {
		return true
	}
	return w.used+w.n <= w.limit && (w.n <= Tiny || octets+w.n <= spare(w.n)*(w.limit-w.used-w.n))
}

// pick returns the index of the first holding to evict of those that may be; -1 if there
// is none.
func pick(all []holding, gone []int, octets map[*use]int64, may func(*holding) bool) int {
	best := -1
	for i := range all {
		h := &all[i]
		if h.octets == 0 || slices.Contains(gone, i) || !may(h) {
			continue
		}
		if best < 0 || h.compare(&all[best], octets) < 0 {
			best = i
		}
	}
	return best
}

// compare is negative if h is evicted before other.
func (h *holding) compare(other *holding, octets map[*use]int64) int {
	return cmp.Or(
		-cmp.Compare(octets[h.share], octets[other.share]),
		-cmp.Compare(h.Idle, other.Idle),
		-cmp.Compare(h.octets, other.octets),
	)
}
