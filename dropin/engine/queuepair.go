package main

/*
#include "engine.h"
#include <infiniband/verbs.h>
*/
import "C"

import (
	gocontext "context"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/panics"
	"github.com/weft-rdma/weft/verbs"
)

// A queuePair is a queue pair of the program's.
type queuePair struct {
	qp      *verbs.QP
	context *context
	owner   uint64
	handle  uint32
	number  uint32 // as the program knows it

	sends    sends
	receives receives

	modifying sync.Mutex // the program's changes come one after the other, as in the kernel

	mu          sync.Mutex
	state       uint32 // enum ibv_qp_state
	asked       uint32 // the state that the program has asked for last
	attributes  C.struct_ibv_qp_attr
	peerRetries uint8 // how often the peer sends a message again that finds no receive
	conn        *cm.Conn
	closing     chan struct{} // closed when the graceful close under way is over; nil without
	down        chan struct{} // closed when the stream is over; nil without

	extended chan struct{} // closed when the peer takes immediate data and atomics
	alone    bool          // it has not said so in time

	gone  bool           // it is being destroyed
	tasks sync.WaitGroup // that use the program's queues

	peering peering // without rdma_cm
}

// background runs f, unless the queue pair is being destroyed, which waits for it.
func (q *queuePair) background(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.gone {
		q.tasks.Go(func() {
			defer panics.Recover()
			f()
		})
	}
}

// numbers finds queue pairs by the number that verbs gave them. Numbers are given out
// one after the other, so it takes 8 octets for each queue pair that there ever was.
var numbers struct {
	mu    sync.Mutex
	items atomic.Pointer[[]atomic.Pointer[queuePair]]
}

func byNumber(n uint32) *queuePair {
	items := numbers.items.Load()
	if items == nil || int(n) >= len(*items) {
		return nil
	}
	return (*items)[n].Load()
}

func setNumber(n uint32, q *queuePair) {
	numbers.mu.Lock()
	defer numbers.mu.Unlock()
	items := numbers.items.Load()
	if items == nil || int(n) >= len(*items) {
		more := make([]atomic.Pointer[queuePair], max(64, 2*int(n)))
		if items != nil {
			for i := range *items {
				more[i].Store((*items)[i].Load())
			}
		}
		items = &more
		numbers.items.Store(items)
	}
	(*items)[n].Store(q)
}

// setAside is how many octets of messages without a receive are kept for each queue pair of
// the rc persona, so that acknowledgements behind them are found (see acks).
const setAside = 1 << 20

func createQP(a *C.struct_weft_qp) syscall.Errno {
	c, d := contexts.get(uint32(a.context)), domains.get(uint32(a.pd))
	send, recv := completionQueues.get(uint32(a.send_cq)), completionQueues.get(uint32(a.recv_cq))
	if c == nil || d == nil || send == nil || recv == nil {
		return syscall.EINVAL
	}
	q := &queuePair{
		context: c, owner: uint64(a.owner), state: C.IBV_QPS_INIT, peerRetries: retriesForEver, extended: make(chan struct{}),
	}
	if rcPersona {
		q.state = C.IBV_QPS_RESET
	}
	q.sends.queue, q.receives.queue, q.sends.to, q.receives.to = a.send, a.receive, send, recv
	q.sends.acks.on = rcPersona
	cfg := verbs.QPConfig{
		SendCQ: send.cq, RecvCQ: recv.cq,
		SendDepth: partsOf * max(1, int(a.sends)), RecvDepth: max(1, int(a.receives)),
		SendSGEs: max(1, int(a.send_sges)), RecvSGEs: max(1, int(a.receive_sges)),
		BindWindows: true, Extensions: true, ReadSinkLocalWrite: true, PauseOnEmptyRQ: rcPersona || options.patient,
	}
	if rcPersona {
		cfg.SetAside = setAside
	}
	// A message in front of a Send with immediate data may come, see announces.
	q.receives.single = rcPersona || !options.plain
	if !rcPersona && !options.plain {
		cfg.Announced = q.announced
	}
	if a.srq != 0 {
		s := sharedQueues.get(uint32(a.srq))
		if s == nil {
			return syscall.EINVAL
		}
		cfg.SRQ, q.receives.shared = s.srq, s
	} else {
		cfg.Refill = func(*verbs.QP) { contained(q.refill) }
	}
	var err error
	if q.qp, err = d.pd.CreateQP(cfg); err != nil {
		return errnoOf(err)
	}
	q.number = q.qp.Num()
	if rcPersona {
		q.announced(nil)
		if q.number, err = newNumber(q); err != nil {
			_ = q.qp.Destroy() // nobody knows of it
			return errnoOf(err)
		}
	}
	queuePairsMade.Add(1)
	q.handle = queuePairs.add(q)
	setNumber(q.qp.Num(), q)
	a.handle, a.number = C.uint32_t(q.handle), C.uint32_t(q.number)
	return 0
}

