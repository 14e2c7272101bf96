// This file is what belongs to one connection in front: the caller behind it,
// and the calls that pass, both ways.

package gateway

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
)

// A session is one connection in front with its connection behind.
type session struct {
	g      *Gateway
	remote net.Addr      // of the client
	client string        // who that is: see clientOf
	back   oncrpc.Caller // calls the client back; nil if that cannot be
	seen   seen          // the client's last calls

	opened chan struct{} // closed when there is a caller, or an error
	caller oncrpc.Caller // calls the server
	err    error

	closing sync.Once
	closed  atomic.Bool
}

// open makes the caller, for r, the first call, when there is a place for it.
func (s *session) open(ctx context.Context, r *oncrpc.Request) {
	defer close(s.opened)
	select {
	case s.g.slots <- struct{}{}:
	case <-ctx.Done():
		s.err = oncrpc.ErrNoReply // the connection in front has gone
		return
	}
	s.caller, s.err = s.g.cfg.Backend.Open(Front{
		Network: r.Network, Remote: r.Remote,
		Port:    s.g.past.take(s.client, markOf(r)),
		Reverse: oncrpc.HandlerFunc(s.reverse),
	})
	if s.err != nil {
		<-s.g.slots
		s.g.cfg.Logger.Warn("the server behind cannot be called", "for", r.Remote, "err", s.err)
	}
}

// forward passes a call of the client's on to the server.
func (s *session) forward(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
	s.seen.add(markOf(r))
	if wait := s.g.cfg.Wait; wait > 0 {
		limited, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		ctx = limited
	}
	reply, err := pass(ctx, s.caller, r, s.g.place(r))
	if s.closed.Load() {
		err = oncrpc.ErrNoReply // another connection has taken its place
	}
	if errors.Is(err, &rpcrdma.Error{Fault: rpcrdma.FaultStream}) && s.g.garbage(r) {
		err = &oncrpc.AcceptError{Stat: oncrpc.GarbageArgs, Err: err}
	}
	if err != nil && !errors.Is(err, oncrpc.ErrNoReply) {
		s.g.cfg.Logger.Info("a call was not executed", "from", s.remote, "program", r.Prog, "procedure", r.Proc, "err", err)
	}
	return reply, err
}

// reverse passes a call of the server's on to the client.
func (s *session) reverse(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
	if s.back == nil {
		return nil, &oncrpc.AcceptError{Stat: oncrpc.ProgUnavail}
	}
	return pass(ctx, s.back, r, placement{})
}

// pass calls on behalf of r, and returns the reply as r's handler does.
func pass(ctx context.Context, to oncrpc.Caller, r *oncrpc.Request, p placement) ([]byte, error) {
	m := memory{r: r}
	reply, err := to.Call(ctx, &oncrpc.ClientCall{
		Call: r.Call, Args: [][]byte{r.Args},
		Forward: true, Sinks: p.sinks, Alloc: m.alloc,
	})
	if err != nil {
		return nil, refusal(ctx, err)
	}
	defer reply.Release()
	if m.holds(reply.Message) && len(reply.Placed) == 0 {
		return reply.Message, nil // read to where it is sent from
	}
	return p.assemble(r, reply), nil
}

// refusal is what a client in front gets told of a call without a reply.
func refusal(ctx context.Context, err error) error {
	// The client is gone, or has waited long enough. Or it has repeated a call
	// that is under way: the reply to that will answer both, and a server that
	// got it twice might execute it twice.
	if ctx.Err() != nil || errors.Is(err, oncrpc.ErrXIDInUse) {
		return oncrpc.ErrNoReply
	}
	return systemErr(err)
}

// systemErr has SYSTEM_ERR told of a reply that makes no sense: the arguments,
// which are what such an error is about elsewhere, were the client's.
func systemErr(err error) error {
	var decode *oncrpc.DecodeError
	if errors.As(err, &decode) {
		return &oncrpc.AcceptError{Stat: oncrpc.SystemErr, Err: err}
	}
	return err
}

// memory gives memory of r's for a reply, and knows it again. A reply that did
// not arrive whole leaves its memory to the next.
type memory struct {
	r    *oncrpc.Request
	last []byte
}

func (m *memory) alloc(n int) []byte {
	if n > cap(m.last) {
		m.last = m.r.Buffer(n)
	}
	m.last = m.last[:n]
	return m.last
}

// holds reports whether b is what was given out last.
func (m *memory) holds(b []byte) bool {
	return len(b) > 0 && len(m.last) > 0 && &b[0] == &m.last[0]
}

// close ends the session: its calls under way get no reply.
func (s *session) close() {
	<-s.opened
	if s.err != nil {
		return
	}
	s.closing.Do(func() {
		s.closed.Store(true)
		if c, ok := s.caller.(interface{ LocalPort() int }); ok {
			s.g.past.put(s.client, c.LocalPort(), s.seen.all())
		}
		s.caller.Close()
		<-s.g.slots
	})
}
