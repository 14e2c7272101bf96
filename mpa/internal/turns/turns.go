// This file is the reader and its visitors. The package comment has the flow.

package turns

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// BulkRead, in octets, is so much at once that a consumer has something to do while the
// next comes, and the reader had better see to that.
const BulkRead = 64 << 10

// pollsToYield is every how many polls a program that has one processor lets others use it:
// they may be what is waited for.
const pollsToYield = 4

// A Source is the connection, as a reader and visitors use it.
type Source interface {
	// Read calls step until it reports true, and waits for octets after each call that
	// does not. The error is that of the deadline, or of a connection that was closed.
	Read(step func(fd uintptr) bool) error
	// Readable reports whether there is something to be read. It is called in a step.
	Readable(fd uintptr) bool
	SetReadDeadline(time.Time) error
}

// A Reader is what the reader does.
type Reader interface {
	// Try reads once, without waiting. It returns ErrNothing if there are no octets, and
	// io.EOF at their end.
	Try(fd uintptr) (n int, err error)
	// Rest is called before the reader waits: the wait may be long.
	Rest()
}

// ErrNothing is returned by a Reader that has found no octets.
var ErrNothing = errors.New("turns: nothing to read")

// Turns are those of one connection: its reader's, and its visitors'.
type Turns struct {
	src      Source
	yield    func() // lets others have the only processor; nil where there are several
	state    atomic.Int32
	woken    chan struct{} // capacity 1: the reader's sleep may be over
	token    token
	left     bool // a visitor has left something to the reader; for the holder of the token
	deadline deadline
	tally    tally
	refused  atomic.Uint32 // visitors that found the token taken

	// The reader's own.
	reader  Reader
	stepFn  func(fd uintptr) bool
	holds   bool      // it has the token
	toSleep bool      // its wait has ended because it is to sleep
	parked  bool      // the last Read had to wait
	n       int       // octets that it found,
	err     error     // or why there are no more
	tries   int       // reads in a row that found nothing
	began   time.Time // the first of them
	yielder yielder
	spin    time.Duration // how long it polls before it waits,
	expect  expectation
	pollFor time.Duration // and in this Read
	polls   int           // in this Read
	polling time.Time     // the first of them
	visits  uint32        // those before it
	stays   bool          // it never sleeps

	refusals refusals

	// The leader's own.
	awaitFn func(fd uintptr) bool
	looked  bool          // it has looked for octets once
	leads   atomic.Uint32 // leaders so far

	watch    *watchdog
	watched  watched
	openings *Odds
}

// A token is the receiving half of a connection: its holder receives.
type token struct{ mu sync.Mutex }

func (t *token) acquire()         { t.mu.Lock() }
func (t *token) tryAcquire() bool { return t.mu.TryLock() }
func (t *token) release()         { t.mu.Unlock() }

// New returns the turns of a connection, which the reader does not read yet. yield lets
// others run, in a program that has one processor; it is nil in any other.
func New(src Source, yield func()) *Turns {
	t := &Turns{
		src: src, yield: yield, woken: make(chan struct{}, 1),
		deadline: deadline{conn: src}, tally: newTally(), yielder: yielder{on: yield != nil}, watch: watch, openings: openings,
	}
	t.stepFn, t.awaitFn = t.step, t.await
	return t
}

// State says who waits for octets now.
func (t *Turns) State() State { return State(t.state.Load()) }

// apply makes e happen, and returns the state before.
func (t *Turns) apply(e Event) State {
	for {
		at := t.State()
		to := next(at, e)
		if at == to {
			return at
		}
		if t.state.CompareAndSwap(int32(at), int32(to)) {
			if at.asleep() && !to.asleep() {
				t.wake()
			}
			return at
		}
	}
}

func (t *Turns) wake() {
	select {
	case t.woken <- struct{}{}:
	default:
	}
}

