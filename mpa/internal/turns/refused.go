// This file is for a reader in the middle of a ULPDU while consumers poll. They find the token
// taken, and they keep the processors, so that Go may not look for octets for 10 ms. The reader
// then tries again by itself, between their polls.

package turns

import (
	"runtime"
	"time"
)

const (
	// refusedTries is how often the reader tries while no visitor is refused, before it waits.
	refusedTries = 8

	// When it has polled for PollFor the peer may have stalled. The reader sleeps between tries,
	// from refusedPause on twice as long each time, and waits after refusedPauses: that is as
	// long as Go may take to look for octets.
	refusedPause  = PollFor / 2
	refusedPauses = 8
)

// refusals are the visitors that found the token taken, as the reader sees them.
type refusals struct {
	known uint32
	tries int       // in this wait
	alone int       // those of them in a row during which no visitor was refused
	slept int       // pauses
	began time.Time // the first of them
}

// Refused is called by a visitor that has not got the token. It lets others run now and then, who
// may have it.
func (t *Turns) Refused() {
	if t.refused.Add(1)%refusedTries == 0 {
		runtime.Gosched()
	}
}

// Hurry is called by the reader in the middle of a ULPDU, when it has found no octets. It reports
// whether to try again, after it has let others run: visitors have been refused.
func (t *Turns) Hurry() bool {
	r := &t.refusals
	switch refused := t.refused.Load(); {
	case refused != r.known:
		r.known, r.alone = refused, 0
	case r.tries == 0:
		return false
	default:
		r.alone++
	}
	if r.tries++; r.tries == 1 {
		r.began = time.Now()
	}
	if r.alone == refusedTries || r.slept == refusedPauses || t.State() == Closed {
		t.Hurried()
		return false
	}
	if time.Since(r.began) < PollFor {
		runtime.Gosched()
	} else {
		time.Sleep(refusedPause << r.slept)
		r.slept++
	}
	return true
}

// Hurried ends the tries: there were octets, or an error, or the reader waits.
func (t *Turns) Hurried() { t.refusals = refusals{known: t.refusals.known} }
