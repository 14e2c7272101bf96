// A link as fairness sees it, which divides places and memory: what the link is doing, and
// its eviction.

package rpctcp

import (
	"net"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
)

// Standing is that of a [fairness.Holder].
func (l *link) Standing() fairness.Standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fairness.Standing{
		Spoken:  l.spoken,
		Working: l.busy > int(l.blocked.Load()),
		Since:   l.since(),
	}
}

// since is when the link went on last.
func (l *link) since() time.Time {
	since := time.Unix(0, l.lastUsed.Load())
	if l.writeProgress.Load() > 0 {
		if n, ok := acked(l.raw); ok {
			since = later(since, time.Now().Add(-l.passed.Idle(n)))
		}
	}
	return since
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Stake is that of a [fairness.Debtor].
func (l *link) Stake() (s fairness.Stake) {
	now := time.Now().UnixNano()
	if since := l.readProgress.Load(); since > 0 {
		s.Theirs, s.Idle = true, time.Duration(now-since)
	}
	if since := l.writeProgress.Load(); since > 0 {
		idle := time.Duration(now - since)
		if n, ok := acked(l.raw); ok {
			idle = min(idle, l.passed.Idle(n))
		}
		s.Theirs, s.Idle = true, max(s.Idle, idle)
	}
	if l.starving.Load() {
		l.mu.Lock()
		s.Stuck = l.busy == 0
		l.mu.Unlock()
	}
	return s
}

// Evict ends the link at once, and returns when its descriptor is closed: what the
// peer has not taken is not kept for it.
func (l *link) Evict(why error) (gone bool) {
	l.close(why)
	abandon(l.raw)
	l.nc.Close()
	return true
}

// abandon has the next Close of a connection reset it, where that goes: nothing of
// it stays in the system.
func abandon(nc net.Conn) {
	if t, ok := nc.(interface{ SetLinger(int) error }); ok {
		t.SetLinger(0)
	}
}

// drop closes a connection of which nothing was read.
func drop(nc net.Conn) {
	abandon(nc)
	nc.Close()
}