// Spin has the reader poll for d before it waits, unless visitors come: no visitor looks for
// what concerns no consumer, like a peer's RDMA Read. It is called before Begin.
func (t *Turns) Spin(d time.Duration) { t.spin = d }

// Stay is for a Source that wakes the reader only when visitors stay away: the reader never
// sleeps. It is called before Begin.
func (t *Turns) Stay() { t.stays = true }

// SetDeadline limits how long anybody waits.
func (t *Turns) SetDeadline(until time.Time) error { return t.deadline.set(until) }

// Close is for a connection that is about to be closed: nobody sleeps any more.
func (t *Turns) Close() { t.apply(Close) }

// --- The reader.

// Begin and End are called before the reader's first Read and after its last.
func (t *Turns) Begin() { t.acquire() }

// Open is Begin for a new connection: the first Read polls for a moment before it waits, as long
// as that pays for new connections.
func (t *Turns) Open() {
	t.Begin()
	if !t.stays && t.openings.Due() {
		t.expect.opening = t.openings
	}
}

func (t *Turns) End() {
	t.deadline.clearReader()
	t.release()
}

func (t *Turns) acquire() {
	t.token.acquire()
	t.holds = true
}

func (t *Turns) release() {
	t.holds = false
	t.token.release()
}

// Read waits until r has read, or a visitor has left something to the reader: then n is 0
// without an error. The reader has the token before and afterwards, and while it tries.
// The error is that of the Source or of r.
func (t *Turns) Read(r Reader) (n int, err error) {
	t.reader = r
	t.tally.arrived(t.parked && t.n < BulkRead)
	switch {
	case t.mayFollow():
		t.release()
		t.sleep()
		t.acquire()
	case t.yielder.pays(): // the consumer of what was handed up goes first
		t.release()
		runtime.Gosched()
		t.acquire()
	}
	t.parked, t.n, t.err, t.tries, t.polls = false, 0, nil, 0, 0
	t.pollFor = t.pollTime()
	for {
		err := t.src.Read(t.stepFn)
		if t.holds {
			return t.n, cmp.Or(err, t.err)
		}
		if t.toSleep {
			t.toSleep = false
			t.sleep()
		}
		t.acquire()
		if err != nil {
			return 0, err
		}
	}
}

// step tries to read. False has the Source wait. It returns without the token if a visitor has
// it, or if the reader is to sleep.
func (t *Turns) step(fd uintptr) bool {
	for {
		if !t.holds && !t.token.tryAcquire() {
			return true
		}
		t.holds = true
		if t.left {
			t.left = false
			return true
		}
		n, err := t.reader.Try(fd)
		switch {
		case err != ErrNothing:
			t.n, t.err = n, err
			t.found()
			return true
		case t.tryAgain():
			continue
		case t.parked:
			// A visitor has read what woke the reader.
			t.tally.arrived(true)
			t.toSleep = t.mayFollow()
		}
		t.reader.Rest()
		t.parked = true
		t.release()
		return t.toSleep
	}
}

// found notes that the reader has read.
func (t *Turns) found() {
	if t.tries > 0 {
		t.yielder.came(time.Since(t.began))
	}
	if t.expect.polls && t.polls > 0 && !t.parked {
		t.expect.came()
	}
	t.tally.found(t.parked)
	t.apply(Found)
}

// yieldOnce lets others run, and reports whether to try again, in a program that has one
// processor: the peer may be one of them, and its answer be there then.
func (t *Turns) yieldOnce() bool {
	t.tries++
	switch {
	case t.tries > yieldTries:
		t.tries = 0
		t.yielder.failed()
		return false
	case t.tries > 1:
		runtime.Gosched()
	case !t.yielder.due():
		t.tries = 0
		return false
	default:
		t.began = time.Now()
	}
	t.yield()
	return true
}

// tryAgain reports whether to try once more before waiting.
func (t *Turns) tryAgain() bool {
	if t.pollFor > 0 {
		return t.pollOnce()
	}
	return t.yieldOnce()
}

