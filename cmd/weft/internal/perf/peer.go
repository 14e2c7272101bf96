package perf

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// Bounds of what a driver can make a peer keep or wait for.
const (
	maxRoom   = MaxSize
	MaxDepth  = 1 << 14          // messages under way
	openLimit = 10 * time.Second // for each step of a session's set-up
	runLimit  = 2 * time.Minute  // for each run
)

// A PeerConfig says how a peer serves.
type PeerConfig struct {
	Listener *net.TCPListener
	Logger   *slog.Logger
	Wrap     func(net.Conn) net.Conn // around RDMA connections; nil for nothing
	Once     bool                    // end after the first session
}

// Serve takes the other end of measurements, one driver at a time, until ctx
// ends, and closes the listener. With Once it returns how the first session
// went; otherwise sessions that fail are logged.
func Serve(ctx context.Context, cfg PeerConfig) error {
	defer cfg.Listener.Close()
	defer context.AfterFunc(ctx, func() { cfg.Listener.Close() })()
	rnic, err := verbs.Open(verbs.Config{Logger: cfg.Logger})
	if err != nil {
		return err
	}
	defer rnic.Close()
	for {
		cfg.Listener.SetDeadline(time.Time{})
		nc, err := cfg.Listener.AcceptTCP()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("cannot accept: %w", err)
		}
		s := &session{cfg: &cfg, rnic: rnic, ctl: newControl(nc), rdma: make(map[bool]*endpoint)}
		err = s.serve(ctx)
		if cfg.Once {
			return err
		}
		if err != nil && ctx.Err() == nil {
			cfg.Logger.Warn("session failed", "driver", nc.RemoteAddr(), "err", err)
		}
	}
}

// A session is one driver's.
type session struct {
	cfg    *PeerConfig
	rnic   *verbs.RNIC
	ctl    *control
	hello  hello
	stream *tcpStream
	rdma   map[bool]*endpoint // by CRC
}

func (s *session) serve(ctx context.Context) error {
	defer s.close()
	release := guard(ctx, s.ctl.nc)
	defer release()
	s.ctl.nc.SetReadDeadline(time.Now().Add(openLimit))
	for {
		var req request
		if err := s.ctl.receive(&req); err != nil {
			if err == io.EOF && s.hello.Protocol != "" {
				return nil
			}
			return because(ctx, err)
		}
		s.ctl.nc.SetReadDeadline(time.Time{})
		rep, err := s.obey(ctx, &req)
		if err != nil {
			rep = reply{Error: err.Error()}
		}
		if err := errors.Join(err, s.ctl.send(rep)); err != nil {
			return because(ctx, err)
		}
	}
}

func (s *session) close() {
	for _, e := range s.rdma {
		e.close()
	}
	if s.stream != nil {
		s.stream.nc.Close()
	}
	s.ctl.nc.Close()
}

// obey does what a request asks.
func (s *session) obey(ctx context.Context, req *request) (reply, error) {
	if (req.Do == doHello) == (s.hello.Protocol != "") {
		return reply{}, errors.New("a session begins with a hello, and has one")
	}
	switch {
	case req.Do == doHello && req.Hello != nil:
		return reply{}, s.greet(req.Hello)
	case req.Do == doStream && s.stream == nil:
		return s.takeStream(ctx)
	case req.Do == doConnect && req.Remote != nil && s.rdma[req.CRC] == nil:
		return s.connect(ctx, req)
	case req.Do == doRun && req.Run != nil:
		ctx, cancel := context.WithTimeout(ctx, runLimit)
		defer cancel()
		err := s.run(ctx, req.Run)
		return reply{}, because(ctx, err)
	}
	return reply{}, fmt.Errorf("cannot do %q here", req.Do)
}

func (s *session) greet(h *hello) error {
	switch {
	case h.Protocol != protocol:
		return fmt.Errorf("this end speaks %q, not %q: use the same version of weft at both ends", protocol, h.Protocol)
	case h.Room < 1 || h.Room > maxRoom:
		return fmt.Errorf("%d octets of memory asked for: the limit is %d", h.Room, maxRoom)
	case h.Depth < 1 || h.Depth > MaxDepth:
		return fmt.Errorf("a depth of %d asked for: the limit is %d", h.Depth, MaxDepth)
	}
	s.hello = *h
	return nil
}

