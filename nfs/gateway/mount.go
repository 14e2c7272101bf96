// This file forwards calls of MOUNT, which most servers have on a port of its own.
//
// A call takes these steps:
//
//  1. ServeRPC waits for one of mountCalls turns, which are divided by share.
//  2. known returns the caller for the call's version, if its port was found within the
//     last minute. Otherwise ask finds the port, and learn makes the caller for it.
//  3. If the call fails without an answer, the port is forgotten, and the call is made
//     once more.
//
// Locking: Mount.mu guards closed and versions. It is never held during a call.

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
	// portLifetime is how long a port is used before the port mapper is asked again.
	portLifetime = time.Minute
	// mountTimeout bounds a call. Its client retransmits it or has given up by then.
	mountTimeout = 20 * time.Second
	// askTimeout bounds a call to the port mapper, which may be behind a firewall that
	// drops packets.
	askTimeout = 5 * time.Second
	// mountCalls bounds the calls that are forwarded at a time. Each has a connection of
	// its own if MOUNT is where NFS is.
	mountCalls = 16
	// mountVersions is the number of versions of MOUNT, from 1 on.
	mountVersions = 3
	// mountIdle is how long an idle connection to the server is kept.
	mountIdle = 30 * time.Second
)

// A MountConfig says where the MOUNT program of a server is.
type MountConfig struct {
	Host string // name or address of the server

	// Backend, if it has an Open, is the server's NFS service. MOUNT is tried there
	// first, because some servers have both on one port.
	Backend Backend

	// Port is the TCP port of MOUNT. If it is 0, the server's port mapper is asked, on
	// port Mapper (0 stands for 111). If that does not answer or does not know MOUNT,
	// a [Gateway] forwards the call over its NFS connection.
	Port, Mapper int

	// Reserved connects from ports below 1024 if this process may use them. Linux's
	// mountd requires that unless the export has the option "insecure".
	Reserved bool

	// Wrap, if not nil, is put around each connection.
	Wrap func(net.Conn) net.Conn
}

// A Mount is a handler that forwards calls of the MOUNT program to a server over TCP,
// whatever transport they came over. Clients of NFS version 3 call MOUNT over TCP or UDP,
// even if they mount over RDMA (RFC 8267 §5.1). There is one connection for each version.
type Mount struct {
	cfg   MountConfig
	turns *fairness.Memory // mountCalls units

	closing sync.WaitGroup // of callers that have been replaced

	mu       sync.Mutex
	closed   bool
	versions [mountVersions]mountVersion
}

// A mountVersion is where one version of MOUNT was found.
type mountVersion struct {
	port  int // 0: unknown; ownPort: that of NFS
	since time.Time
	mount oncrpc.Caller // to that port
}

// ownPort stands for the port and the transport of NFS itself.
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

// ServeRPC forwards a call and returns its reply. If the server's port mapper does not
// know MOUNT, the call fails with PROG_UNAVAIL.
func (m *Mount) ServeRPC(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
	if r.Prog != nfs.MountProgram {
		return nil, &oncrpc.AcceptError{Stat: oncrpc.ProgUnavail}
	}
	if r.Vers < 1 || r.Vers > mountVersions {
		return nil, &oncrpc.AcceptError{Stat: oncrpc.ProgMismatch, Low: 1, High: mountVersions}
	}
	r, err := withIdentity(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, mountTimeout)
	defer cancel()
	release, err := m.turn(ctx, r)
	if err != nil {
		return nil, oncrpc.ErrNoReply // its client retransmits it, or is gone
	}
	defer release()
	reply, err := m.call(ctx, r)
	var none *noMountError
	if err != nil && ctx.Err() == nil && !answered(err) && !errors.As(err, &none) {
		reply, err = m.call(ctx, r) // MOUNT may be on another port now
	}
	if err != nil {
		return nil, systemErr(err)
	}
	defer reply.Release()
	out := append(r.Buffer(len(reply.Message)), reply.Message...)
	binary.BigEndian.PutUint32(out, r.XID)
	return out, nil
}

