// The choice of whose place is taken when all are.

package fairness

import "time"

// Recent is how long after its last activity a holder still counts as active.
const Recent = time.Second

// A Standing describes what the holder of a place is doing.
type Standing struct {
	// Spoken is set once a call of the holder was executed. Until then it may be one
	// of those that connect and say nothing.
	Spoken bool

	// Working is set while this side has to act: it executes a call.
	Working bool

	// Since is the time of the peer's last activity: a call arrived, or part of a
	// long one, or the peer received part of a reply. At first it is when the peer
	// connected.
	Since time.Time
}

// timeToSpeak is how long a new holder may be silent, as long as few are.
const timeToSpeak = 100 * time.Millisecond

// lazy reports whether the holder has been inactive for too long.
func (s *Standing) lazy(now time.Time, crowd bool) bool {
	switch {
	case s.Working:
		return false
	case s.Spoken:
		return now.Sub(s.Since) >= Recent
	}
	return crowd || now.Sub(s.Since) >= timeToSpeak
}

// A tally counts the places of a share. Its lazy holders are counted for each choice.
type tally struct{ places, lazy int }

// A candidate is the holder of one of the places.
type candidate struct {
	Standing
	share *tally
	idles bool // is lazy; set by count
}

// choose returns the index of the holder to evict when all of limit places are taken and
// a newcomer of the share own asks for one; -1 means that the newcomer is refused. The
// newcomer is counted in own.places.
//
//   - A share that has fewer places than the newcomer's keeps them.
//   - Of the others, the share with the most lazy holders loses one of them. Shares with
//     equally many count as one.
//   - If no holder is lazy, the share with the most places loses the holder that has been
//     inactive for longest, if it has more places than the newcomer's would have.
//   - If no share has more, the holder goes that has been inactive for longest, among
//     those that are not being served and were silent for timeToSpeak.
//
// Holders that have never spoken are lazy from the beginning if they are a crowd, more
// than a quarter of all; otherwise after timeToSpeak.
func choose(all []candidate, own *tally, limit int, now time.Time) int {
	silent := 0
	for i := range all {
		if c := &all[i]; !c.Spoken && !c.Working {
			silent++
		}
	}
	crowd := silent > limit/4
	who := laziest(all, own, crowd, now)
	if who < 0 {
		who = busiest(all, own)
	}
	if who < 0 && !crowd {
		who = laziest(all, own, true, now)
	}
	if who < 0 {
		who = eldest(all, own, now)
	}
	return who
}

// count counts the lazy holders, and returns the largest number that a share has of
// those that may be evicted.
func count(all []candidate, own *tally, crowd bool, now time.Time) (most int) {
	for i := range all {
		all[i].share.lazy = 0
	}
	own.lazy = 1 // the newcomer, which has not spoken
	for i := range all {
		c := &all[i]
		if c.idles = c.lazy(now, crowd); c.idles {
			c.share.lazy++
		}
	}
	for i := range all {
		if c := &all[i]; c.idles && c.share.places >= own.places {
			most = max(most, c.share.lazy)
		}
	}
	return most
}

// laziest chooses among the lazy holders of the shares that have the most of them: of a
// crowd that has never spoken the oldest, so that it does not evict others; otherwise
// the one that has been inactive for longest.
func laziest(all []candidate, own *tally, crowd bool, now time.Time) int {
	most := count(all, own, crowd, now)
	spoken, silent := -1, -1
	for i := range all {
		c := &all[i]
		if !c.idles || c.share.places < own.places || c.share.lazy < most {
			continue
		}
		which := &spoken
		if !c.Spoken {
			which = &silent
		}
		if *which < 0 || c.Since.Before(all[*which].Since) {
			*which = i
		}
	}
	if silent >= 0 && (crowd || spoken < 0) {
		return silent
	}
	return spoken
}

// busiest chooses in the share with the most places.
func busiest(all []candidate, own *tally) int {
	who := -1
	for i := range all {
		c := &all[i]
		if c.share.places <= own.places {
			continue
		}
		if who < 0 || c.before(&all[who]) {
			who = i
		}
	}
	return who
}

// before reports whether c is evicted before other, if neither is lazy.
func (c *candidate) before(other *candidate) bool {
	switch {
	case c.share.places != other.share.places:
		return c.share.places > other.share.places
	case c.Working != other.Working:
		return other.Working
	}
	return c.Since.Before(other.Since)
}

// eldest chooses among those that were active lately but are not being served.
func eldest(all []candidate, own *tally, now time.Time) int {
	who := -1
	for i := range all {
		c := &all[i]
		if c.share.places < own.places || c.Working || now.Sub(c.Since) < timeToSpeak {
			continue
		}
		if who < 0 || c.Since.Before(all[who].Since) {
			who = i
		}
	}
	return who
}
