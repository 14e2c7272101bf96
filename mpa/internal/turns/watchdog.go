// This file looks after readers that sleep.

package turns

import (
	"os"
	"sync"
	"time"

	"github.com/weft-rdma/weft/internal/panics"
)

const (
	// nap is how often the watchdog looks.
	nap = time.Millisecond

	// longNaps is after how many naps a leader has to leave the wait to the reader, which
	// the watchdog need not look after: idle connections cost nothing.
	longNaps = 64
)

// A watchdog looks after the connections whose readers sleep, one for the whole program.
//
// It is woken by a timer of the system's, and not by one of Go's: while there is one
// of those, each wait in the network poller has a limit, and arms and disarms a timer
// of the hardware. That doubles what a small message costs. This one is armed once a nap.
type watchdog struct {
	mu    sync.Mutex
	all   map[*Turns]struct{}
	runs  bool
	open  func() *os.File // makes the timer
	timer *os.File        // nil if there was none to be had
}

var watch = &watchdog{open: newTimer}

// A watched is what the watchdog knows of a connection.
type watched struct {
	visits uint32 // when it looked last
	leads  uint32
	naps   int // for which the same leader has waited
}

func (w *watchdog) add(t *Turns) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = make(map[*Turns]struct{})
	}
	t.watched.visits = t.tally.visits.Load() - 1
	w.all[t] = struct{}{}
	if w.runs {
		return
	}
	w.runs = true
	if w.timer == nil {
		w.timer = w.open()
	}
	arm(w.timer, nap)
	go w.run()
}

func (w *watchdog) remove(t *Turns) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, t)
}

func (w *watchdog) run() {
	defer panics.Recover()
	for {
		w.wait()
		if !w.look() {
			return
		}
	}
}

// look looks after each connection and reports whether there are any.
func (w *watchdog) look() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for t := range w.all {
		t.review()
	}
	w.runs = len(w.all) > 0
	if !w.runs {
		arm(w.timer, 0)
	}
	return w.runs
}

func (w *watchdog) wait() {
	if w.timer == nil {
		time.Sleep(nap)
		return
	}
	var count [8]byte
	if _, err := w.timer.Read(count[:]); err != nil {
		time.Sleep(nap)
	}
}

// review wakes a reader that has no visitors, or has a deadline to look at, and interrupts a
// leader that has waited for long enough.
func (t *Turns) review() {
	switch {
	case t.neglected():
		t.apply(Neglect)
	case t.deadline.limited():
		t.apply(Recall)
	}
	t.deadline.review(t.watched.naps >= longNaps)
}

// neglected reports that there was no visitor since the last call.
func (t *Turns) neglected() bool {
	w, visits, leads := &t.watched, t.tally.visits.Load(), t.leads.Load()
	switch s := t.State(); {
	case s == Free:
		if visits == w.visits {
			return true
		}
		w.visits = visits
	case s.led():
		w.visits = visits - 1 // the leader itself counts as a visitor to come
		if w.naps++; w.leads != leads {
			w.leads, w.naps = leads, 0
		}
	}
	return false
}
