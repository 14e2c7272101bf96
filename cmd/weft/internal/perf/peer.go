// This file is the end that serves measurements.

package perf

import (
	"context"
	"crypto/tls"
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

// Limits of what a peer keeps for drivers, and how long it waits for them.
const (
	maxRoom    = MaxSize          // bytes of memory each way, of all connections with one setting of the CRC
	maxDepth   = 1 << 14          // messages under way on one connection
	maxDepths  = 1 << 16          // and on all with one setting of the CRC
	maxOpening = 64               // connections whose first byte has not come
	maxWaiting = 16               // drivers in the queue
	openLimit  = 10 * time.Second // for each step of a session's set-up
	idleLimit  = 30 * time.Second // between two requests of a driver
	runLimit   = 2 * time.Minute  // for each run
	turnLimit  = time.Second      // between two requests while others wait
)

// MaxConnections is the largest number of connections of each kind.
const MaxConnections = 256

// DepthLimit is the largest depth of each of so many connections.
func DepthLimit(connections int) int { return min(maxDepth, maxDepths/connections) }

// SizeLimit is the largest message, in bytes, on each of so many connections.
func SizeLimit(connections int) int { return maxRoom / connections }

// limits are the time limits for a driver. Turn is how long the driver that has the
// turn may be idle while others wait; 0 is as long as idle.
type limits struct{ open, idle, run, turn time.Duration }

// A PeerConfig says how a peer serves.
type PeerConfig struct {
	Listener *net.TCPListener
	Opened   func(*verbs.RNIC)       // is called with the RNIC that serves; may be nil
	Logger   *slog.Logger            // reports drivers that could not be served
	TLS      *tls.Config             // encrypts control and RDMA connections; nil for plain ones
	Wrap     func(net.Conn) net.Conn // around RDMA connections, inside of TLS; nil for nothing
	Once     bool                    // end after the first session

	// Admit decides which connections are taken; nil is origin.Everybody. Others
	// are reset and logged.
	Admit origin.Admit

	limits limits // zero is the constants above
}

// Serve is the other end of measurements, one driver at a time, until ctx ends; then it
// closes the listener. It reads the first byte of every connection at once, so that a
// silent or broken peer does not keep drivers waiting. Drivers that connect during a
// measurement are queued. While drivers wait, one that has the turn and is idle for a
// second loses it. With Once Serve returns the result of the first session; otherwise
// it logs sessions that fail.
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
	if cfg.Opened != nil {
		cfg.Opened(rnic)
	}
	p := &peer{cfg: &cfg, rnic: rnic, opening: fairness.NewPlaces(maxOpening), first: make(chan error, 1)}
	p.refused.Logger = cfg.Logger
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

// acceptPause is the backoff after a failed accept.
const acceptPause = 50 * time.Millisecond

// A peer sorts connections by their first byte, and gives drivers their turns.
type peer struct {
	cfg     *PeerConfig
	rnic    *verbs.RNIC
	opening *fairness.Places // of connections whose first byte has not come
	refused fairness.Log     // of connections that were refused or failed
	first   chan error       // capacity 1: with Once, how the first session went
	end     func()           // ends Serve

	mu       sync.Mutex
	busy     bool         // a driver has the turn
	current  *session     // its session, nil once that ends
	last     origin.Share // the share that has or had the turn
	waiting  []*waiter    // for the turn, oldest first
	watching bool         // watchIdle's timer is set
}

// An opening is a connection whose first byte has not come.
type opening struct {
	nc    *net.TCPConn
	share origin.Share
	began time.Time
	leave func() // releases its place; may be called again
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

// enter gives a connection a place, if need be by evicting another, mostly the one that
// has been silent for longest. It returns nil if it has closed the connection.
func (p *peer) enter(ctx context.Context, nc *net.TCPConn) *opening {
	from, err := p.cfg.Admit(nc)
	if err != nil {
		drop(nc)
		p.refused.Log(slog.LevelWarn, "refused a connection", origin.Of(nc.RemoteAddr()).Share(), nc.RemoteAddr(), err)
		return nil
	}
	o := &opening{nc: nc, share: from.Share(), began: time.Now()}
	place, err := p.opening.Acquire(ctx, o.share, o)
	if err != nil {
		drop(nc)
		p.refused.Log(slog.LevelWarn, "refused a connection", o.share, nc.RemoteAddr(), err)
		return nil
	}
	o.leave = sync.OnceFunc(place.Free)
	return o
}

// receive reads the first byte of a connection, which it owns, and serves it.
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
		p.refused.Log(slog.LevelWarn, "connection ended", o.share, nc.RemoteAddr(), err)
	}
}

// errStranger is the error of a connection that belongs to no driver or session.
var errStranger = errors.New("not a connection of weft perf, or one of a session that is over")

// stranger returns errStranger, with its cause if there is one.
func stranger(err error) error {
	if err == nil {
		return errStranger
	}
	return fmt.Errorf("%w: %w", errStranger, err)
}

// join hands a connection to the session of its token, after the time limits of its
// opening have been released.
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
	p.current.joined <- nc // mu makes this the only sender
	return nil
}

// drive serves a driver by its control connection, when it has the turn.
func (p *peer) drive(ctx context.Context, o *opening) error {
	var nc net.Conn = o.nc
	if p.cfg.TLS != nil {
		var err error
		if nc, err = securePeer(ctx, nc, p.cfg.TLS); err != nil {
			o.nc.Close()
			return because(ctx, err)
		}
	}
	s := newSession(p.cfg, p.rnic, nc)
	defer s.close()
	if err := s.greet(ctx); err != nil {
		return err
	}
	if err := p.waitTurn(ctx, s, o); err != nil {
		return err
	}
	err := s.answer(ctx, reply{}, nil)
	if err == nil {
		err = s.serve(ctx)
	}
	p.endTurn(s)
	if p.cfg.Once {
		select {
		case p.first <- err:
			p.end()
		default:
		}
	}
	return err
}
