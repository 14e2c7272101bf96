package mpa

import "sync/atomic"

// This file is who waits for octets: the reader, which is the goroutine in Receive, or
// somebody in its place who would have to be woken by it otherwise. As long as they
// come the reader sleeps, and the wait is theirs to take. Who finds something that
// takes the reader gives the wait back to it; so does the watchdog when nobody comes
// any more.

// A seat says whose the wait is.
type seat = int32

const (
	readers seat = iota // the reader's
	free                // of whoever comes: the reader sleeps
	taken               // of somebody in Await
	lapsed              // the reader's, because nobody came
)

const (
	// ledLong is how many times in a row somebody has to have come before the reader
	// sleeps. If that turns out not to last as long again, it is twice as often the
	// next time; and ledMissed times as often, if octets lay there that nobody came for:
	// then the peer has had to wait, for some nap or two. It is ledMost at most, in which
	// much more than that is gained.
	ledLong   = 16
	ledMissed = 4
	ledMost   = 128

	// ledIdle is after how many naps who waits in the seat has to leave it to the reader,
	// which the watchdog need not look after.
	ledIdle = 64
)

// A leader is those who come, as the reader sees them.
type leader struct {
	visits atomic.Uint32 // how many have come
	seat   atomic.Int32
	back   chan struct{} // the seat may be the reader's again

	// The reader's own.
	known uint32 // of visits
	row   int    // times in a row that there were more
	need  int    // of row
	alone bool   // nobody has come for what is to be read next

	// The watchdog's own.
	seen uint32 // of visits
	naps int    // for which the same wait has lasted
}

func newLeader() leader { return leader{back: make(chan struct{}, 1), need: ledLong} }

// visit notes that somebody has come.
func (l *leader) visit() { l.visits.Add(1) }

// came reports whether somebody has come since the reader asked last.
func (l *leader) came() bool {
	visits := l.visits.Load()
	if visits == l.known {
		l.row = 0
		return false
	}
	l.known = visits
	l.row++
	return true
}

// lasts reports that somebody has come for long.
func (l *leader) lasts() bool { return l.row >= l.need }

// sleep leaves the seat, until it is given back. Others must know of the reader by
// then, or nobody gives it back.
func (l *leader) sleep(closing *atomic.Bool) {
	began := l.visits.Load()
	l.seat.Store(free)
	if closing.Load() {
		l.reclaim(readers)
	}
	for at := l.seat.Load(); at != readers && at != lapsed; at = l.seat.Load() {
		<-l.back
	}
	l.alone = l.seat.Swap(readers) == lapsed
	if int(l.visits.Load()-began) < l.need {
		l.need = min(2*l.need, ledMost)
	} else {
		l.need = max(l.need/2, ledLong)
	}
	l.row = 0
}

// found notes that the reader has octets, and whether it has waited for them.
func (l *leader) found(waited bool) {
	if l.alone && !waited {
		l.need = min(ledMissed*l.need, ledMost)
	}
	l.alone = false
}

// reclaim gives the seat to the reader, unless somebody waits in it: he will find what
// there is to be found by himself. It may be called by any goroutine.
func (l *leader) reclaim(to seat) {
	if l.seat.CompareAndSwap(free, to) {
		l.wake()
	}
}

// take takes the seat, if it is free.
func (l *leader) take() bool {
	l.visit()
	return l.seat.CompareAndSwap(free, taken)
}

// leave is for who has taken it.
func (l *leader) leave(to seat) {
	l.seat.Store(to)
	if to == readers {
		l.wake()
	}
}

func (l *leader) wake() {
	select {
	case l.back <- struct{}{}:
	default:
	}
}

// neglected reports whether the seat is free and nobody has come since it was asked
// last. It is asked by the watchdog alone.
func (l *leader) neglected() bool {
	visits := l.visits.Load()
	switch l.seat.Load() {
	case free:
		l.naps = 0
		if visits == l.seen {
			return true
		}
		l.seen = visits
	case taken:
		if l.naps++; l.seen != visits-1 { // somebody else waits than the last time
			l.seen, l.naps = visits-1, 0
		}
	}
	return false
}

// long reports that the same wait has lasted for long. It is for the watchdog.
func (l *leader) long() bool { return l.naps >= ledIdle }
