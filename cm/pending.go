package cm

// This file is the connections of a listener that Accept has not returned: those
// in start-up, and those in the queue. Their places are divided fairly.

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/internal/listening"
	"github.com/weft-rdma/weft/origin"
)

// A starting is a connection in start-up.
type starting struct {
	l      *Listener
	nc     net.Conn
	from   *origin.Origin
	began  time.Time
	ctx    context.Context
	cancel context.CancelFunc
	place  *fairness.Place
}

// enter counts a connection in, if need be in place of another, mostly that which
// has been in start-up for longest: an honest peer needs one round trip. It fails
// if the RNIC takes no more and none of this listener's can make room.
func (l *Listener) enter(nc net.Conn, from *origin.Origin) (*starting, error) {
	l.mu.Lock()
	l.bury()
	l.mu.Unlock()
	err := listening.Of(l.rnic).AdmitConnection()
	for err != nil && l.starts.Relieve(from.Share()) {
		err = listening.Of(l.rnic).AdmitConnection()
	}
	if err != nil {
		return nil, err
	}
	s := &starting{l: l, nc: nc, from: from, began: time.Now()}
	s.ctx, s.cancel = context.WithCancel(l.ctx)
	l.mu.Lock()
	l.starting[s] = struct{}{}
	l.mu.Unlock()
	if s.place, err = l.starts.Take(l.ctx, from.Share(), s); err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// Standing is that of a [fairness.Holder].
func (s *starting) Standing() fairness.Standing { return fairness.Standing{Since: s.began} }

// Evict ends the start-up and closes the connection.
func (s *starting) Evict(error) (gone bool) {
	s.end()
	drop(s.nc)
	return true
}

// end counts it out, unless that was done or something else counts in its place.
func (s *starting) end() {
	s.cancel()
	if s.l.remove(s) {
		listening.Of(s.l.rnic).DismissConnection()
	}
}

// remove takes it out of those in start-up; whoever does so has its count against the
// RNIC's limit. It reports false if that was done before.
func (l *Listener) remove(s *starting) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, there := l.starting[s]
	delete(l.starting, s)
	return there
}

// receive takes a connection through the first half of its start-up.
func (l *Listener) receive(s *starting) {
	defer s.place.Free() // its socket is closed, or counts as another's
	defer s.end()
	share, peer := s.from.Share(), s.nc.RemoteAddr()
	r, err := Receive(s.ctx, wrapped(s.nc, l.cfg.Wrap), l.cfg.MPA)
	if err != nil {
		l.turned.Tell(slog.LevelInfo, "start-up failed", share, peer, err)
		return
	}
	r.rnic, r.from = l.rnic, s.from
	if err := l.offer(s, r); err != nil {
		_ = r.mpa.Close()
		if l.ctx.Err() == nil {
			l.turned.Tell(slog.LevelWarn, "closed a connection", share, peer, err)
		}
	}
}

// A queued is a request that waits for Accept.
type queued struct {
	l     *Listener
	r     *Request
	share origin.Share
	since time.Time
	place *fairness.Place
}

// offer has a connection in start-up wait for Accept, where its request counts in its
// place, if there is room. One that lost its place meanwhile is too late.
func (l *Listener) offer(s *starting, r *Request) error {
	l.mu.Lock()
	l.bury()
	l.mu.Unlock()
	q := &queued{l: l, r: r, share: s.from.Share(), since: time.Now()}
	place, err := l.waits.Take(s.ctx, q.share, q)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	q.place = place
	if _, there := l.starting[s]; !there {
		place.Free()
		return fairness.ErrEvicted
	}
	delete(l.starting, s)
	l.queue = append(l.queue, q)
	l.rouse()
	return nil
}

// fewest returns the index of the oldest request of the share with the fewest.
func fewest(queue []*queued) (first int) {
	if len(queue) == 1 {
		return 0
	}
	count := make(map[origin.Share]int)
	for _, q := range queue {
		count[q.share]++
	}
	for i, q := range queue {
		if count[q.share] < count[queue[first].share] {
			first = i
		}
	}
	return first
}

// Standing is that of a [fairness.Holder]: it is for this side to go on.
func (q *queued) Standing() fairness.Standing {
	return fairness.Standing{Working: true, Since: q.since}
}

// Evict takes the request out of the queue and closes its connection.
func (q *queued) Evict(error) (gone bool) {
	l := q.l
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, q)
	if i < 0 {
		return false // somebody accepts it just now, or it is not yet there
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	abandon(q.r.nc)
	_ = q.r.mpa.Close() // answered or expired already
	q.settle()
	return true
}

// settle counts a request out that has left the queue.
func (q *queued) settle() {
	q.place.Free()
	listening.Of(q.l.rnic).DismissConnection()
}

// abandon has the next Close of a connection reset it, where that goes: nothing of
// it stays in the system.
func abandon(nc net.Conn) {
	if t, ok := nc.(interface{ SetLinger(int) error }); ok {
		_ = t.SetLinger(0)
	}
}

// drop closes a connection of which nothing was read.
func drop(nc net.Conn) {
	abandon(nc)
	_ = nc.Close()
}
