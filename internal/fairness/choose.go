// This file is the choice of who has to go when all places are taken.

package fairness

import "time"

// Recent is how long ago somebody may have come forward last and still count as
// at work.
const Recent = time.Second

// A Standing is what the holder of a place is doing.
type Standing struct {
	// Spoken says that the holder has been of use already: a call of it was
	// executed. Until then it may be one of those who connect and say nothing.
	Spoken bool

	// Working says that it is this side's turn: a call is being executed.
	Working bool

	// Since is when the holder came forward last: a call arrived, part of a long
	// one, or the peer took part of a reply. At first it is when it came.
	Since time.Time
}

// timeToSpeak is what those get who have just come, as long as few are silent.
const timeToSpeak = 100 * time.Millisecond

// lazy reports whether nothing has come of the holder lately.
func (s *Standing) lazy(now time.Time, crowd bool) bool {
	switch {
	case s.Working:
		return false
	case s.Spoken:
		return now.Sub(s.Since) >= Recent
	}
	return crowd || now.Sub(s.Since) >= timeToSpeak
}

// A tally is what one share has. Its lazy ones are counted anew for each choice.
type tally struct{ places, lazy int }

// A candidate is the holder of one of the places.
type candidate struct {
	Standing
	share *tally
	idles bool // lazy, as choose found
}

// choose returns the index of who has to go when all of limit places are taken
// and a newcomer of the share own asks for one, or -1: then the newcomer has to.
// The newcomer is counted in own.places.
//
//   - A share that has fewer places than the newcomer's keeps them.
//   - Of the others, the share with the most lazy holders loses one of them. Equal
//     shares count as one.
//   - Where all are at work, the share with the most places loses the one that came
//     forward longest ago, if it has more than the newcomer's would have.
//   - Where no share has more, and all are at work, one goes that does nothing at the
//     moment, nor has for the time it takes to speak: that for which it is longest.
//
// Those who have never spoken are lazy from the beginning when they are a crowd,
// more than a quarter of all, and otherwise when they have had the time to speak.
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

// count counts the lazy, and returns how many the share has that has the most of
// those that may have to go.
func count(all []candidate, own *tally, crowd bool, now time.Time) (most int) {
	for i := range all {
		all[i].share.lazy = 0
	}
	own.lazy = 1 // the newcomer, who has not spoken
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

// laziest chooses among the lazy of those shares that have the most of them. A crowd
// of those who have never spoken loses the oldest of them, lest they drive out the
// others. Otherwise the one goes that has not come forward for longest.
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

// before reports whether c goes before other, both being at work.
func (c *candidate) before(other *candidate) bool {
	switch {
	case c.share.places != other.share.places:
		return c.share.places > other.share.places
	case c.Working != other.Working:
		return other.Working
	}
	return c.Since.Before(other.Since)
}

// eldest chooses among all that are not just being served, but have been lately.
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
