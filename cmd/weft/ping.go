// This file is weft ping.

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/internal/rping"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/verbs"
)

const (
	// closeTime limits the wait for a graceful close, and hurriedTime after an
	// interrupt.
	closeTime   = 5 * time.Second
	hurriedTime = 250 * time.Millisecond
	// pingTime is how long the peer may keep silent between two messages.
	pingTime = 30 * time.Second
	// graceTime is how long an interrupted client waits for the current ping.
	graceTime = 400 * time.Millisecond
	// maxSessions limits the sessions of a persistent server, and half of the
	// descriptors do.
	maxSessions = 1024
)

// ping holds the flags of `weft ping`.
type ping struct {
	options
	observed                   observation
	server, client, persistent bool
	address                    string
	port, count, size          int
	verbose, validate, debug   int
	noCRC, markers, peerToPeer bool
	revision                   int
	timeout                    timeout
	allow                      allowed

	cmd      *cobra.Command
	log      *slog.Logger
	rnic     *verbs.RNIC
	wrapper  func(net.Conn) net.Conn
	tls      encryption
	admit    origin.Admit // of --allow
	sessions int          // of a persistent server at a time
	print    sync.Mutex   // standard output, shared by the sessions of a server
}

func newPing() *cobra.Command {
	p := &ping{sessions: min(maxSessions, fairness.Descriptors()/2)}
	cmd := &cobra.Command{
		Use:   "ping {-s | -c -a ADDR} [flags]",
		Short: "Ping by RDMA; interoperates with rping(1)",
		Long: `Ping does what rping of rdma-core does, interoperates with it and takes its flags: the
client advertises a text, the server fetches it by RDMA Read and returns it by RDMA
Write.

A server serves one client and exits. With -P it serves many, up to 1024 at a time:
when all places are taken, a new client takes the place of an idle session of the host
with the most. A server accepts pings of up to -S bytes, and of any size without -S.
With -p 0 the system chooses the port. A client pings until it is interrupted, or -C
times. If the peer does not answer within --timeout, the session fails.

The status is 1 if there was no connection or a session failed, 3 if the peer did not
answer in time, and 130 after an interrupt.`,
		Example: `  weft ping -s -a 127.0.0.1 -P              serve until interrupted
  weft ping -c -a 127.0.0.1 -C 10 -v        ping ten times and show the data
  weft ping -c -a 192.0.2.7 -S 60000 -V     large pings to rping -s -S 60000, compared
  weft ping -s --tls                        encrypted, with the certificate of weft cert`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.cmd = cmd
			return p.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&p.server, "server", "s", false, "be the server")
	f.BoolVarP(&p.client, "client", "c", false, "be the client")
	f.StringVarP(&p.address, "address", "a", "", "`ADDR` to connect to, or to listen on (default of a server: any)")
	f.IntVarP(&p.port, "port", "p", 7174, "TCP `PORT`")
	f.IntVarP(&p.count, "count", "C", 0, "ping `N` times (0: until interrupted)")
	f.IntVarP(&p.size, "size", "S", rping.DefaultSize, fmt.Sprintf("`BYTES` of a ping, %d to %d", rping.MinSize, rping.MaxSize))
	f.CountVarP(&p.verbose, "verbose", "v", "print the ping data``")
	f.CountVarP(&p.validate, "validate", "V", "compare the data that came back with the data sent``")
	f.CountVarP(&p.debug, "debug", "d", "log every step``")
	f.BoolVarP(&p.persistent, "persistent", "P", false, "serve many clients, also at the same time, until interrupted")
	p.allow.register(f, "all")
	p.timeout.register(f, "10s for connecting, then 30s")
	f.BoolVar(&p.noCRC, "no-crc", false, "do not ask for CRC32C (it is used if the peer asks)")
	f.BoolVar(&p.markers, "markers", false, "ask for MPA markers in what the peer sends")
	f.BoolVar(&p.peerToPeer, "peer-to-peer", false, "offer the peer-to-peer model of RFC 6581")
	f.IntVar(&p.revision, "mpa-rev", 2, "MPA `REVISION`: 2 (RFC 6581), 1 (RFC 5044) or 0 (RDMA Consortium); with 2, a server accepts 1, too")
	p.register(cmd)
	p.observed.register(cmd)
	p.tls.register(cmd)
	return cmd
}

