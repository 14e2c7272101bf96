package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/verbs"
)

// Bounds of what those who connect can make a peer keep or wait for.
const (
	maxRoom    = MaxSize          // bytes of memory each way, of all connections with one setting of the CRC
	maxDepth   = 1 << 14          // messages under way on one connection
	maxDepths  = 1 << 16          // and on all with one setting of the CRC
	maxOpening = 64               // connections that have not said what they are
	maxWaiting = 16               // drivers that wait for their turn
	openLimit  = 10 * time.Second // for each step of a session's set-up
	idleLimit  = 30 * time.Second // between two requests of a driver
	runLimit   = 2 * time.Minute  // for each run
	turnLimit  = time.Second      // between two requests while others wait
)

// MaxConnections is the largest number of connections of each kind.
const MaxConnections = 256

// DepthLimit is how many messages may be under way at a time on each of so
// many connections.
func DepthLimit(connections int) int { return min(maxDepth, maxDepths/connections) }

// SizeLimit is how many bytes each of their messages may have.
func SizeLimit(connections int) int { return maxRoom / connections }

// limits are the times that a peer gives those who connect.
// Turn is how long who has the turn may ask for nothing while others wait; 0: as
// long as idle.
type limits struct{ open, idle, run, turn time.Duration }

// A PeerConfig says how a peer serves.
type PeerConfig struct {
	Listener *net.TCPListener
	Logger   *slog.Logger            // tells of those who could not be served
	Wrap     func(net.Conn) net.Conn // around RDMA connections; nil for nothing
	Once     bool                    // end after the first session

	// Admit decides which connections are taken; nil is origin.Everybody. Others
	// are reset and logged.
	Admit origin.Admit

	limits limits // zero is the constants above
}

// Serve takes the other end of measurements, one driver at a time, until ctx
// ends, and closes the listener. Whoever connects is heard at once, so that
// nobody who says nothing, or nonsense, keeps drivers from being served; drivers
// that come during a measurement wait, those of all origins in turn. Who has the turn
// and asks for nothing loses it after a second if others wait. With Once it returns how the first
// session went; otherwise sessions that fail are logged.
func Serve(ctx context.Context, cfg PeerConfig) error {
	defer cfg.Listener.Close()
	if cfg.limits == (limits{}) {
		cfg.limits = limits{open: openLimit, idle: idleLimit, run: runLimit, turn: turnLimit}
	}
	if cfg.Admit == nil {
		cfg.Admit = origin.Everybody
	}
	rnic, err := verbs.Open(verbs.Config{Logger: cfg.Logger})
	if err != nil {
		return err
	}
	defer rnic.Close()
	p := &peer{cfg: &cfg, rnic: rnic, opening: fairness.NewPlaces(maxOpening), first: make(chan error, 1)}
	p.turned.Logger = cfg.Logger
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
			if o := p.enter(serving, nc); o != nil { // here, in the order of their coming
				all.Go(func() { p.receive(serving, o) })
			}
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
	cfg     *PeerConfig
	rnic    *verbs.RNIC
	opening *fairness.Places // of those who have not said what they are
	turned  fairness.Log     // those turned away
	first   chan error       // capacity 1: with Once, how the first session went
	end     func()           // ends Serve

	mu      sync.Mutex
	taken   bool         // somebody has the turn
	current *session     // that has it, nil once it ends
	last    origin.Share // that had it before
	waiting []*waiter    // for it, oldest first
	looking bool         // look is to come
}

// An opening is a connection that has not said what it is.
type opening struct {
	nc    *net.TCPConn
	share origin.Share
	began time.Time
	leave func() // gives its place back; may be called again
}

// Standing is that of a [fairness.Holder].
func (o *opening) Standing() fairness.Standing { return fairness.Standing{Since: o.began} }

// Evict closes the connection.
func (o *opening) Evict(error) (gone bool) {
	drop(o.nc)
	return true
}

// drop resets a connection.
func drop(nc *net.TCPConn) {
	nc.SetLinger(0)
	nc.Close()
}

// enter gives a connection a place, if need be that of another, mostly that which
// has kept silent for longest. Nil says that there is none, and it is closed.
func (p *peer) enter(ctx context.Context, nc *net.TCPConn) *opening {
	from, err := p.cfg.Admit(nc)
	if err != nil {
		drop(nc)
		p.turned.Tell(slog.LevelWarn, "refused a connection", origin.Of(nc.RemoteAddr()).Share(), nc.RemoteAddr(), err)
		return nil
	}
	o := &opening{nc: nc, share: from.Share(), began: time.Now()}
	place, err := p.opening.Take(ctx, o.share, o)
	if err != nil {
		drop(nc)
		p.turned.Tell(slog.LevelWarn, "refused a connection", o.share, nc.RemoteAddr(), err)
		return nil
	}
	o.leave = sync.OnceFunc(place.Free)
	return o
}

// receive finds out what a connection is, which it owns, and serves it.
func (p *peer) receive(ctx context.Context, o *opening) {
	defer o.leave()
	nc := o.nc
	release := guard(ctx, nc)
	defer release()
	allow(ctx, nc, p.cfg.limits.open)
	var mark [1]byte
	_, err := io.ReadFull(nc, mark[:])
	switch {
	case err == nil && mark[0] == controlMark:
		err = p.drive(ctx, o)
	case err == nil && mark[0] == joinMark:
		if err = p.join(nc, release); err != nil {
			nc.Close()
		}
	default:
		nc.Close()
		err = stranger(err)
	}
	if err != nil && ctx.Err() == nil {
		p.turned.Tell(slog.LevelWarn, "connection ended", o.share, nc.RemoteAddr(), err)
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
func (p *peer) drive(ctx context.Context, o *opening) error {
	s := newSession(p.cfg, p.rnic, o.nc)
	defer s.close()
	if err := s.greet(ctx); err != nil {
		return err
	}
	if err := p.take(ctx, s, o); err != nil {
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
