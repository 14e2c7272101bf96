// This file serves one driver.

package perf

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// A session serves one driver at the peer.
type session struct {
	cfg     *PeerConfig
	rnic    *verbs.RNIC
	ctl     *control
	hello   hello
	joined  chan *net.TCPConn // capacity 1: the driver's next connection
	streams []*tcpStream
	rdma    map[bool][]*endpoint // by CRC
	shared  map[bool]consumers   // of rdma
	rests   atomic.Int64         // since when the driver asks for nothing, Unix time in nanoseconds; 0: it does
}

func newSession(cfg *PeerConfig, rnic *verbs.RNIC, nc net.Conn) *session {
	return &session{cfg: cfg, rnic: rnic, ctl: newControl(nc), joined: make(chan *net.TCPConn, 1), rdma: make(map[bool][]*endpoint), shared: make(map[bool]consumers)}
}

// answer replies to a request, with err if there is one, and returns it.
func (s *session) answer(ctx context.Context, rep reply, err error) error {
	if err != nil {
		rep = reply{Error: err.Error()}
	}
	allow(ctx, s.ctl.nc, s.cfg.limits.open)
	return because(ctx, errors.Join(err, s.ctl.send(rep)))
}

// greet reads the hello of the driver, which is answered when the driver has the turn.
func (s *session) greet(ctx context.Context) error {
	if err := refuseTLS(s.ctl.r); err != nil {
		return s.answer(ctx, reply{}, err)
	}
	var req request
	if err := s.ctl.receive(&req); err != nil {
		return because(ctx, err)
	}
	err := s.check(&req)
	if err != nil {
		return s.answer(ctx, reply{}, err)
	}
	s.hello = *req.Hello
	return nil
}

// check refuses a hello that the peer cannot serve.
func (s *session) check(req *request) error {
	h := req.Hello
	switch {
	case req.Do != doHello || h == nil:
		return fmt.Errorf("a session must begin with a hello, not with %q", req.Do)
	case h.Protocol != protocol:
		return fmt.Errorf("this end speaks %q, not %q: use the same version of weft at both ends", protocol, h.Protocol)
	case len(h.Token) != tokenLen:
		return fmt.Errorf("a token of %d bytes: expected %d", len(h.Token), tokenLen)
	case h.Connections < 1 || h.Connections > MaxConnections:
		return fmt.Errorf("%d connections requested: the limit is %d", h.Connections, MaxConnections)
	case h.Consumers < 0 || h.Consumers > h.Connections:
		return fmt.Errorf("%d consumers requested for %d connections: expected as many or fewer", h.Consumers, h.Connections)
	case h.Room < 1 || h.Room > maxRoom/h.Connections:
		return fmt.Errorf("%d bytes of memory requested for each of %d connections: the limit is %d in all", h.Room, h.Connections, maxRoom)
	case h.Depth < 1 || h.Depth > DepthLimit(h.Connections):
		return fmt.Errorf("a depth of %d requested with %d connections: the limit is %d", h.Depth, h.Connections, DepthLimit(h.Connections))
	}
	return nil
}

// serve executes the requests of the driver until it closes the connection.
func (s *session) serve(ctx context.Context) error {
	for {
		var req request
		allow(ctx, s.ctl.nc, s.cfg.limits.idle)
		s.rests.Store(time.Now().UnixNano())
		err := s.ctl.receive(&req)
		s.rests.Store(0)
		if err == io.EOF {
			return nil
		} else if err != nil {
			return because(ctx, err)
		}
		rep, err := s.obey(ctx, &req)
		if err := s.answer(ctx, rep, err); err != nil {
			return err
		}
	}
}

// interrupt ends the session of an idle driver.
func (s *session) interrupt() { s.ctl.interrupt() }

// close releases everything. No connection can join by then.
func (s *session) close() {
	for _, endpoints := range s.rdma {
		for _, e := range endpoints {
			e.close()
		}
	}
	for _, cs := range s.shared {
		cs.close()
	}
	for _, st := range s.streams {
		st.nc.Close()
	}
	s.rdma, s.shared, s.streams = nil, nil, nil
	select {
	case nc := <-s.joined:
		nc.Close()
	default:
	}
	s.ctl.nc.Close()
}

// obey executes a request.
func (s *session) obey(ctx context.Context, req *request) (rep reply, err error) {
	limit := s.cfg.limits.open
	if req.Do == doRun {
		limit = s.cfg.limits.run
	}
	ctx, cancel := limited(ctx, limit)
	defer cancel()
	switch {
	case req.Do == doStream && len(s.streams) < s.hello.Connections:
		rep, err = s.takeStream(ctx)
	case req.Do == doConnect && req.Remote != nil && len(s.rdma[req.CRC]) < s.hello.Connections:
		rep, err = s.connect(ctx, req)
	case req.Do == doRun && req.Run != nil:
		err = s.run(ctx, req.Run)
	default:
		err = fmt.Errorf("unexpected request %q", req.Do)
	}
	return rep, because(ctx, err)
}