// check checks the flags.
func (p *ping) check() error {
	switch {
	case p.server == p.client:
		return usagef("expected either -s for the server or -c for the client")
	case p.client && p.address == "":
		return usagef("missing server address: -a ADDR")
	case p.port < 0 || p.port > math.MaxUint16:
		return usagef("-p %d: expected 0 to %d", p.port, math.MaxUint16)
	case p.client && p.port == 0:
		return usagef("-p 0: expected the port of the server")
	case p.client && len(p.allow) > 0:
		return usagef("--allow is for the server: it restricts who may ping")
	case p.count < 0:
		return usagef("-C %d: expected 0 or more; 0 pings until interrupted", p.count)
	case p.size < rping.MinSize || p.size > rping.MaxSize:
		return usagef("-S %d: expected %d to %d bytes", p.size, rping.MinSize, rping.MaxSize)
	case p.peerToPeer && p.revision != 2:
		return usagef("--peer-to-peer needs --mpa-rev 2")
	case p.revision < 0 || p.revision >= len(profiles):
		return usagef("--mpa-rev %d: expected 0, 1 or 2", p.revision)
	}
	var err error
	p.admit, err = p.allow.admit()
	return err
}

func (p *ping) run(ctx context.Context) (err error) {
	if err := p.check(); err != nil {
		return err
	}
	if p.debug > 0 && !p.cmd.Flags().Changed("log-level") {
		p.logLevel = "debug"
	}
	if p.log, err = p.logger(p.cmd.ErrOrStderr()); err != nil {
		return err
	}
	if err := p.tls.open(p.notices(p.cmd, p.log, slog.LevelWarn)); err != nil {
		return err
	}
	wrap, stop, err := p.wrap()
	if err != nil {
		return err
	}
	p.wrapper = wrap
	defer func() { err = errors.Join(err, stop()) }()

	if p.rnic, err = verbs.Open(verbs.Config{Logger: p.log, Limits: verbs.Limits{QPs: p.sessions + 1}}); err != nil {
		return err
	}
	defer p.rnic.Close()
	if err := p.observed.open(ctx, p.cmd, &p.options); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.observed.close()) }()
	p.observed.rnic(p.rnic)
	if p.server {
		return p.serve(ctx)
	}
	return p.ping(ctx)
}

// profiles are those of --mpa-rev.
var profiles = [...]mpa.Profile{mpa.ProfileRDMAC, mpa.ProfileRFC5044, mpa.ProfileIETF}

// mpa returns the start-up parameters that the flags select.
func (p *ping) mpa() mpa.Config {
	return mpa.Config{Profile: profiles[p.revision], NoCRC: p.noCRC, Markers: p.markers, PeerToPeer: p.peerToPeer}
}

func (p *ping) params() cm.Params {
	return cm.Params{MPA: p.mpa(), Wrap: p.wrapper, Nudge: cm.DefaultNudge}
}

// rpcMagic begins the private data of servers of RPC over RDMA (RFC 8797 §4). They
// drop what a ping sends.
var rpcMagic = []byte{0xf6, 0xab, 0x0e, 0x18}

