// This file holds the session of one connection in front: the caller for the server, and
// the forwarding of calls in both directions.

package gateway

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// A session is a connection in front, with its connection behind.
type session struct {
	g      *Gateway
	remote net.Addr      // of the client
	client string        // the client's identity: see clientOf
	back   oncrpc.Caller // calls the client back; nil if the transport cannot
	seen   seen          // the client's last calls

	opened chan struct{} // closed when caller or err is set
	caller oncrpc.Caller // calls the server
	err    error

	closing sync.Once
	closed  atomic.Bool
}

// open waits for a slot and makes the caller. r is the session's first call.
func (s *session) open(ctx context.Context, r *oncrpc.Request) {
	defer close(s.opened)
	select {
	case s.g.slots <- struct{}{}:
	case <-ctx.Done():
		s.err = oncrpc.ErrNoReply // the connection in front has ended
		return
	}
	s.caller, s.err = s.g.cfg.Backend.Open(Front{
		Network: r.Network, Remote: r.Remote,
		Port:    s.g.past.take(s.client, markOf(r)),
		Reverse: oncrpc.HandlerFunc(s.reverse),
	})
	if s.err != nil {
		<-s.g.slots
		s.g.cfg.Logger.Warn("cannot call the server", "for", r.Remote, "err", s.err)
	}
}

// forward forwards a call of the client to the server.
func (s *session) forward(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
	s.seen.add(markOf(r))
	if wait := s.g.cfg.Wait; wait > 0 {
		limited, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		ctx = limited
	}
	reply, err := pass(ctx, s.caller, r, s.g.place(r))
	if s.closed.Load() {
		err = oncrpc.ErrNoReply // the client has another connection now
	}
	if errors.Is(err, &wire.Error{Fault: wire.FaultStream}) && s.g.garbage(r) {
		err = &oncrpc.AcceptError{Stat: oncrpc.GarbageArgs, Err: err}
	}
	if err != nil && !errors.Is(err, oncrpc.ErrNoReply) {
		s.g.cfg.Logger.Info("call not executed", "from", s.remote, "program", r.Prog, "procedure", r.Proc, "err", err)
	}
	return reply, err
}

// reverse forwards a call of the server to the client.
func (s *session) reverse(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
	if s.back == nil {
		return nil, &oncrpc.AcceptError{Stat: oncrpc.ProgUnavail}
	}
	return pass(ctx, s.back, r, placement{})
}

// pass makes the call r, and returns the reply as a handler of r does.
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
		return reply.Message, nil // received where it is sent from
	}
	return p.assemble(r, reply), nil
}

// refusal returns the error to answer a call with that got no reply.
func refusal(ctx context.Context, err error) error {
	// The client is gone, or Config.Wait has passed. Or the client has retransmitted a
	// call that is in progress, whose reply will answer both; sent twice, the server
	// might execute it twice.
	if ctx.Err() != nil || errors.Is(err, oncrpc.ErrXIDInUse) {
		return oncrpc.ErrNoReply
	}
	return systemErr(err)
}

// systemErr turns the error for a malformed reply into SYSTEM_ERR. Elsewhere a DecodeError
// is about the arguments, and is answered with GARBAGE_ARGS; here those were the client's.
func systemErr(err error) error {
	var decode *oncrpc.DecodeError
	if errors.As(err, &decode) {
		return &oncrpc.AcceptError{Stat: oncrpc.SystemErr, Err: err}
	}
	return err
}

// memory provides memory of r for a reply, and recognizes it. A reply that does not
// arrive whole leaves its memory to the next one.
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

// holds reports whether b begins where alloc's last memory does.
func (m *memory) holds(b []byte) bool {
	return len(b) > 0 && len(m.last) > 0 && &b[0] == &m.last[0]
}

// close ends the session. Its calls in progress get no reply.
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
