package mpa

import (
	"runtime"
	"sync/atomic"
)

// This file is who waits for octets: the reader, which is the goroutine in Receive, or
// somebody in its place who would have to be woken by it otherwise. As long as they
// come the reader sleeps, and the wait is theirs to take. Who finds something that
// takes the reader gives the wait back to it; so does the watchdog when nobody comes
// any more.

// A seat says whose the wait is.
type seat = int32

const (
	readers  seat = iota // the reader's
	wanted               // the reader's, and who has come in vain sleeps until there are octets
	lapsed               // the reader's, because nobody came
	free                 // of whoever comes: the reader sleeps
	taken                // of somebody in Await
	promised             // of somebody in Await, then the reader's: somebody else has come in vain
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

// broke notes that what came last had better come to the reader.
func (l *leader) broke() { l.row = 0 }

// lasts reports that somebody has come for long, and has not been there already for what
// comes next.
func (l *leader) lasts() bool { return l.row >= l.need && l.seat.Load() == readers }

// sleep leaves the seat, until it is given back. Others must know of the reader by
// then, or nobody gives it back.
func (l *leader) sleep(closing *atomic.Bool) {
	began := l.visits.Load()
	if !l.seat.CompareAndSwap(readers, free) {
		runtime.Gosched() // who would have taken it has just been there
		return
	}
	if closing.Load() {
		l.reclaim(readers)
	}
	for at := l.seat.Load(); at == free || at == taken || at == promised; at = l.seat.Load() {
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

// found notes that the reader has octets, and whether it has parked for them.
func (l *leader) found(parked bool) {
	if l.alone && !parked {
		l.need = min(ledMissed*l.need, ledMost)
	}
	l.alone = false
	l.satisfy()
}

// satisfy notes that there are octets, with which who wanted the seat is woken.
func (l *leader) satisfy() { l.seat.CompareAndSwap(wanted, readers) }

// reclaim gives the seat to the reader, unless somebody waits in it: he will find what
// there is to be found by himself. It may be called by any goroutine.
func (l *leader) reclaim(to seat) {
	if l.seat.CompareAndSwap(free, to) {
		l.wake()
	}
}

// take takes the seat, if it is free. Who comes in vain sleeps then, and will not come
// again before there are octets: so the reader has to see to those.
func (l *leader) take() bool {
	l.visit()
	for {
		at, to := l.seat.Load(), wanted
		switch at {
		case free:
			to = taken
		case taken:
			to = promised
		case readers:
		default:
			return false
		}
		if l.seat.CompareAndSwap(at, to) {
			return to == taken
		}
	}
}

// leave is for who has taken it.
func (l *leader) leave(to seat) {
	if to == free && l.seat.CompareAndSwap(taken, free) {
		return
	}
	l.seat.Store(readers) // also if it is promised
	l.wake()
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
		if visits == l.seen {
			return true
		}
		l.seen = visits
	case taken, promised:
		if l.naps++; l.seen != visits-1 { // somebody else waits than the last time
			l.seen, l.naps = visits-1, 0
		}
	}
	return false
}

// long reports that the same wait has lasted for long. It is for the watchdog.
func (l *leader) long() bool { return l.naps >= ledIdle }
