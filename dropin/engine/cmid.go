package main

/*
#include "engine.h"
#include <rdma/rdma_user_cm.h>
*/
import "C"

import (
	gocontext "context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/mpa"
)

// An identifier is an rdma_cm_id: one end of a connection, or what listens for them.
type identifier struct {
	handle uint32

	// cmMu:
	channel  *channel
	uid      uint64
	reported uint32 // events that the program has taken
	dead     bool
	reuse    bool
	only6    bool
	timeout  uint8 // of its queue pair, as the program has set it
	socket   int   // bound, until it listens or connects; 0 is none
	local    netip.AddrPort
	peer     netip.AddrPort
	listener *cm.Listener
	unseen   chan struct{} // has one for each request that the program has not seen; nil without a listener
	over     chan struct{} // closed when the listener is
	request  *cm.Request   // that waits for a decision
	qp       *queuePair    // that is connected, or will be
	cancel   gocontext.CancelFunc
	told     bool // the program knows that it is connected
}

var identifiers table[identifier]

// The events of rdma_cm (rdma/rdma_cma.h).
const (
	addrResolved    = 0
	addrError       = 1
	routeResolved   = 2
	connectRequest  = 4
	connectResponse = 5
	connectError    = 6
	unreachable     = 7
	rejected        = 8
	established     = 9
	disconnected    = 10
)

// newEvent is an event of this identifier.
func (id *identifier) newEvent(kind uint32, status syscall.Errno) *cmEvent {
	e := &cmEvent{id: id}
	e.resp.id, e.resp.event, e.resp.status = C.__u32(id.handle), C.__u32(kind), C.__u32(-int32(status))
	return e
}

// event raises an event without more; needs cmMu.
func (id *identifier) event(kind uint32, status syscall.Errno) { id.newEvent(kind, status).raise() }

// describe puts the terms of a connection, or of a request for one, into an event.
func (e *cmEvent) describe(privateData []byte, responder, initiator int) {
	p := (*C.struct_rdma_ucm_conn_param)(unsafe.Pointer(&e.resp.param))
	n := min(len(privateData), len(p.private_data)-1) // the length has 8 bits
	for i := range n {
		p.private_data[i] = C.__u8(privateData[i])
	}
	p.private_data_len = C.__u8(n)
	p.responder_resources, p.initiator_depth = depth(responder), depth(initiator)
}

// depth is a number of Reads as rdma_cm has it. What a peer did not say is the most.
func depth(n int) C.__u8 {
	if n == int(mpa.NotNegotiated) {
		return mostReads
	}
	return C.__u8(min(n, 255))
}

// mostReads are the Reads at a time that the device takes, as ibv_query_device says.
const mostReads = 128

// destroy ends an identifier and what hangs on it. It returns how many of its events
// the program has taken.
func (id *identifier) destroy() uint32 {
	identifiers.remove(id.handle)
	cmMu.Lock()
	id.dead = true
	var unseen []*identifier
	if id.channel != nil {
		unseen = id.channel.purge(id)
	}
	listener, request, socket, cancel := id.listener, id.request, id.socket, id.cancel
	if listener != nil {
		close(id.over)
	}
	id.listener, id.request, id.socket, id.cancel = nil, nil, 0, nil
	reported := id.reported
	cmMu.Unlock()
	if cancel != nil {
		cancel()
	}
	if socket > 0 {
		_ = unix.Close(socket)
	}
	if listener != nil {
		_ = listener.Close()
	}
	if request != nil {
		spawn(func() { _ = request.Reject(nil) }) // the program does not wait for that
	}
	for _, u := range unseen {
		u.destroy()
	}
	return reported
}

