package main

/*
#include "engine.h"
#include <infiniband/verbs.h>
*/
import "C"

import (
	gocontext "context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// This file connects queue pairs of the rc persona by what their programs told each
// other: GID, number and first PSN. Of the two ends the one with the lower address and
// number dials; the other listens at the address of its GID. Who dials says both
// numbers and the PSNs that it knows, and is given the queue pair only if all of that,
// and its address, is what the program at the other end was told.

// A peering is how a queue pair finds its peer. Its fields are the queue pair's mu's.
type peering struct {
	local, peer netip.Addr
	dest        uint32
	addressed   bool // local, peer and dest are known
	sendPSN     uint32
	recvPSN     uint32
	ready       bool // RTS was entered: sendPSN is known
	begun       bool // it dials, or a request was accepted
	cancel      gocontext.CancelFunc
}

// A greeting is the private data of a request.
type greeting struct {
	from, to         uint32
	sendPSN, recvPSN uint32
	knowsSend        bool
	retries          uint8 // of a message that finds no receive
}

const greetingLength = 24

var greetingMagic = [4]byte{'w', 'e', 'f', 't'}

func (g *greeting) append(b []byte) []byte {
	b = append(b, greetingMagic[:]...)
	flags := uint32(retriesForEver-g.retries) << 8
	if g.knowsSend {
		flags |= 1
	}
	for _, v := range [...]uint32{flags, g.from, g.to, g.sendPSN, g.recvPSN} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func (g *greeting) parse(b []byte) bool {
	if len(b) != greetingLength || [4]byte(b) != greetingMagic {
		return false
	}
	at := func(i int) uint32 { return binary.BigEndian.Uint32(b[4*i:]) }
	*g = greeting{knowsSend: at(1)&1 != 0, retries: retriesForEver - uint8(at(1)>>8)%8, from: at(2), to: at(3), sendPSN: at(4), recvPSN: at(5)}
	return true
}

// address notes whom the queue pair is to be connected to.
func (q *queuePair) address(a *C.struct_weft_modify) syscall.Errno {
	want := (*C.struct_ibv_qp_attr)(a.attributes)
	if !rcPersona {
		return refuse(syscall.EOPNOTSUPP, "modify QP to RTR: an RNIC connects queue pairs by rdma_cm alone; with `weft run --persona rc` programs exchange their numbers")
	}
	source := *(*[16]byte)(unsafe.Pointer(&a.source))
	dest := *(*[16]byte)(unsafe.Pointer(&want.ah_attr.grh.dgid))
	if want.ah_attr.is_global == 0 {
		dest = source // but for what the LID says, see lid in c/query.c
		binary.BigEndian.PutUint16(dest[14:], uint16(want.ah_attr.dlid))
	}
	if a.mask&C.IBV_QP_AV == 0 || want.ah_attr.is_global == 0 && want.ah_attr.dlid == 0 {
		return refuse(syscall.EINVAL, "modify QP to RTR: the address vector names no peer, neither by a GID (is_global) nor by a LID")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	p := &q.peering
	p.local, p.peer = netip.AddrFrom16(source).Unmap(), netip.AddrFrom16(dest).Unmap()
	p.dest, p.addressed = uint32(want.dest_qp_num), true
	if p.local.Is4() != p.peer.Is4() {
		p.addressed = false
		return refuse(syscall.EINVAL, "modify QP to RTR: a GID of %v cannot reach one of %v", p.local, p.peer)
	}
	return 0
}

// bring begins the connection, once enough is known.
func (q *queuePair) bring() {
	q.mu.Lock()
	p := &q.peering
	p.sendPSN, p.recvPSN = uint32(q.attributes.sq_psn)&0xFFFFFF, uint32(q.attributes.rq_psn)&0xFFFFFF
	p.ready = q.state == C.IBV_QPS_RTS
	if !p.addressed || q.state != C.IBV_QPS_RTR && q.state != C.IBV_QPS_RTS {
		q.mu.Unlock()
		return
	}
	dials := p.dials(q.number)
	begins := dials && !p.begun
	var ctx gocontext.Context
	if begins {
		p.begun = true
		ctx, p.cancel = gocontext.WithCancel(gocontext.Background())
	}
	local := p.local
	q.mu.Unlock()
	switch {
	case begins:
		q.background(func() { q.call(ctx) })
	case !dials:
		listenAt(netip.AddrPortFrom(local, uint16(q.number>>8)))
		retryWaiting(q.number)
	}
}

// dials reports whether this end dials.
func (p *peering) dials(number uint32) bool {
	if c := p.local.Compare(p.peer); c != 0 {
		return c < 0
	}
	return number < p.dest
}

// unpair gives up the peer.
func (q *queuePair) unpair() {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := &q.peering
	if p.cancel != nil {
		p.cancel()
	}
	p.addressed, p.begun, p.ready, p.cancel = false, false, false, nil
}

const (
	// hesitation is how long an end waits to learn its own first PSN and how often it
	// sends messages again. A queue pair that only receives stays in RTR.
	hesitation = 20 * time.Millisecond
	// callFor is how long a peer is called that is not there.
	callFor = 20 * time.Second
)

// call dials until the peer answers.
func (q *queuePair) call(ctx gocontext.Context) {
	q.hesitate(ctx)
	end := time.Now().Add(callFor)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		conn, err := q.callOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			q.connected(conn, func() {})
			return
		case time.Now().After(end):
			explain("queue pair %#x: %v", q.number, err)
			q.lost()
			return
		}
		sleep(ctx, pause)
	}
}

// hesitate waits for RTS, for a moment.
func (q *queuePair) hesitate(ctx gocontext.Context) {
	for end := time.Now().Add(hesitation); time.Now().Before(end) && ctx.Err() == nil; {
		q.mu.Lock()
		ready := q.peering.ready
		q.mu.Unlock()
		if ready {
			return
		}
		sleep(ctx, time.Millisecond)
	}
}

func sleep(ctx gocontext.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (q *queuePair) callOnce(ctx gocontext.Context) (*cm.Conn, error) {
	q.mu.Lock()
	p := &q.peering
	g := q.greeting()
	d := newDialer()
	d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(p.local, 0))
	to := netip.AddrPortFrom(p.peer, uint16(p.dest>>8))
	cfg := q.reads()
	q.mu.Unlock()
	nc, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	conn, err := cm.Connect(ctx, q.qp, wrap(nc), cm.Params{PrivateData: g.append(nil), MPA: cfg, Socket: options.socket})
	if err == nil && g.parse(conn.PrivateData()) {
		q.retriesOfPeer(g.retries)
	}
	if errors.As(err, new(*cm.RejectedError)) {
		_ = nc.Close() // it is this side's then
	}
	return conn, err
}

// greeting is what this end has to say; needs mu.
func (q *queuePair) greeting() greeting {
	p := &q.peering
	g := greeting{from: q.number, to: p.dest, sendPSN: p.sendPSN, recvPSN: p.recvPSN, knowsSend: p.ready, retries: retriesForEver}
	if p.ready {
		g.retries = min(uint8(q.attributes.rnr_retry), retriesForEver)
	}
	return g
}

// reads is the start-up with as many Reads as there may be: the engine makes some of its
// own, see acks.
func (q *queuePair) reads() mpa.Config {
	return config(C.__u8(q.attributes.max_dest_rd_atomic), mostReads)
}

// Listeners for requests, by address, and requests that nobody is ready for.
var calls struct {
	mu        sync.Mutex
	listeners map[netip.AddrPort]*cm.Listener
	waiting   map[uint32][]*cm.Request // by the number asked for
}

// mostWaiting are the requests that may wait for one queue pair.
const mostWaiting = 16

// listenAt listens at an address, once.
func listenAt(at netip.AddrPort) {
	calls.mu.Lock()
	defer calls.mu.Unlock()
	if calls.listeners[at] != nil {
		return
	}
	lc := net.ListenConfig{Control: func(_, _ string, rc syscall.RawConn) error {
		return rc.Control(func(fd uintptr) {
			keepFromChildren(int(fd))
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1) // beside the reservation
		})
	}}
	ln, err := lc.Listen(gocontext.Background(), "tcp", at.String())
	if err != nil {
		explain("queue pairs cannot be reached at %v: %v", at, err)
		return
	}
	l, err := cm.NewListener(rnic, ln, cm.ListenConfig{MPA: config(mostReads, mostReads), Wrap: wrap, Socket: options.socket})
	if err != nil {
		_ = ln.Close()
		explain("queue pairs cannot be reached at %v: %v", at, err)
		return
	}
	if calls.listeners == nil {
		calls.listeners, calls.waiting = map[netip.AddrPort]*cm.Listener{}, map[uint32][]*cm.Request{}
	}
	calls.listeners[at] = l
	go func() {
		for {
			r, err := l.Accept(gocontext.Background())
			if err != nil {
				return
			}
			answer(r)
		}
	}()
}

