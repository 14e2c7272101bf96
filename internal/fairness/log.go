// A log of refusals, of which there may be any number.

package fairness

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/weft-rdma/weft/internal/panics"
	"github.com/weft-rdma/weft/origin"
)

// How many lines a [Log] writes in each Window: for one share, and for all.
const (
	LinesOfShare = 3
	LinesOfAll   = 20
	Window       = time.Minute
)

// A Log writes who was refused and why, with a limit of lines a minute. Refusals beyond
// the limit are counted, and summed up at the end of the minute. Its zero value writes
// nothing, but counts. Methods may be called by any goroutine.
type Log struct {
	Logger *slog.Logger

	mu      sync.Mutex
	counts  Refusals
	open    bool // a window has begun
	lines   int  // written in it
	byShare map[origin.Share]int
	omitted int
	shares  map[origin.Share]struct{} // of those omitted
	last    string                    // reason of those omitted
}

// Refusals counts connections that were refused or closed, by the reason.
type Refusals struct {
	Full     uint64 // refused: no place, and none could be taken from another
	Evicted  uint64 // closed in favour of another
	NoMemory uint64 // closed, as others waited for its memory
	Other    uint64 // refused by address or owner, or ended during start-up
}

// Plus returns the sum of two counts.
func (r Refusals) Plus(o Refusals) Refusals {
	return Refusals{r.Full + o.Full, r.Evicted + o.Evicted, r.NoMemory + o.NoMemory, r.Other + o.Other}
}

func (r *Refusals) count(why error) {
	switch {
	case errors.Is(why, ErrFull):
		r.Full++
	case errors.Is(why, ErrEvicted):
		r.Evicted++
	case errors.Is(why, ErrNoMemory):
		r.NoMemory++
	default:
		r.Other++
	}
}

// Refusals returns what has been counted. All refusals count, logged or not.
func (l *Log) Refusals() Refusals {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// Log counts a refusal, and logs it if there may be another line.
func (l *Log) Log(level slog.Level, what string, share origin.Share, peer net.Addr, why error) {
	l.mu.Lock()
	l.counts.count(why)
	l.mu.Unlock()
	if l.Logger == nil || !l.Logger.Enabled(context.Background(), level) {
		return
	}
	if l.admit(level, share, why) {
		l.Logger.Log(context.Background(), level, what, "peer", peer, "reason", why)
	}
}

// admit reports whether a line may be written, and counts it.
func (l *Log) admit(level slog.Level, share origin.Share, why error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		l.open, l.lines, l.omitted = true, 0, 0
		l.byShare, l.shares = make(map[origin.Share]int), make(map[origin.Share]struct{})
		time.AfterFunc(Window, func() {
			defer panics.Recover()
			l.end(level)
		})
	}
	if l.lines < LinesOfAll && l.byShare[share] < LinesOfShare {
		l.lines++
		l.byShare[share]++
		return true
	}
	l.omitted++
	l.last = why.Error()
	if len(l.shares) < maxShares {
		l.shares[share] = struct{}{}
	}
	return false
}

// maxShares limits how many shares are counted.
const maxShares = 1000

// end ends a window.
func (l *Log) end(level slog.Level) {
	l.mu.Lock()
	omitted, shares, last := l.omitted, len(l.shares), l.last
	l.open = false
	l.mu.Unlock()
	if omitted > 0 {
		l.Logger.Log(context.Background(), level, "more were refused", "times", omitted, "origins", shares, "last reason", last, "within", Window)
	}
}
