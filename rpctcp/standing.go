// This file is what a link is to those who divide places and memory, and its end
// when there is not enough for it.

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
		Working: l.busy > int(l.lying.Load()),
		Since:   time.Unix(0, l.lastUsed.Load()),
	}
}

// Stake is that of a [fairness.Debtor].
func (l *link) Stake() (s fairness.Stake) {
	now := time.Now().UnixNano()
	for _, since := range [...]int64{l.heard.Load(), l.taken.Load()} {
		if since > 0 {
			s.Theirs = true
			s.Idle = max(s.Idle, time.Duration(now-since))
		}
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