// config is the start-up with so many Reads in each direction.
func config(responder, initiator C.__u8) mpa.Config {
	if rcPersona { // the engine makes Reads of its own, see acks
		responder, initiator = mostReads, mostReads
	}
	return mpa.Config{
		NoCRC: options.noCRC, PeerToPeer: true,
		IRD: uint16(responder), MaxIRD: max(uint16(responder), 1), ORD: uint16(initiator),
		DecisionTimeout: decisionTimeout,
	}
}

// decisionTimeout is how long a request waits for rdma_accept.
const decisionTimeout = 5 * time.Minute

// data is what a program gives to its peer.
func data(p *C.struct_rdma_ucm_conn_param) []byte {
	return C.GoBytes(unsafe.Pointer(&p.private_data), C.int(p.private_data_len))
}

// pairOf is the queue pair that a command names.
func pairOf(p *C.struct_rdma_ucm_conn_param) *queuePair {
	if rcPersona {
		return ofNumber(uint32(p.qp_num))
	}
	return byNumber(uint32(p.qp_num))
}

// mostBacklog is what programs may ask for that the system would not give either.
const mostBacklog = 4096

func listen(a *C.struct_rdma_ucm_listen) syscall.Errno {
	id, errno := find(a.id)
	if errno != 0 {
		return errno
	}
	backlog := int(a.backlog)
	if backlog <= 0 {
		backlog = 128
	}
	backlog = min(backlog, mostBacklog)
	ln, errno := id.listenTCP(backlog)
	if errno != 0 {
		return errno
	}
	keepFrom(ln)
	cfg := config(mostReads, mostReads)
	l, err := cm.NewListener(rnic, ln, listenConfig(cfg, backlog))
	if err != nil {
		_ = ln.Close()
		return errnoOf(err)
	}
	cmMu.Lock()
	if id.dead || id.listener != nil {
		cmMu.Unlock()
		_ = l.Close()
		return syscall.EINVAL
	}
	id.listener, id.unseen, id.over = l, make(chan struct{}, backlog), make(chan struct{})
	cmMu.Unlock()
	spawn(func() { id.serve(l) })
	return 0
}

// listenTCP has the identifier's socket listen.
func (id *identifier) listenTCP(backlog int) (net.Listener, syscall.Errno) {
	cmMu.Lock()
	bound, listens := id.socket != 0, id.listener != nil
	cmMu.Unlock()
	if listens {
		return nil, syscall.EINVAL
	}
	if !bound {
		if errno := id.bind(netip.AddrPortFrom(netip.IPv4Unspecified(), 0)); errno != 0 {
			return nil, errno
		}
	}
	socket := id.takeSocket()
	if err := unix.Listen(socket, backlog); err != nil {
		id.giveSocket(socket)
		return nil, errnoOf(err)
	}
	file := os.NewFile(uintptr(socket), "rdma_cm")
	defer file.Close() // the listener has a descriptor of its own
	ln, err := net.FileListener(file)
	return ln, errnoOf(err)
}

// takeSocket takes the bound socket from the identifier: whoever has it closes it.
func (id *identifier) takeSocket() (socket int) {
	cmMu.Lock()
	defer cmMu.Unlock()
	socket, id.socket = id.socket, 0
	return socket
}

// giveSocket gives it back.
func (id *identifier) giveSocket(socket int) {
	cmMu.Lock()
	defer cmMu.Unlock()
	if id.dead || id.socket != 0 {
		_ = unix.Close(socket)
		return
	}
	id.socket = socket
}

// serve tells the program of requests until the listener is closed. Beyond the backlog
// they stay in the listener, which divides its places fairly.
func (id *identifier) serve(l *cm.Listener) {
	for {
		select {
		case id.unseen <- struct{}{}:
		case <-id.over:
			return
		}
		r, err := l.Accept(gocontext.Background())
		if err != nil {
			return
		}
		id.requested(r)
	}
}

