package mpa

import (
	"runtime"
	"time"
)

// This file is what a reader knows of those who poll in its place. While they come it
// takes nothing from the socket, and once they have come for a while it sleeps, so that
// they have its processor. It wakes when they say that they do something else
// now, and looks each nap whether they have forgotten to say so.

const (
	// ledLong is how many times in a row somebody has come before the reader sleeps.
	ledLong = 16

	nap = time.Millisecond
)

// A leader is those who poll the connection, as the reader sees them.
type leader struct {
	visits uint32 // the reader knows of
	row    int    // times in a row that there were more
	gone   chan struct{}
	timer  *time.Timer // of a nap; nil before the first
}

func newLeader() leader { return leader{gone: make(chan struct{}, 1)} }

// came reports whether somebody has come since it was asked last, if visits is how
// many have come in all.
func (l *leader) came(visits uint32) bool {
	if visits == l.visits {
		l.row = 0
		return false
	}
	l.visits = visits
	l.row++
	return true
}

// follow lets them be.
func (l *leader) follow() {
	if l.row < ledLong {
		runtime.Gosched()
		return
	}
	if l.timer == nil {
		l.timer = time.NewTimer(nap)
	} else {
		l.timer.Reset(nap)
	}
	select {
	case <-l.gone:
		l.row = 0
	case <-l.timer.C:
	}
	l.timer.Stop()
}

// left tells that somebody who has come does something else now. It may be called by
// any goroutine.
func (l *leader) left() {
	select {
	case l.gone <- struct{}{}:
	default:
	}
}
