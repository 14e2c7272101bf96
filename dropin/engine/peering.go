package main

/*
#include "engine.h"
#include <infiniband/verbs.h>
*/
import "C"

import (
	gocontext "context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/panics"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// This file connects queue pairs of the rc persona by what their programs told each
// other: GID, number and first PSN. Of the two ends the one with the lower address and
// number dials; the other listens at the address of its GID. Who dials says both
// numbers and the PSNs that it knows, and is given the queue pair only if all of that,
// and its address, is what the program at the other end was told.

// namePersona has the persona that a program needs named without --debug, too, and once.
var namePersona sync.Once

// address notes whom the queue pair is to be connected to.
func (q *queuePair) address(a *C.struct_weft_modify) syscall.Errno {
	want := (*C.struct_ibv_qp_attr)(a.attributes)
	if !rcPersona {
		const why = "modify QP to RTR: an RNIC connects queue pairs by rdma_cm alone; with `weft run --persona rc` programs exchange their numbers"
		if !options.debug {
			namePersona.Do(func() { fmt.Fprintln(os.Stderr, "weft: "+why) })
		}
		return refuse(syscall.EOPNOTSUPP, why)
	}
	if a.mask&C.IBV_QP_DEST_QPN == 0 {
		return refuse(syscall.EINVAL, "modify QP to RTR: the number of the peer's queue pair is missing (IBV_QP_DEST_QPN)")
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
	if err := descriptorsLeft(); err != nil {
		return refuse(errnoOf(err), "modify QP to RTR: no descriptor is left for the connection")
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
	p.news++
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
	if !dials && p.ready && p.patience == nil {
		p.sent = q.sends.posted()
		p.patience = time.AfterFunc(callFor, func() {
			defer panics.Recover()
			q.background(q.uncalled)
		})
	}
	q.mu.Unlock()
	switch {
	case begins:
		q.background(func() { q.call(ctx) })
	case !dials:
		listenAt(netip.AddrPortFrom(local, uint16(q.number>>8)))
		early.retry(q.number)
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
	if p.patience != nil {
		p.patience.Stop()
		p.patience = nil
	}
	p.addressed, p.begun, p.ready, p.cancel, p.guesses = false, false, false, nil, nil
}

const (
	// hesitation is how long an end waits to learn its own first PSN and how often it
	// sends messages again. A queue pair that only receives stays in RTR.
	hesitation = 20 * time.Millisecond
	// callFor is how long a peer is called that is not there.
	callFor = 20 * time.Second
	// mostOfTLS is how often TLS may keep the peer from being reached. A listener that is
	// overrun closes connections, too, which looks like that.
	mostOfTLS = 5
)

// call dials until the peer answers.
func (q *queuePair) call(ctx gocontext.Context) {
	q.hesitate(ctx)
	end := time.Now().Add(callFor)
	for pause, ofTLS := time.Millisecond, 0; ; pause = min(2*pause, 100*time.Millisecond) {
		conn, err := q.callOnce(ctx)
		if isOfTLS(err) {
			ofTLS++
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			q.connected(conn, func() {})
			return
		case q.qp.State() != verbs.Idle: // a request has failed, or there was a stream for a moment
			explain("queue pair %#x: %v", q.number, err)
			q.ended()
			return
		case time.Now().After(end), ofTLS == mostOfTLS, isOfDescriptors(err):
			explain("queue pair %#x: %v", q.number, err)
			sayIfTLS(err)
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

// uncalled is for the end that listens when the peer should have called. As with hardware a
// request to send fails then; without one the peer may come at any time.
func (q *queuePair) uncalled() {
	q.mu.Lock()
	p := &q.peering
	if p.patience == nil || q.conn != nil {
		q.mu.Unlock()
		return
	}
	waits := p.begun || q.sends.posted() == p.sent
	if waits {
		p.patience.Reset(callFor)
	}
	q.mu.Unlock()
	if !waits {
		explain("queue pair %#x: the peer has not connected within %v", q.number, callFor)
		q.lost()
	}
}

// posted is how many requests to send there ever were.
func (s *sends) posted() uint64 { return atomic.LoadUint64((*uint64)(&s.queue.tail)) }

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
	conn, err := connectOver(ctx, q.qp, nc, cm.Params{PrivateData: g.append(nil), MPA: cfg, Socket: options.socket})
	if err == nil && g.parse(conn.PrivateData()) {
		q.retriesOfPeer(g.retries)
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
}

// early are the requests that came too early: as many as peers of this process may be
// about to have, and each for as long as a peer asks.
var early = newEarlyRequests(1024, callFor)

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
			_ = shareReservation(int(fd))
		})
	}}
	ln, err := lc.Listen(gocontext.Background(), "tcp", at.String())
	if err != nil {
		explain("queue pairs cannot be reached at %v: %v", at, err)
		return
	}
	cfg := config(mostReads, mostReads)
	cfg.DecisionTimeout = 2 * callFor
	l, err := cm.NewListener(rnic, ln, listenConfig(cfg, 0))
	if err != nil {
		_ = ln.Close()
		explain("queue pairs cannot be reached at %v: %v", at, err)
		return
	}
	if calls.listeners == nil {
		calls.listeners = map[netip.AddrPort]*cm.Listener{}
	}
	calls.listeners[at] = l
	spawn(func() {
		for {
			r, err := l.Accept(gocontext.Background())
			if err != nil {
				return
			}
			answer(r)
		}
	})
}

// answer gives a request its queue pair, or has it wait for that to be ready.
func answer(r *cm.Request) {
	var g greeting
	if !g.parse(r.PrivateData()) {
		_ = r.Reject(nil)
		return
	}
	g.answer(r)
}

func (g *greeting) answer(r *cm.Request) {
	q := ofNumber(g.to)
	if q == nil {
		_ = r.Reject(nil)
		return
	}
	verdict, news, ctx := q.judge(g, r)
	switch verdict {
	case isPeer:
		q.background(func() { q.answer(ctx, r, g.retries) })
	case isStranger:
		_ = r.Reject(nil)
	case isEarly:
		early.add(g.to, r.Origin().Share(), func() { g.answer(r) }, func() { _ = r.Reject(nil) })
		if q.news() != news {
			early.retry(g.to) // the program said more before the request was there to be judged
		}
	}
}

// news counts what the program has said of the peer.
func (q *queuePair) news() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.peering.news
}

// judge judges a request, and takes it if it is the peer's, until the context ends. It
// returns by which news.
func (q *queuePair) judge(g *greeting, r *cm.Request) (v verdict, news int, ctx gocontext.Context) {
	from, to := addrPort(r.RemoteAddr()), addrPort(r.LocalAddr())
	q.mu.Lock()
	defer q.mu.Unlock()
	p := &q.peering
	v = p.judge(g, from.Addr(), to.Addr(), r.Origin().Share(), time.Now())
	if uint32(to.Port()) != q.number>>8 || q.gone {
		v = isStranger
	}
	if v == isPeer {
		p.begun = true
		ctx, p.cancel = gocontext.WithCancel(gocontext.Background())
	}
	return v, p.news, ctx
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
		_ = r.Reject(nil) // if it still can be: an error of this side's own leaves it open
		q.unanswered()
		return
	}
	q.connected(conn, func() {})
}

// unanswered is for a request of the peer's that came to nothing. The peer may ask again,
// unless there was a stream for a moment, whose end is that of the connection.
func (q *queuePair) unanswered() {
	if q.qp.State() != verbs.Idle {
		q.ended()
		return
	}
	q.mu.Lock()
	q.peering.begun = false
	q.mu.Unlock()
	early.retry(q.number)
}

// lost is for a queue pair whose peer is gone. As with hardware only requests to send
// notice, and the first of them fails: receives wait on until then.
func (q *queuePair) lost() {
	if q.qp.State() == verbs.Idle {
		q.qp.Abort()
		_, _ = q.qp.WaitState(working(), verbs.Error) // it comes at once
		if q.settle() {                               // some were posted before there was a stream
			q.noticed()
			return
		}
	}
	a := &q.sends.acks
	a.mu.Lock()
	a.settled, a.missed = true, true
	a.mu.Unlock()
	q.takeSends()
}
