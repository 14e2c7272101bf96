// This file is a log of those who were turned away, of which there may be any
// number.

package fairness

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/weft-rdma/weft/origin"
)

// How many lines a [Log] writes in each Window: of one share, and of all.
const (
	LinesOfShare = 3
	LinesOfAll   = 20
	Window       = time.Minute
)

// A Log tells who was turned away, and why, in so many lines a minute. Those left
// out are counted, and told of when the minute is over. Its zero value writes
// nothing. Methods may be called by any goroutine.
type Log struct {
	Logger *slog.Logger

	mu      sync.Mutex
	open    bool // a window is
	lines   int  // in it
	byShare map[origin.Share]int
	left    int // out
	shares  map[origin.Share]struct{}
	last    string // reason of those
}

// Tell writes a line, or counts it.
func (l *Log) Tell(level slog.Level, what string, share origin.Share, peer net.Addr, why error) {
	if l.Logger == nil || !l.Logger.Enabled(context.Background(), level) {
		return
	}
	if l.admit(level, share, why) {
		l.Logger.Log(context.Background(), level, what, "peer", peer, "reason", why)
	}
}

// admit reports whether there is a line left.
func (l *Log) admit(level slog.Level, share origin.Share, why error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		l.open, l.lines, l.left = true, 0, 0
		l.byShare, l.shares = make(map[origin.Share]int), make(map[origin.Share]struct{})
		time.AfterFunc(Window, func() { l.end(level) })
	}
	if l.lines < LinesOfAll && l.byShare[share] < LinesOfShare {
		l.lines++
		l.byShare[share]++
		return true
	}
	l.left++
	l.last = why.Error()
	if len(l.shares) < maxShares {
		l.shares[share] = struct{}{}
	}
	return false
}

// maxShares is how many shares are told apart.
const maxShares = 1000

// end ends a window.
func (l *Log) end(level slog.Level) {
	l.mu.Lock()
	left, shares, last := l.left, len(l.shares), l.last
	l.open = false
	l.mu.Unlock()
	if left > 0 {
		l.Logger.Log(context.Background(), level, "more were turned away", "times", left, "origins", shares, "last reason", last, "within", Window)
	}
}
