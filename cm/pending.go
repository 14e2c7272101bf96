// The connections of a listener that Accept has not returned: those in start-up, and
// those in the queue. Their places are divided fairly. listen.go has the steps.

package cm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/internal/listening"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/origin"
)

// A starting is a connection in start-up.
type starting struct {
	l      *Listener
	nc     net.Conn
	from   *origin.Origin
	began  time.Time
	ctx    context.Context
	cancel context.CancelCauseFunc
	place  *fairness.Place

	before *starting     // of the same share, accepted before it, if it was in start-up still
	left   chan struct{} // closed when it is not in start-up any more
}

// enter takes a place in start-up for a connection, if need be another's: mostly that
// of the one that has been there longest, since an honest peer needs one round trip. It
// fails if the RNIC's limit is reached and none at this listener can make room.
func (l *Listener) enter(nc net.Conn, from *origin.Origin) (*starting, error) {
	err := listening.Of(l.rnic).AdmitConnection()
	for err != nil && l.starts.Relieve(from.Share()) {
		err = listening.Of(l.rnic).AdmitConnection()
	}
	if err != nil {
		return nil, err
	}
	s := &starting{l: l, nc: nc, from: from, began: time.Now(), left: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(l.ctx)
	l.mu.Lock()
	l.starting[s] = struct{}{}
	s.before = l.latest[from.Share()]
	l.latest[from.Share()] = s
	l.mu.Unlock()
	if s.place, err = l.starts.Acquire(l.ctx, from.Share(), s); err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// Standing is for [fairness.Holder].
func (s *starting) Standing() fairness.Standing { return fairness.Standing{Since: s.began} }

// Evict ends the start-up and closes the connection.
func (s *starting) Evict(why error) (gone bool) {
	s.cancel(why)
	s.end()
	drop(s.nc)
	return true
}

// end ends the start-up, and its count against the RNIC's limit unless the queue has
// taken that over.
func (s *starting) end() {
	s.cancel(nil)
	if s.l.remove(s) {
		listening.Of(s.l.rnic).DismissConnection()
	}
}

// remove removes s from those in start-up, and reports whether it was there. Whoever
// removes it owns its count against the RNIC's limit.
func (l *Listener) remove(s *starting) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.removeLocked(s)
}

// removeLocked is remove; needs mu.
func (l *Listener) removeLocked(s *starting) bool {
	if _, there := l.starting[s]; !there {
		return false
	}
	delete(l.starting, s)
	if share := s.from.Share(); l.latest[share] == s {
		delete(l.latest, share)
	}
	s.before = nil
	close(s.left)
	return true
}

// inOrder is how long after it was accepted a connection's request may hold up those of
// connections that the same share made later.
const inOrder = 20 * time.Millisecond

// awaitTurn waits for the request of the connection accepted before, so that requests are
// reported in the order in which a peer makes its connections. Programs rely on that, and
// the goroutines that read the requests are scheduled in any order. A connection that is
// silent holds up nobody for longer than a moment.
func (s *starting) awaitTurn() {
	s.l.mu.Lock()
	before := s.before
	s.l.mu.Unlock()
	if before == nil {
		return
	}
	left := time.Until(before.began.Add(inOrder))
	if left <= 0 {
		return
	}
	late := time.NewTimer(left)
	defer late.Stop()
	select {
	case <-before.left:
	case <-late.C:
	case <-s.ctx.Done():
	}
}

// receive reads the peer's request and queues it.
func (l *Listener) receive(s *starting) {
	defer s.place.Free() // its socket is closed, or has a place in the queue
	defer s.end()
	share, peer := s.from.Share(), s.nc.RemoteAddr()
	r, err := s.request()
	if err != nil {
		l.refusals.Log(slog.LevelInfo, "start-up failed", share, peer, s.orEvicted(err))
		return
	}
	s.awaitTurn()
	if err := l.offer(s, r); err != nil {
		_ = r.mpa.Close()
		if l.ctx.Err() == nil {
			l.refusals.Log(slog.LevelWarn, "closed a connection", share, peer, s.orEvicted(err))
		}
	}
}

// orEvicted returns the reason of an eviction, which err is a consequence of, or else err.
func (s *starting) orEvicted(err error) error {
	if cause := context.Cause(s.ctx); errors.Is(cause, fairness.ErrEvicted) {
		return cause
	}
	return err
}

// request makes the connection a TLS one, if the listener asks for that, and reads the
// peer's request.
func (s *starting) request() (*Request, error) {
	nc, cfg, from := s.nc, s.l.cfg.MPA, s.from
	if s.l.cfg.TLS != nil {
		b := newBudget(cfg.RequestTimeout, mpa.DefaultRequestTimeout)
		secure, err := encrypt(s.ctx, nc, tls.Server, s.l.cfg.TLS, b, s.l.cfg.KeyRecords)
		if err != nil {
			return nil, fmt.Errorf("cm: start-up with %v: %w", nc.RemoteAddr(), err)
		}
		nc, cfg.RequestTimeout = secure, b.left()
		encrypted := *from
		encrypted.TLS = stateOf(secure)
		from = &encrypted
	}
	r, err := Receive(s.ctx, wrapped(nc, s.l.cfg.Wrap), cfg)
	if err == nil {
		r.rnic, r.from = s.l.rnic, from
	}
	return r, err
}

// A queued is a request that waits for Accept.
type queued struct {
	l     *Listener
	r     *Request
	share origin.Share
	since time.Time
	place *fairness.Place
}

// offer moves a connection from start-up to the queue, if that has a place for it. It
// fails with fairness.ErrEvicted if the connection lost its place in start-up meanwhile.
func (l *Listener) offer(s *starting, r *Request) error {
	q := &queued{l: l, r: r, share: s.from.Share(), since: time.Now()}
	place, err := l.waits.Acquire(s.ctx, q.share, q)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	q.place = place
	if !l.removeLocked(s) {
		place.Free()
		return fairness.ErrEvicted
	}
	l.queue = append(l.queue, q)
	r.mpa.OnExpiry(l.expire)
	l.wakeAccept()
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

// Standing is for [fairness.Holder]: this side has to act next.
func (q *queued) Standing() fairness.Standing {
	return fairness.Standing{Working: true, Since: q.since}
}

// Evict removes the request from the queue and closes its connection.
func (q *queued) Evict(error) (gone bool) {
	l := q.l
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, q)
	if i < 0 {
		return false // an Accept has it, or it is not in the queue yet
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	resetOnClose(q.r.nc)
	_ = q.r.mpa.Close() // answered or expired already
	q.release()
	return true
}

// release frees the place of a request that has left the queue, and its count against
// the RNIC's limit.
func (q *queued) release() {
	q.place.Free()
	listening.Of(q.l.rnic).DismissConnection()
}

// resetOnClose makes Close reset the connection, if it can be reset: the system then
// keeps nothing of it.
func resetOnClose(nc net.Conn) {
	if t, ok := nc.(interface{ SetLinger(int) error }); ok {
		_ = t.SetLinger(0)
	}
}

// drop closes a connection from which nothing was read.
func drop(nc net.Conn) {
	resetOnClose(nc)
	_ = nc.Close()
}