// pollOnce releases the token, lets others run, and reports whether to try again: until the
// reader has polled for long enough, or a visitor comes.
func (t *Turns) pollOnce() bool {
	switch {
	case t.parked || t.State() == Closed:
		return false
	case t.polls == 0:
		t.polling, t.visits = time.Now(), t.tally.visits.Load()
	case t.tally.visits.Load() != t.visits:
		return false
	case time.Since(t.polling) > t.pollFor, t.expect.polls && t.polls >= MostPolls:
		if t.expect.polls {
			t.expect.failed()
		}
		return false
	}
	t.polls++
	t.release()
	if t.yield != nil && t.polls%pollsToYield == 1 {
		t.expect.shared = YieldTo(t.yield) || t.expect.shared
	}
	runtime.Gosched()
	return true
}

// mayFollow reports that the reader may sleep: visitors have come for long, and can go on
// with all that comes. A deadline takes the reader.
func (t *Turns) mayFollow() bool {
	return !t.stays && t.tally.lasts() && t.State() == Reading && !t.deadline.limited()
}

// sleep sleeps until the reader's turn. It has not got the token.
func (t *Turns) sleep() {
	t.watch.add(t) // before anybody may have to wake it
	defer t.watch.remove(t)
	t.tally.sleeps()
	if t.apply(Sleep) != Reading {
		runtime.Gosched() // a visitor needs the reader awake
		return
	}
	for t.State().asleep() {
		<-t.woken
	}
	t.tally.woke(t.apply(Wake) == Lapsed)
}

// --- The visitors. Methods may be called by any goroutine.

// Enter acquires the token, and reports whether it was free.
func (t *Turns) Enter() bool {
	t.tally.visit()
	return t.token.tryAcquire()
}

// Exit releases the token, after a visit that found n octets. left says that something is
// left to the reader. The reader is also woken if n is large.
func (t *Turns) Exit(n int, left bool) {
	if n > 0 {
		t.apply(Found)
	}
	t.left = t.left || left
	t.token.release()
	if left || n >= BulkRead {
		t.Recall()
	}
}

// Recall has a reader that sleeps wake up.
func (t *Turns) Recall() { t.apply(Recall) }

// InterruptReader ends the reader's wait, and each that begins, until End: a Source may not
// report octets that somebody else has read. The caller has the token.
func (t *Turns) InterruptReader() { t.deadline.interruptReader() }

// Lead waits in the reader's place until a visit may find something, the connection ends, or
// Interrupt is called; until some milliseconds after ctx is done; and no longer than some 64
// ms without octets: then the reader waits, which costs nothing. It returns false at once if
// it is not a visitor's turn. rest is called before the wait, with the token, if that is free.
func (t *Turns) Lead(ctx context.Context, rest func()) bool {
	if t.yield != nil {
		return false
	}
	if t.State() != Free { // else the visit that follows counts
		t.tally.visit()
	}
	if t.apply(Come) != Free {
		return false
	}
	t.leads.Add(1)
	if t.token.tryAcquire() {
		rest()
		t.token.release()
	}
	t.deadline.lead(ctx.Done())
	t.looked = false
	err := ctx.Err()
	if err == nil {
		err = t.src.Read(t.awaitFn)
	}
	t.deadline.led()
	if err != nil {
		// What is waited for comes from elsewhere, or not at all: the reader had better
		// wait for octets.
		t.apply(CallOff)
	} else {
		t.apply(Done)
	}
	return true
}

// await looks whether there is something to be read, the first time.
func (t *Turns) await(fd uintptr) bool {
	if t.looked {
		return true
	}
	t.looked = true
	return t.src.Readable(fd)
}

// Interrupt ends the Lead under way, or the next one if there is none.
func (t *Turns) Interrupt() { t.deadline.interruptLeader() }

// Leave reports that a visitor is about to sleep, or to do something else.
func (t *Turns) Leave() { t.apply(Quit) }