// known reports whether a token is that of the session.
func (s *session) known(token []byte) bool {
	return subtle.ConstantTimeCompare(token, s.hello.Token) == 1
}

// next waits for the driver's next connection.
func (s *session) next(ctx context.Context) (*net.TCPConn, error) {
	select {
	case nc := <-s.joined:
		if err := s.hello.Tuning.socket().Apply(nc); err != nil {
			nc.Close()
			return nil, err
		}
		return nc, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("the driver did not connect: %w", context.Cause(ctx))
	}
}

// takeStream takes a plain TCP connection.
func (s *session) takeStream(ctx context.Context) (reply, error) {
	nc, err := s.next(ctx)
	if err != nil {
		return reply{}, err
	}
	s.streams = append(s.streams, newTCPStream(nc, s.hello.Room))
	return reply{}, nil
}

// connect takes an RDMA connection.
func (s *session) connect(ctx context.Context, req *request) (reply, error) {
	h := &s.hello
	if s.shared[req.CRC] == nil {
		cs, err := newConsumers(s.rnic, h.Consumers, h.Connections, h.Depth, h.Tuning)
		if err != nil {
			return reply{}, err
		}
		s.shared[req.CRC] = cs
	}
	e, err := newEndpoint(s.rnic, h.Room, h.Depth, h.Tuning, s.shared[req.CRC].next(len(s.rdma[req.CRC])))
	if err != nil {
		return reply{}, err
	}
	if err := s.establish(ctx, e, req.CRC); err != nil {
		e.close()
		return reply{}, err
	}
	e.peer = verbs.Remote{STag: memory.STag(req.Remote.STag), TO: req.Remote.TO}
	s.rdma[req.CRC] = append(s.rdma[req.CRC], e)
	return reply{Remote: e.remote()}, nil
}

// establish goes through MPA's start-up on the driver's next connection.
func (s *session) establish(ctx context.Context, e *endpoint, crc bool) error {
	tcp, err := s.next(ctx)
	if err != nil {
		return err
	}
	var nc net.Conn = tcp
	if s.cfg.TLS != nil {
		if nc, err = cm.AcceptTLS(ctx, nc, s.cfg.TLS); err != nil {
			return err
		}
	}
	cfg := s.hello.Tuning.mpa(crc)
	r, err := cm.Receive(ctx, wrapped(nc, s.cfg.Wrap), cfg)
	if err != nil {
		return err
	}
	e.conn, err = r.Accept(ctx, e.qp, cm.Params{MPA: cfg})
	return err
}

// run executes the peer's part of a run. It replies when it is ready, and compares the
// data when driver and peer have finished.
func (s *session) run(ctx context.Context, r *run) error {
	if err := r.check(s.hello.Room, s.hello.Depth); err != nil {
		return err
	}
	s.ctl.nc.SetDeadline(time.Time{}) // until now there had to be a request soon; from here ctx has the limit
	defer guard(ctx, s.ctl.nc)()
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
		return fmt.Errorf("unexpected request %q: expected %q", req.Do, doCheck)
	}
	return compare()
}

// part prepares the peer for r. It returns the peer's part, and the check to run when
// both parts are done.
func (s *session) part(ctx context.Context, r *run) (part, compare func() error, err error) {
	n := s.hello.Connections
	runs := r.split(n)
	if r.Kind == stream || r.Kind == echo {
		if len(s.streams) != n {
			return nil, nil, fmt.Errorf("only %d of %d plain TCP connections were made", len(s.streams), n)
		}
		return func() error {
			return together(ctx, "connection", n, func(ctx context.Context, i int) error {
				if r.Kind == stream {
					return s.streams[i].answer(ctx, &runs[i])
				}
				return s.streams[i].pong(ctx, &runs[i])
			})
		}, func() error { return nil }, nil
	}
	endpoints := s.rdma[r.CRC]
	if len(endpoints) != n {
		return nil, nil, fmt.Errorf("only %d of %d RDMA connections with CRC %s were made", len(endpoints), n, onOff(r.CRC))
	}
	pongs := r.Kind == latency && !r.Op.fetches()
	for i, e := range endpoints {
		e.prepare(&runs[i], runs[i].peerSeed())
		if pongs {
			err = e.preparePong(&runs[i])
		} else {
			err = e.prepareAnswer(&runs[i])
		}
		if err != nil {
			return nil, nil, err
		}
	}
	part = func() error {
		return s.shared[r.CRC].together(ctx, n, func(ctx context.Context, i int) error {
			if pongs {
				return endpoints[i].pong(ctx, &runs[i])
			}
			return endpoints[i].answer(ctx, &runs[i])
		})
	}
	compare = func() error {
		for i, e := range endpoints {
			if err := e.checkPeer(&runs[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return part, compare, nil
}
