// This file passes on calls of MOUNT, which servers have on a port of its own.

package gateway

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/rpctcp"
)

const (
	// askAgain is how long a port is believed to be the program's.
	askAgain = time.Minute
	// mountTimeout bounds a call: its client repeats it, or has given up.
	mountTimeout = 20 * time.Second
	// askTimeout bounds a question to the port mapper, which may be behind a
	// firewall that says nothing.
	askTimeout = 5 * time.Second
	// mountCalls is how many calls are passed on at a time, each over a connection of
	// its own where NFS is.
	mountCalls = 16
	// mountVersions are the versions of MOUNT that there are, from 1 on.
	mountVersions = 3
	// mountIdle is how long a connection to the server is kept.
	mountIdle = 30 * time.Second
)

// A MountConfig says where a server has the program MOUNT.
type MountConfig struct {
	Host string // name or address of the server

	// Backend, if it has an Open, is where the server has NFS: it is asked first for
	// MOUNT, as there are servers that have both in one place.
	Backend Backend

	// Port is where MOUNT is, over TCP; 0: its port mapper is asked, at Mapper,
	// which is 111 if it is 0. Where that does not answer or knows of no MOUNT, a
	// [Gateway] passes the call on over its connection of NFS.
	Port, Mapper int

	// Reserved makes connections from ports below 1024 where this process may use
	// them, which mountd asks for unless the export says "insecure".
	Reserved bool

	// Wrap, if not nil, is put around each connection.
	Wrap func(net.Conn) net.Conn
}

// A Mount is a handler that passes calls of the program MOUNT on to a server over
// TCP, whatever they have come by: clients of NFS version 3 speak it by TCP and
// UDP, also where they mount over RDMA (RFC 8267 §5.1). All go over one
// connection for each version.
type Mount struct {
	cfg   MountConfig
	turns *fairness.Memory // mountCalls of them

	closing sync.WaitGroup // of clients that are not used any more

	mu       sync.Mutex
	closed   bool
	versions [mountVersions]mountVersion
}

// A mountVersion is where one version of MOUNT was found.
type mountVersion struct {
	port  int // 0: not known; ownPort: NFS's
	since time.Time
	mount oncrpc.Caller // to that port
}

// ownPort stands for the port and the transport of NFS.
const ownPort = -1

// NewMount returns a Mount. It does not connect yet.
func NewMount(cfg MountConfig) (*Mount, error) {
	if cfg.Host == "" {
		return nil, errors.New("gateway: MOUNT needs the Host of a server")
	}
	if cfg.Mapper == 0 {
		cfg.Mapper = oncrpc.PmapPort
	}
	return &Mount{cfg: cfg, turns: fairness.NewMemory(mountCalls)}, nil
}

// ServeRPC passes a call on and returns its reply. Where the server's port mapper
// knows of no MOUNT, that is PROG_UNAVAIL.
func (m *Mount) ServeRPC(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
	if r.Prog != nfs.MountProgram {
		return nil, &oncrpc.AcceptError{Stat: oncrpc.ProgUnavail}
	}
	if r.Vers < 1 || r.Vers > mountVersions {
		return nil, &oncrpc.AcceptError{Stat: oncrpc.ProgMismatch, Low: 1, High: mountVersions}
	}
	r, err := identified(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, mountTimeout)
	defer cancel()
	leave, err := m.turn(ctx, r)
	if err != nil {
		return nil, oncrpc.ErrNoReply // its client repeats it, or has gone
	}
	defer leave()
	reply, err := m.call(ctx, r)
	var none *noMountError
	if err != nil && ctx.Err() == nil && !told(err) && !errors.As(err, &none) {
		reply, err = m.call(ctx, r) // it may have moved to another port
	}
	if err != nil {
		return nil, systemErr(err)
	}
	defer reply.Release()
	out := append(r.Buffer(len(reply.Message)), reply.Message...)
	binary.BigEndian.PutUint32(out, r.XID)
	return out, nil
}

// turn waits until r is among the mountCalls, which are divided fairly.
func (m *Mount) turn(ctx context.Context, r *oncrpc.Request) (leave func(), err error) {
	from := r.Origin
	if from == nil {
		from = origin.Of(r.Remote)
	}
	a := m.turns.Open(from.Share(), mountCalls, caller{})
	if err := a.Take(ctx, 1, false); err != nil {
		a.Close()
		return nil, err
	}
	return func() {
		a.Give(1)
		a.Close()
	}, nil
}

// A caller has a turn, which nobody takes from it.
type caller struct{}

// Stake is that of a [fairness.Debtor].
func (caller) Stake() fairness.Stake { return fairness.Stake{} }

// Evict does nothing: it is never called, as it is never for the peer to go on.
func (caller) Evict(error) (gone bool) { return false }

// A noMountError says that the port mapper of a server has not said where MOUNT is,
// and why.
type noMountError struct{ err error }