// answer gives a request its queue pair, or has it wait for that to be ready.
func answer(r *cm.Request) {
	var g greeting
	if !g.parse(r.PrivateData()) {
		_ = r.Reject(nil)
		return
	}
	q := ofNumber(g.to)
	if ctx, ok := q.expects(&g, r); ok {
		q.background(func() { q.answer(ctx, r, g.retries) })
		return
	}
	calls.mu.Lock()
	defer calls.mu.Unlock()
	if q == nil || len(calls.waiting[g.to]) == mostWaiting {
		_ = r.Reject(nil)
		return
	}
	calls.waiting[g.to] = append(calls.waiting[g.to], r)
}

// retryWaiting looks at the requests for a number again.
func retryWaiting(number uint32) {
	calls.mu.Lock()
	waiting := calls.waiting[number]
	delete(calls.waiting, number)
	calls.mu.Unlock()
	for _, r := range waiting {
		answer(r)
	}
}

// expects reports whether a request is the peer's, and takes it then, until the context
// ends. What is not known yet is not taken for granted: at least one PSN has to match.
func (q *queuePair) expects(g *greeting, r *cm.Request) (ctx gocontext.Context, ok bool) {
	if q == nil {
		return nil, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	p := &q.peering
	switch {
	case !p.addressed || p.begun, g.from != p.dest, addrPort(r.RemoteAddr()).Addr() != p.peer:
		return nil, false
	case p.ready && g.recvPSN != p.sendPSN, g.knowsSend && g.sendPSN != p.recvPSN:
		return nil, false
	case !p.ready && !g.knowsSend:
		return nil, false
	}
	p.begun = true
	ctx, p.cancel = gocontext.WithCancel(gocontext.Background())
	return ctx, true
}

// answer accepts a request of a peer that sends messages again so often.
func (q *queuePair) answer(ctx gocontext.Context, r *cm.Request, retries uint8) {
	q.hesitate(ctx)
	q.retriesOfPeer(retries)
	q.mu.Lock()
	cfg, g := q.reads(), q.greeting()
	q.mu.Unlock()
	conn, err := r.Accept(ctx, q.qp, cm.Params{PrivateData: g.append(nil), MPA: cfg})
	if err != nil {
		explain("queue pair %#x: %v", q.number, err)
		q.mu.Lock()
		q.peering.begun = false // it may be asked again
		q.mu.Unlock()
		return
	}
	q.connected(conn, func() {})
}

// lost is for a queue pair whose peer is gone. As with hardware only requests to send
// notice, and the first of them fails: receives wait on until then.
func (q *queuePair) lost() {
	if q.qp.State() == verbs.Idle {
		q.qp.Abort()
	}
	a := &q.sends.acks
	a.mu.Lock()
	a.settled, a.missed = true, true
	a.mu.Unlock()
	q.takeSends()
}