// ping runs the client.
func (p *ping) ping(ctx context.Context) error {
	c, err := rping.NewClient(p.rnic, p.size)
	if err != nil {
		return err
	}
	defer c.Close()
	c.Patience = p.timeout.or(pingTime)
	addr := net.JoinHostPort(p.address, strconv.Itoa(p.port))
	dialing, connected := context.WithTimeout(ctx, p.timeout.contact())
	params := p.params()
	params.TLS = p.tls.client(p.address)
	conn, err := cm.Dial(dialing, c.QP(), "tcp", addr, params)
	connected()
	if err != nil {
		return p.dialError(addr, err)
	}
	defer p.closeConn(ctx, conn)
	if bytes.HasPrefix(conn.PrivateData(), rpcMagic) {
		return fmt.Errorf("%s speaks RPC over RDMA, as NFS servers do: expected weft ping -s or rping -s; give its port with -p", addr)
	}
	p.observed.running()
	p.log.Debug("connected", "to", conn.RemoteAddr(), "crc", conn.MPA().CRC)
	// After an interrupt the current ping completes: to the server, a connection that
	// ends between two pings is closed gracefully.
	pinging, cancel := outlast(ctx, graceTime)
	defer cancel()
	for n := 0; p.count == 0 || n < p.count; n++ {
		if ctx.Err() != nil {
			return p.interrupted(ctx)
		}
		sent, echo, err := c.Ping(pinging, n)
		if errors.Is(err, context.Canceled) {
			return p.interrupted(ctx)
		}
		if err == nil && p.validate > 0 {
			err = rping.Compare(sent, echo)
		}
		if err != nil {
			return fmt.Errorf("ping %d: %w", n, err)
		}
		p.log.Debug("ping complete", "ping", n)
		if p.verbose > 0 {
			p.show("ping data", echo)
		}
	}
	return nil
}

// interrupted returns the result of an interrupted client: success, if it had no count.
func (p *ping) interrupted(ctx context.Context) error {
	if p.count == 0 {
		return nil
	}
	return ctx.Err()
}

// outlast returns a context that is done d after ctx is.
func outlast(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
	return longer, func() { stop(); cancel() }
}

// dialError explains why there is no connection.
func (p *ping) dialError(addr string, err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("nothing listens on %s: start a server there, for example with weft ping -s -a %s -p %d", addr, p.address, p.port)
	}
	if err := tlsTrouble(addr, err); err != nil {
		return err
	}
	var op *net.OpError
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		return fmt.Errorf("%s cannot be reached: is the host up, and does a firewall let the port through? %w", addr, err)
	case errors.Is(err, &mpa.Error{Code: mpa.CodeStartup}), errors.Is(err, &mpa.Error{Code: mpa.CodeClosed}):
		return fmt.Errorf("%s accepts connections but does not answer as iWARP: %w; expected weft ping -s or rping -s; give its port with -p", addr, err)
	}
	return fmt.Errorf("cannot connect to %s: %w", addr, err)
}

// serve runs the server.
func (p *ping) serve(ctx context.Context) error {
	addr := net.JoinHostPort(p.address, strconv.Itoa(p.port))
	secure, err := p.tls.server()
	if err != nil {
		return err
	}
	ln, err := cm.Listen(ctx, p.rnic, "tcp", addr, cm.ListenConfig{
		MPA: p.mpa(), Admit: p.admit, TLS: secure, Wrap: p.wrapper, Logger: p.notices(p.cmd, p.log, slog.LevelInfo),
	})
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use: choose another port with -p, or let the system choose with -p 0", addr)
	}
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	defer ln.Close()
	fmt.Fprintf(p.cmd.ErrOrStderr(), "listening on %s\n", ln.Addr())
	p.observed.running()

	log := &fairness.Log{Logger: p.notices(p.cmd, p.log, slog.LevelInfo)}
	places := fairness.NewPlaces(p.sessions)
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for {
		req, err := ln.Accept(ctx)
		if ctx.Err() != nil {
			return nil // interrupted, as it was meant to be
		}
		if err != nil {
			return fmt.Errorf("cannot accept: %w", err)
		}
		if !p.persistent {
			return p.session(ctx, req, newPingSession(ctx))
		}
		s := newPingSession(ctx)
		place, err := places.Acquire(ctx, req.Origin().Share(), s)
		if err != nil {
			s.end(err)
			_ = req.Reject(nil)
			log.Log(slog.LevelWarn, "refused a connection", req.Origin().Share(), req.RemoteAddr(), err)
			continue
		}
		sessions.Go(func() {
			defer place.Free()
			if err := p.session(s.ctx, req, s); err != nil {
				log.Log(slog.LevelError, "session failed", req.Origin().Share(), req.RemoteAddr(), err)
			}
		})
	}
}