// accept accepts the driver's next connection. take says whether it is one, by
// the session's token; it owns the connection.
func (s *session) accept(ctx context.Context, take func(*net.TCPConn) error) error {
	deadline := time.Now().Add(openLimit)
	for {
		s.cfg.Listener.SetDeadline(deadline)
		nc, err := s.cfg.Listener.AcceptTCP()
		if err != nil {
			return fmt.Errorf("the driver's connection did not come: %w", because(ctx, err))
		}
		err = setCongestion(nc, s.hello.Tuning.Congestion)
		if err == nil {
			err = take(nc)
		}
		if !errors.Is(err, errStranger) {
			return err
		}
		s.cfg.Logger.Warn("turned a stranger away: one driver at a time", "from", nc.RemoteAddr(), "err", err)
	}
}

// errStranger says that a connection is not of this session.
var errStranger = errors.New("the connection is of another session")

func (s *session) known(token []byte) bool {
	return subtle.ConstantTimeCompare(token, s.hello.Token) == 1
}

// takeStream accepts the plain TCP connection.
func (s *session) takeStream(ctx context.Context) (reply, error) {
	var rep reply
	err := s.accept(ctx, func(nc *net.TCPConn) error {
		token := make([]byte, len(s.hello.Token))
		nc.SetDeadline(time.Now().Add(openLimit))
		if _, err := io.ReadFull(nc, token); err != nil || !s.known(token) {
			nc.Close()
			return errors.Join(errStranger, err)
		}
		nc.SetDeadline(time.Time{})
		s.stream = newTCPStream(nc, s.hello.Room)
		rep.Congestion = congestion(nc)
		return nil
	})
	return rep, err
}

// connect accepts an RDMA connection.
func (s *session) connect(ctx context.Context, req *request) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	e, err := newEndpoint(s.rnic, s.hello.Room, s.hello.Depth, s.hello.Tuning)
	if err != nil {
		return reply{}, err
	}
	err = s.accept(ctx, func(nc *net.TCPConn) error {
		cfg := s.hello.Tuning.mpa(req.CRC)
		r, err := cm.Receive(ctx, wrapped(nc, s.cfg.Wrap), cfg)
		if err != nil {
			return errors.Join(errStranger, err)
		}
		if !s.known(r.PrivateData()) {
			return errors.Join(errStranger, r.Reject(nil))
		}
		e.conn, err = r.Accept(ctx, e.qp, cm.Params{MPA: cfg})
		return err
	})
	if err != nil {
		e.close()
		return reply{}, err
	}
	e.peer = verbs.Remote{STag: memory.STag(req.Remote.STag), TO: req.Remote.TO}
	s.rdma[req.CRC] = e
	return reply{Remote: e.remote()}, nil
}

// run takes the peer's part of a run: it says when it is ready, and after its
// part, when the driver has done its own, compares what came.
func (s *session) run(ctx context.Context, r *run) error {
	if err := r.check(s.hello.Room, s.hello.Depth); err != nil {
		return err
	}
	part, compare, err := s.part(ctx, r)
	if err != nil {
		return err
	}
	if err := s.ctl.send(reply{}); err != nil {
		return err
	}
	if err := part(); err != nil {
		return err
	}
	var req request
	if err := s.ctl.receive(&req); err != nil {
		return err
	}
	if req.Do != doCheck {
		return fmt.Errorf("%q in place of %q", req.Do, doCheck)
	}
	return compare()
}

// part readies the peer for r. It returns its part, and how to compare what
// has come when both parts are done.
func (s *session) part(ctx context.Context, r *run) (part, compare func() error, err error) {
	if r.Kind == stream || r.Kind == echo {
		if s.stream == nil {
			return nil, nil, errors.New("there is no plain TCP connection")
		}
		return func() error {
			defer guard(ctx, s.stream.nc)()
			if r.Kind == stream {
				return s.stream.answer(r)
			}
			return s.stream.pong(r)
		}, func() error { return nil }, nil
	}
	e := s.rdma[r.CRC]
	if e == nil {
		return nil, nil, fmt.Errorf("there is no RDMA connection with CRC %t", r.CRC)
	}
	e.prepare(r, r.peerSeed())
	compare = func() error { return e.checkPeer(r) }
	if r.Kind == latency && !r.Op.fetches() {
		return func() error { return e.pong(ctx, r) }, compare, e.preparePong(r)
	}
	return func() error { return e.answer(ctx, r) }, compare, e.prepareAnswer(r)
}
