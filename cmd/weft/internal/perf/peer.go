package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/weft-rdma/weft/verbs"
)

// Bounds of what those who connect can make a peer keep or wait for.
const (
	maxRoom    = MaxSize          // octets of memory each way, of all connections with one setting of the CRC
	maxDepth   = 1 << 14          // messages under way on one connection
	maxDepths  = 1 << 16          // and on all with one setting of the CRC
	maxOpening = 64               // connections that have not said what they are
	maxWaiting = 16               // drivers that wait for their turn
	openLimit  = 10 * time.Second // for each step of a session's set-up
	idleLimit  = 30 * time.Second // between two requests of a driver
	runLimit   = 2 * time.Minute  // for each run
)

// MaxConnections is the largest number of connections of each kind.
const MaxConnections = 256

// DepthLimit is how many messages may be under way at a time on each of so
// many connections.
func DepthLimit(connections int) int { return min(maxDepth, maxDepths/connections) }

// SizeLimit is how many octets each of their messages may have.
func SizeLimit(connections int) int { return maxRoom / connections }

// limits are the times that a peer gives those who connect.
type limits struct{ open, idle, run time.Duration }

// A PeerConfig says how a peer serves.
type PeerConfig struct {
	Listener *net.TCPListener
	Logger   *slog.Logger            // tells of those who could not be served
	Wrap     func(net.Conn) net.Conn // around RDMA connections; nil for nothing
	Once     bool                    // end after the first session

	limits limits // zero is the constants above
}

// Serve takes the other end of measurements, one driver at a time, until ctx
// ends, and closes the listener. Whoever connects is heard at once, so that
// nobody who says nothing, or nonsense, keeps drivers from being served; drivers
// that come during a measurement wait. With Once it returns how the first
// session went; otherwise sessions that fail are logged.
func Serve(ctx context.Context, cfg PeerConfig) error {
	defer cfg.Listener.Close()
	if cfg.limits == (limits{}) {
		cfg.limits = limits{open: openLimit, idle: idleLimit, run: runLimit}
	}
	rnic, err := verbs.Open(verbs.Config{Logger: cfg.Logger})
	if err != nil {
		return err
	}
	defer rnic.Close()
	p := &peer{cfg: &cfg, rnic: rnic, turn: make(chan struct{}, 1), first: make(chan error, 1)}
	var all sync.WaitGroup
	defer all.Wait()
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	p.end = cancel
	defer context.AfterFunc(serving, func() { cfg.Listener.Close() })()
	for {
		nc, err := cfg.Listener.AcceptTCP()
		switch {
		case err == nil:
			p.enter(nc) // here, in the order of their coming
			all.Go(func() { p.receive(serving, nc) })
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case serving.Err() != nil:
			return <-p.first
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("cannot accept: %w", err)
		default: // out of descriptors, or the other end was gone
			cfg.Logger.Warn("cannot accept", "err", err)
			select {
			case <-time.After(acceptPause):
			case <-serving.Done():
			}
		}
	}
}

// acceptPause keeps a peer that cannot accept from doing nothing else.
const acceptPause = 50 * time.Millisecond

// A peer finds out what those who connect are, and lets drivers take turns.
type peer struct {
	cfg   *PeerConfig
	rnic  *verbs.RNIC
	turn  chan struct{} // capacity 1: full while somebody has the turn
	first chan error    // capacity 1: with Once, how the first session went
	end   func()        // ends Serve

	mu      sync.Mutex
	opening []net.Conn // those who have not said what they are, oldest first
	waiting int        // drivers that wait for their turn
	current *session   // that has the turn, or nil
}

// enter counts a connection in, if need be in place of the one that has kept
// silent for longest.
func (p *peer) enter(nc net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.opening) >= maxOpening {
		p.opening[0].Close()
		p.opening = slices.Delete(p.opening, 0, 1)
	}
	p.opening = append(p.opening, nc)
}

// leave counts it out: it has said what it is, or ended.
func (p *peer) leave(nc net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.opening, nc); i >= 0 {
		p.opening = slices.Delete(p.opening, i, i+1)
	}
}

// receive finds out what a connection is, which it owns, and serves it.
func (p *peer) receive(ctx context.Context, nc *net.TCPConn) {
	defer p.leave(nc)
	release := guard(ctx, nc)
	defer release()
	allow(ctx, nc, p.cfg.limits.open)
	var mark [1]byte
	_, err := io.ReadFull(nc, mark[:])
	switch {
	case err == nil && mark[0] == controlMark:
		err = p.drive(ctx, nc)
	case err == nil && mark[0] == joinMark:
		if err = p.join(nc, release); err != nil {
			nc.Close()
		}
	default:
		nc.Close()
		err = stranger(err)
	}
	if err != nil && ctx.Err() == nil {
		p.cfg.Logger.Warn("connection ended", "peer", nc.RemoteAddr(), "err", err)
	}
}

// errStranger says that a connection is of no driver, or of another session.
var errStranger = errors.New("not a connection of weft perf, or one of a session that is over")

// stranger is errStranger with what there was instead, if that was an error.
func stranger(err error) error {
	if err == nil {
		return errStranger
	}
	return fmt.Errorf("%w: %w", errStranger, err)
}

// join hands a connection to the session whose token it brings, when it has
// been released from the limits of its opening.
func (p *peer) join(nc *net.TCPConn, release func()) error {
	var token [tokenLen]byte
	if _, err := io.ReadFull(nc, token[:]); err != nil {
		return stranger(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil || !p.current.known(token[:]) || len(p.current.joined) == cap(p.current.joined) {
		return errStranger
	}
	release()
	p.current.joined <- nc // mu makes this the only one who sends
	return nil
}

// drive serves a driver, by its control connection, when its turn has come.
func (p *peer) drive(ctx context.Context, nc net.Conn) error {
	s := newSession(p.cfg, p.rnic, nc)
	defer s.close()
	if err := s.greet(ctx); err != nil {
		return err
	}
	p.leave(nc)
	if err := p.take(ctx, s); err != nil {
		return err
	}
	err := s.answer(ctx, reply{}, nil)
	if err == nil {
		err = s.serve(ctx)
	}
	p.give(s)
	if p.cfg.Once {
		select {
		case p.first <- err:
			p.end()
		default:
		}
	}
	return err
}

// take waits for the turn of s.
func (p *peer) take(ctx context.Context, s *session) error {
	select {
	case p.turn <- struct{}{}:
	default:
		if !p.queue() {
			return s.answer(ctx, reply{}, errors.New("too many wait for their turn: try again later"))
		}
		defer p.unqueue()
		if err := s.answer(ctx, reply{Wait: true}, nil); err != nil {
			return err
		}
		select {
		case p.turn <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	p.mu.Lock()
	p.current = s
	p.mu.Unlock()
	return nil
}

// give ends s, and then lets the next driver have its turn: memory is that of
// one session at a time.
func (p *peer) give(s *session) {
	p.mu.Lock()
	p.current = nil
	p.mu.Unlock()
	s.close()
	<-p.turn
}

// queue counts a driver in that waits; false says that there are too many.
func (p *peer) queue() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == maxWaiting {
		return false
	}
	p.waiting++
	return true
}

func (p *peer) unqueue() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
}