// requested makes an identifier for a request.
func (id *identifier) requested(r *cm.Request) {
	made := &identifier{request: r, local: addrPort(r.LocalAddr()), peer: addrPort(r.RemoteAddr())}
	made.handle = identifiers.add(made)
	cmMu.Lock()
	made.channel, made.uid = id.channel, 0
	if id.dead {
		cmMu.Unlock()
		made.destroy()
		return
	}
	e := id.newEvent(connectRequest, 0)
	e.resp.id, e.made = C.__u32(made.handle), made
	e.describe(r.PrivateData(), r.ORD(), r.IRD())
	e.raise()
	cmMu.Unlock()
}

func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// accept accepts a request, or ends the start-up of the side that has connected, whose
// stream exists already.
func accept(a *C.struct_rdma_ucm_accept) syscall.Errno {
	id, errno := find(a.id)
	if errno != 0 {
		return errno
	}
	cmMu.Lock()
	if a.uid != 0 {
		id.uid = uint64(a.uid)
	}
	r, q, connected := id.request, pairOf(&a.conn_param), id.qp != nil
	if r != nil && q != nil {
		id.request = nil
	}
	cmMu.Unlock()
	switch {
	case r == nil && connected:
		return 0
	case r == nil || q == nil:
		return syscall.EINVAL
	}
	ctx := id.begin(q)
	q.retriesOfPeer(uint8(a.conn_param.rnr_retry_count) & retriesForEver)
	p := cm.Params{PrivateData: data(&a.conn_param), MPA: config(a.conn_param.responder_resources, a.conn_param.initiator_depth)}
	spawn(func() {
		conn, err := r.Accept(ctx, q.qp, p)
		if err != nil {
			_ = r.Reject(nil) // an error of this side's own leaves it open
		}
		id.accepted(conn, err)
	})
	return 0
}

// begin notes which queue pair is being connected.
func (id *identifier) begin(q *queuePair) gocontext.Context {
	ctx, cancel := gocontext.WithCancel(gocontext.Background())
	q.unannounced()
	cmMu.Lock()
	defer cmMu.Unlock()
	id.qp, id.cancel = q, cancel
	return ctx
}

// accepted tells the program of a connection that it has accepted.
func (id *identifier) accepted(conn *cm.Conn, err error) {
	cmMu.Lock()
	defer cmMu.Unlock()
	if err != nil {
		explain("%v", err)
		id.event(connectError, errnoOf(err))
		return
	}
	e := id.newEvent(established, 0)
	e.describe(nil, conn.IRD(), conn.ORD())
	e.raise()
	id.told = true
	id.qp.connected(conn, id.ended)
}

// ended tells the program of the end of its connection.
func (id *identifier) ended() {
	cmMu.Lock()
	defer cmMu.Unlock()
	if id.told {
		id.told = false
		id.event(disconnected, 0)
	}
}

func reject(a *C.struct_rdma_ucm_reject) syscall.Errno {
	id, errno := find(a.id)
	if errno != 0 {
		return errno
	}
	cmMu.Lock()
	r := id.request
	id.request = nil
	cmMu.Unlock()
	if r == nil {
		return syscall.EINVAL
	}
	said := C.GoBytes(unsafe.Pointer(&a.private_data), C.int(a.private_data_len))
	return errnoOf(elsewhere(func() error { return r.Reject(said) }))
}

func disconnect(a *C.struct_rdma_ucm_disconnect) syscall.Errno {
	id, errno := find(a.id)
	if errno != 0 {
		return errno
	}
	cmMu.Lock()
	q := id.qp
	cmMu.Unlock()
	if q == nil {
		return syscall.EINVAL
	}
	return q.disconnect()
}