// session serves one client.
func (p *ping) session(ctx context.Context, req *cm.Request, held *pingSession) error {
	defer held.end(nil)
	size := 0
	if p.cmd.Flags().Changed("size") {
		size = p.size
	}
	s, err := rping.NewServer(p.rnic, size)
	if err != nil {
		return errors.Join(err, req.Reject(nil))
	}
	defer s.Close()
	s.Patience = p.timeout.or(pingTime)
	params := p.params()
	params.MPA.MaxIRD = rping.MaxIRD
	conn, err := req.Accept(ctx, s.QP(), params)
	if err != nil {
		return fmt.Errorf("cannot accept: %w", cmp.Or(held.evicted(), err))
	}
	defer p.closeConn(ctx, conn)
	defer context.AfterFunc(held.ctx, func() {
		if held.evicted() != nil {
			s.QP().Abort()
		}
	})()
	p.log.Debug("accepted", "from", conn.RemoteAddr(), "crc", conn.MPA().CRC)
	pings, err := s.Serve(ctx, func(data []byte) {
		held.pinged()
		if p.verbose > 0 {
			p.show("server ping data", data)
		}
	})
	p.log.Debug("session ended", "from", conn.RemoteAddr(), "pings", pings, "err", err)
	if evicted := held.evicted(); evicted != nil {
		err = evicted
	} else if ctx.Err() != nil {
		err = nil // interrupted, as it was meant to be
	}
	if err != nil {
		return fmt.Errorf("after %d pings: %w", pings, err)
	}
	return nil
}

// A pingSession holds the place of a session of a persistent server.
type pingSession struct {
	ctx  context.Context
	end  context.CancelCauseFunc
	last atomic.Int64 // when the last ping arrived, or the session began, Unix time in nanoseconds
	some atomic.Bool  // a ping has
}

func newPingSession(ctx context.Context) *pingSession {
	s := new(pingSession)
	s.ctx, s.end = context.WithCancelCause(ctx)
	s.last.Store(time.Now().UnixNano())
	return s
}

func (s *pingSession) pinged() {
	s.some.Store(true)
	s.last.Store(time.Now().UnixNano())
}

// evicted returns why the session was evicted, nil if it was not.
func (s *pingSession) evicted() error {
	if err := context.Cause(s.ctx); errors.Is(err, fairness.ErrEvicted) {
		return err
	}
	return nil
}

// Standing is that of a [fairness.Holder].
func (s *pingSession) Standing() fairness.Standing {
	return fairness.Standing{Spoken: s.some.Load(), Since: time.Unix(0, s.last.Load())}
}

// Evict ends the session at once.
func (s *pingSession) Evict(why error) (gone bool) {
	s.end(why)
	return false
}

// closeConn closes the connection gracefully, even when ctx is done. If the stream
// failed, it waits until the peer has the Terminate Message. Errors no longer matter.
func (p *ping) closeConn(ctx context.Context, conn *cm.Conn) {
	limit := closeTime
	if ctx.Err() != nil {
		limit = hurriedTime
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := conn.Shutdown(ctx); err != nil {
		p.log.Debug("closing", "err", err)
	}
}

// show prints the data of a ping as rping does.
func (p *ping) show(what string, data []byte) {
	p.print.Lock()
	defer p.print.Unlock()
	fmt.Fprintf(p.cmd.OutOrStdout(), "%s: %s\n", what, rping.Text(data))
}
