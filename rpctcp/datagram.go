// This file serves calls that come one in a datagram, as those of the port
// mapper and of MOUNT may.

package rpctcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

const (
	// maxCallDatagram is the longest call that is accepted, in octets: more than programs
	// that use datagrams need. (RFC 1831 has no limit; 8800 is that of Sun's library.)
	maxCallDatagram = 8800
	// maxAnswer limits a reply, as a multiple of its call, so that a datagram with a
	// forged source address amplifies an attack only a little.
	maxAnswer = 3
	// datagramCalls limits the calls that are executed at a time. Further calls wait in
	// the socket.
	datagramCalls = 16
	// maxFailed limits the reads that may fail in a row.
	maxFailed = 100
)

// ServePacket serves calls that arrive as datagrams, usually UDP, until the context or the
// server ends, and closes pc. It is for programs with short messages: a call of more than
// 8800 octets gets no reply, nor does one whose reply would be more than three times as
// long as the call. Clients make those calls over TCP. The error is never nil.
func (s *Server) ServePacket(ctx context.Context, pc net.PacketConn) error {
	defer pc.Close()
	leave, err := s.register(func() { pc.Close() })
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { pc.Close() })
	defer stop()

	accounts := newDatagrams(&s.setting)
	defer accounts.close()
	slots := make(chan struct{}, datagramCalls)
	for failed := 0; ; failed++ {
		slots <- struct{}{}
		in, err := get(ctx, accounts.calls, maxCallDatagram+1)
		if err != nil {
			return s.over(ctx)
		}
		n, from, err := pc.ReadFrom(in.b)
		if err != nil {
			in.release()
			<-slots
			if err := s.over(ctx); err != nil {
				return err
			}
			if errors.Is(err, net.ErrClosed) || failed == maxFailed {
				return fmt.Errorf("rpctcp: cannot read: %w", err)
			}
			continue // mostly that a reply did not arrive
		}
		failed = 0
		in.b = in.b[:n]
		calls.Go(func() {
			s.datagram(ctx, pc, from, in, accounts)
			<-slots
		})
	}
}

// datagrams has the accounts that all datagrams share. They are never evicted, because their
// replies do not wait for the peer.
type datagrams struct {
	calls, replies *fairness.Account
	lying          atomic.Int32
}

func newDatagrams(s *setting) *datagrams {
	d := new(datagrams)
	d.calls = s.in.Open(origin.Share{}, s.in.Limit(), d)
	d.replies = s.out.Open(origin.Share{}, s.out.Limit(), d)
	return d
}

func (d *datagrams) close() {
	d.calls.Close()
	d.replies.Close()
}

// Stake is that of a [fairness.Debtor].
func (d *datagrams) Stake() fairness.Stake { return fairness.Stake{} }

// Evict does nothing: it is never called, as nothing is the peers' turn.
func (d *datagrams) Evict(error) (gone bool) { return false }

// datagram has one call executed. It gets no answer where that could not be
// trusted to be wanted.
func (s *Server) datagram(ctx context.Context, pc net.PacketConn, from net.Addr, in *buffer, a *datagrams) {
	c := servedCalls.Get().(*served)
	c.in, c.replies, c.lying = in, a.replies, &a.lying
	defer c.free()
	if len(in.b) > maxCallDatagram {
		return
	}
	if s.cfg.Allow != nil && !s.cfg.Allow(from) {
		s.refusals.Log(slog.LevelWarn, "dropped a datagram", origin.Of(from).Share(), from, errNotAllowed)
		return
	}
	if c.parse() != nil {
		return
	}
	c.Network, c.Local, c.Remote = "udp", pc.LocalAddr(), from
	c.Origin = origin.Of(from)
	c.Session, c.Alloc = new(byte), c.alloc // no two calls have it
	if c.Cred.Flavor == oncrpc.FlavorTLS {  // DTLS is not served
		c.reject = badCred()
	}
	reply, err := c.answer(ctx, s.setting.handler)
	if err == nil && len(reply) > maxAnswer*len(in.b) {
		err = fmt.Errorf("%w: a reply of %d octets to a call of %d, which may have it over TCP", oncrpc.ErrLimit, len(reply), len(in.b))
	}
	if err == nil {
		_, err = pc.WriteTo(reply, from)
	}
	if err != nil && !errors.Is(err, oncrpc.ErrNoReply) {
		s.cfg.Logger.Debug("a call is not answered", "from", from, "call", c.XID, "err", err)
	}
}