func connect(a *C.struct_rdma_ucm_connect) syscall.Errno {
	id, errno := find(a.id)
	if errno != 0 {
		return errno
	}
	cmMu.Lock()
	peer := id.peer
	cmMu.Unlock()
	q := pairOf(&a.conn_param)
	if q == nil || !peer.IsValid() {
		return syscall.EINVAL
	}
	ctx := id.begin(q)
	q.retriesOfPeer(uint8(a.conn_param.rnr_retry_count) & retriesForEver)
	p := cm.Params{
		PrivateData: data(&a.conn_param), MPA: config(a.conn_param.responder_resources, a.conn_param.initiator_depth),
		Nudge: cm.DefaultNudge, Socket: options.socket,
	}
	spawn(func() {
		nc, err := id.dial(ctx, peer)
		var conn *cm.Conn
		if err == nil {
			conn, err = connectOver(ctx, q.qp, nc, p)
		}
		id.answered(conn, err)
	})
	return 0
}

// dial makes the connection below, from the address that the program has bound. A peer
// that refuses is asked again for a moment: programs tell their port to each other
// before they listen (qperf does).
func (id *identifier) dial(ctx gocontext.Context, peer netip.AddrPort) (net.Conn, error) {
	socket := id.takeSocket()
	for tries := 0; ; tries++ {
		nc, err := dialOnce(ctx, socket, peer)
		if !errors.Is(err, syscall.ECONNREFUSED) || socket != 0 || tries == refusals || ctx.Err() != nil {
			return nc, err
		}
		time.Sleep(refusalPause)
	}
}

// refusals are how often a peer that refuses is asked again, and refusalPause is how
// long after.
const (
	refusals     = 20
	refusalPause = 20 * time.Millisecond
)

func dialOnce(ctx gocontext.Context, socket int, peer netip.AddrPort) (net.Conn, error) {
	if socket == 0 {
		return newDialer().DialContext(ctx, "tcp", peer.String())
	}
	_, sa := sockaddr(peer)
	err := unix.Connect(socket, sa)
	if err == unix.EINPROGRESS {
		err = await(ctx, socket)
	}
	file := os.NewFile(uintptr(socket), "rdma_cm")
	defer file.Close() // the connection has a descriptor of its own
	if err != nil {
		return nil, err
	}
	return net.FileConn(file)
}

// connectTimeout is how long a peer may leave a connection without an answer.
const connectTimeout = 30 * time.Second

// await waits until a socket is connected.
func await(ctx gocontext.Context, socket int) error {
	for end := time.Now().Add(connectTimeout); time.Now().Before(end) && ctx.Err() == nil; {
		ready := []unix.PollFd{{Fd: int32(socket), Events: unix.POLLOUT}}
		if n, err := unix.Poll(ready, 100); n == 0 || err == unix.EINTR {
			continue
		}
		errno, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && errno != 0 {
			err = syscall.Errno(errno)
		}
		return err
	}
	return syscall.ETIMEDOUT
}

// answered tells the program how its attempt to connect has ended.
func (id *identifier) answered(conn *cm.Conn, err error) {
	cmMu.Lock()
	defer cmMu.Unlock()
	var refused *cm.RejectedError
	switch {
	case err == nil:
		id.local, id.peer = addrPort(conn.LocalAddr()), addrPort(conn.RemoteAddr())
		e := id.newEvent(connectResponse, 0)
		e.describe(conn.PrivateData(), conn.IRD(), conn.ORD())
		e.raise()
		id.told = true
		id.qp.connected(conn, id.ended)
	case errors.As(err, &refused):
		e := id.newEvent(rejected, syscall.ECONNREFUSED)
		e.describe(refused.PrivateData, 0, 0)
		e.raise()
	default:
		explain("%v", err)
		sayIfTLS(err)
		id.failed(err)
	}
}

// failed tells the program that its connection did not come about; needs cmMu.
func (id *identifier) failed(err error) {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), isOfTLS(err):
		id.event(rejected, syscall.ECONNREFUSED)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, syscall.EHOSTUNREACH):
		id.event(unreachable, syscall.ETIMEDOUT)
	case isOfDescriptors(err):
		id.event(connectError, syscall.EMFILE)
	default:
		id.event(connectError, syscall.ECONNABORTED)
	}
}