// lingering bounds how long a queue pair that is destroyed while it is connected lets
// what was sent reach the peer.
const lingering = time.Second

func destroyQP(a *C.struct_weft_object) syscall.Errno {
	q := queuePairs.get(uint32(a.handle))
	if q == nil {
		return syscall.EINVAL
	}
	err := unlessFailed(q.end)
	if failed.Load() {
		return destroyFailedQP(a)
	}
	if err != nil {
		return errnoOf(err)
	}
	queuePairs.remove(uint32(a.handle))
	setNumber(q.qp.Num(), nil)
	if rcPersona {
		freeNumber(q.number)
		early.drop(q.number)
	}
	a.events = q.context.forget(q.owner)
	return 0
}

// end destroys what verbs has of a queue pair, and waits for all that uses the program's
// queues.
func (q *queuePair) end() error {
	q.linger()
	q.setGone(true)
	q.unpair()
	if err := q.qp.Destroy(); err != nil {
		q.setGone(false)
		return err
	}
	q.tasks.Wait()
	return nil
}

func (q *queuePair) setGone(gone bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.gone = gone
	q.peering.news++
}

// linger lets a graceful close come to its end, and begins one if there is none.
func (q *queuePair) linger() {
	ctx, cancel := gocontext.WithTimeout(working(), lingering)
	defer cancel()
	q.mu.Lock()
	closing, connected := q.closing, q.conn != nil && q.down != nil
	q.mu.Unlock()
	switch {
	case closing != nil:
		select {
		case <-closing:
		case <-ctx.Done():
		}
	case connected && q.qp.State() == verbs.RTS:
		q.confirm()
		_ = q.qp.Close(ctx) // what follows ends it in any case
	}
}

// connected notes that the queue pair has a stream, and sees to its end.
func (q *queuePair) connected(conn *cm.Conn, over func()) {
	q.mu.Lock()
	q.conn, q.closing, q.down = conn, nil, make(chan struct{})
	q.state = C.IBV_QPS_RTS
	down := q.down
	q.mu.Unlock()
	q.background(func() {
		_, _ = q.qp.WaitState(working(), verbs.Idle, verbs.Error) // or the device has failed
		q.ended()
		close(down)
		over()
	})
}

// ended is for a queue pair whose stream is over: all that is posted is flushed from
// now on.
func (q *queuePair) ended() {
	open := q.sends.acks.on && q.settle()
	if !q.sends.acks.on {
		q.completeRefused()
	}
	q.mu.Lock()
	// A peer of the rc persona that has gone is noticed when something is sent.
	unnoticed := q.peering.addressed && !open && !q.refusedPeer() && q.state != C.IBV_QPS_ERR
	if !unnoticed {
		q.state = C.IBV_QPS_ERR
	}
	q.mu.Unlock()
	if unnoticed {
		q.lost()
		return
	}
	q.flush()
}

// flush completes in error what is in the queues and what is posted from now on.
func (q *queuePair) flush() {
	q.qp.Abort()
	q.receives.flushing.Store(true)
	q.takeReceives()
	q.takeSends()
}

// disconnect closes the stream gracefully, in the background.
func (q *queuePair) disconnect() syscall.Errno {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.conn == nil {
		return syscall.EINVAL
	}
	if q.closing != nil {
		return 0
	}
	closing, conn := make(chan struct{}), q.conn
	q.closing = closing
	spawn(func() {
		defer close(closing)
		q.confirm()
		_ = conn.Close() // the end of the stream tells, however it comes
	})
	return 0
}