// turn waits for one of mountCalls turns.
func (m *Mount) turn(ctx context.Context, r *oncrpc.Request) (release func(), err error) {
	from := r.Origin
	if from == nil {
		from = origin.Of(r.Remote)
	}
	a := m.turns.Open(from.Share(), mountCalls, caller{})
	if err := a.Acquire(ctx, 1, false); err != nil {
		a.Close()
		return nil, err
	}
	return func() {
		a.Release(1)
		a.Close()
	}, nil
}

// A caller holds a turn. It is never evicted.
type caller struct{}

// Stake implements [fairness.Debtor].
func (caller) Stake() fairness.Stake { return fairness.Stake{} }

// Evict is never called: a caller's stake never waits for its peer.
func (caller) Evict(error) (gone bool) { return false }

// A noMountError says why the port of MOUNT is unknown: the port mapper has not answered,
// or does not know it.
type noMountError struct{ err error }

func (e *noMountError) Error() string { return e.err.Error() }
func (e *noMountError) Unwrap() error { return e.err }

// answered reports whether the error is the server's answer.
func answered(err error) bool {
	var accept *oncrpc.AcceptError
	var reject *oncrpc.RejectError
	return errors.As(err, &accept) || errors.As(err, &reject)
}

// call makes the call, after it has found the port if that is unknown.
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
	if err != nil && !answered(err) {
		m.forget(r.Vers, c)
	}
	return reply, err
}

// known returns the caller for a version whose port was found not long ago, or nil.
func (m *Mount) known(vers uint32) (oncrpc.Caller, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, oncrpc.ErrNoReply
	}
	v := &m.versions[vers-1]
	if v.port == 0 || time.Since(v.since) > portLifetime {
		return nil, nil
	}
	return v.mount, nil
}

// learn notes the port of a version and returns the caller for it.
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
		m.closing.Go(func() { old.Close() }) // calls that it fails are made again
	}
	v.port, v.mount = port, c
	return c, nil
}

// forget makes the next call ask for the port, unless another call has found a new one.
func (m *Mount) forget(vers uint32, c oncrpc.Caller) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := &m.versions[vers-1]; v.mount == c {
		v.since = time.Time{}
	}
}

// client makes a caller for a port of the server.
func (m *Mount) client(port int) (oncrpc.Caller, error) {
	if port == ownPort {
		return &oneShot{m.cfg.Backend}, nil
	}
	return rpctcp.NewClient(rpctcp.ClientConfig{
		Address: net.JoinHostPort(m.cfg.Host, strconv.Itoa(port)), Reserved: m.cfg.Reserved,
		Attempts: 1, Idle: mountIdle, Wrap: m.cfg.Wrap,
	})
}

// ask finds the port of a version.
func (m *Mount) ask(ctx context.Context, vers uint32) (int, error) {
	switch {
	case m.cfg.Port != 0:
		return m.cfg.Port, nil
	case m.cfg.Backend.Open != nil && m.onNFSPort(ctx, vers):
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

// onNFSPort reports whether the server has the version of MOUNT on its NFS port.
func (m *Mount) onNFSPort(ctx context.Context, vers uint32) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	null := oncrpc.Call{Prog: nfs.MountProgram, Vers: vers}
	reply, err := (&oneShot{m.cfg.Backend}).Call(ctx, &oncrpc.ClientCall{Call: null})
	if err != nil {
		return false
	}
	reply.Release()
	return true
}

// A oneShot caller makes a connection for each call; calls are rare.
type oneShot struct{ to Backend }

func (o *oneShot) Call(ctx context.Context, call *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	c, err := o.to.Open(Front{Reverse: oncrpc.Mux(nil)})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Call(ctx, call)
}

func (*oneShot) Close() error { return nil }

// Close ends the connections to the server. Later calls get no reply.
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