func (e *noMountError) Error() string { return e.err.Error() }
func (e *noMountError) Unwrap() error { return e.err }

// told reports whether the server has answered.
func told(err error) bool {
	var accept *oncrpc.AcceptError
	var reject *oncrpc.RejectError
	return errors.As(err, &accept) || errors.As(err, &reject)
}

// call makes the call where its version is known to be, or asks.
func (m *Mount) call(ctx context.Context, r *oncrpc.Request) (*oncrpc.ClientReply, error) {
	c, err := m.known(r.Vers)
	if err != nil {
		return nil, err
	}
	if c == nil {
		port, err := m.ask(ctx, r.Vers)
		if err != nil {
			return nil, err
		}
		if c, err = m.learn(r.Vers, port); err != nil {
			return nil, err
		}
	}
	reply, err := c.Call(ctx, &oncrpc.ClientCall{Call: r.Call, Args: [][]byte{r.Args}})
	if err != nil && !told(err) {
		m.forget(r.Vers, c)
	}
	return reply, err
}

// known returns the client for a version that was found not long ago, or nil.
func (m *Mount) known(vers uint32) (oncrpc.Caller, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, oncrpc.ErrNoReply
	}
	v := &m.versions[vers-1]
	if v.port == 0 || time.Since(v.since) > askAgain {
		return nil, nil
	}
	return v.mount, nil
}

// learn notes the port of a version and returns the client for it.
func (m *Mount) learn(vers uint32, port int) (oncrpc.Caller, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, oncrpc.ErrNoReply
	}
	v := &m.versions[vers-1]
	v.since = time.Now()
	if v.port == port && v.mount != nil {
		return v.mount, nil
	}
	c, err := m.client(port)
	if err != nil {
		return nil, err
	}
	if v.mount != nil {
		old := v.mount
		m.closing.Go(func() { old.Close() }) // its calls are made again
	}
	v.port, v.mount = port, c
	return c, nil
}

// forget has the next call ask again, unless another has done so.
func (m *Mount) forget(vers uint32, c oncrpc.Caller) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := &m.versions[vers-1]; v.mount == c {
		v.since = time.Time{}
	}
}

// client makes a client for a port of the server.
func (m *Mount) client(port int) (oncrpc.Caller, error) {
	if port == ownPort {
		return &passing{m.cfg.Backend}, nil
	}
	return rpctcp.NewClient(rpctcp.ClientConfig{
		Address: net.JoinHostPort(m.cfg.Host, strconv.Itoa(port)), Reserved: m.cfg.Reserved,
		Attempts: 1, Idle: mountIdle, Wrap: m.cfg.Wrap,
	})
}

// ask returns the port of a version.
func (m *Mount) ask(ctx context.Context, vers uint32) (int, error) {
	switch {
	case m.cfg.Port != 0:
		return m.cfg.Port, nil
	case m.cfg.Backend.Open != nil && m.beside(ctx, vers):
		return ownPort, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := m.client(m.cfg.Mapper)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	var e oncrpc.Encoder
	(&oncrpc.Mapping{Prog: nfs.MountProgram, Vers: vers, Prot: oncrpc.ProtTCP}).Encode(&e)
	args, err := e.Finish()
	if err != nil {
		return 0, err
	}
	reply, err := c.Call(ctx, &oncrpc.ClientCall{
		Call: oncrpc.Call{Prog: oncrpc.PmapProg, Vers: oncrpc.PmapVers, Proc: oncrpc.PmapGetPort},
		Args: [][]byte{args},
	})
	if err != nil {
		return 0, &noMountError{fmt.Errorf("gateway: asking the port mapper of %s for MOUNT: %v", m.cfg.Host, err)}
	}
	defer reply.Release()
	port, err := oncrpc.ParsePort(reply.Results)
	if err == nil && port == 0 {
		err = &noMountError{&oncrpc.AcceptError{Stat: oncrpc.ProgUnavail}}
	}
	return int(port), err
}

// beside reports whether the server has a version where it has NFS.
func (m *Mount) beside(ctx context.Context, vers uint32) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	null := oncrpc.Call{Prog: nfs.MountProgram, Vers: vers}
	reply, err := (&passing{m.cfg.Backend}).Call(ctx, &oncrpc.ClientCall{Call: null})
	if err != nil {
		return false
	}
	reply.Release()
	return true
}

// A passing caller has a connection for each call: there are few, and long between.
type passing struct{ to Backend }

func (p *passing) Call(ctx context.Context, call *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	c, err := p.to.Open(Front{Reverse: oncrpc.Mux(nil)})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Call(ctx, call)
}

func (*passing) Close() error { return nil }

// Close ends the connections to the server. Calls get no reply from then on.
func (m *Mount) Close() error {
	m.mu.Lock()
	m.closed = true
	versions := m.versions
	m.mu.Unlock()
	for _, v := range versions {
		if v.mount != nil {
			v.mount.Close()
		}
	}
	m.closing.Wait()
	return nil
}
