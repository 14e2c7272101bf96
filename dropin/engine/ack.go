package main

/*
#include "engine.h"
#include <infiniband/verbs.h>
*/
import "C"

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// This file is what a completion says in the rc persona. With iWARP a Send or Write
// completes when the transport has it; programs for RC take it that the peer has the
// data then, and that the request fails if the peer refuses it. So the engine puts an
// RDMA Read of no octets behind them, one for as many as are posted together, and
// completes them when its answer has come: the peer answers in order.
//
//  1. translate notes each signaled request, in order, and posts it unsignaled.
//  2. The answer of a Read, also of the program's own, completes what is in front of it.
//  3. When the stream breaks, completions are held back until its end says why.
//     Then the first that is open gets the reason and the others are flushed.
//
// Locking: the mutex is taken within a Sink, and held while completions are put into the
// program's queue. No verb is called under it.

// acks are the requests of a send queue that wait for the peer.
type acks struct {
	on   bool
	wait bool // a Read has to follow what was translated; the translator's

	// blocked: a request was refused that has to complete before those behind it are
	// posted. With acks on, settle sees to the order.
	blocked atomic.Bool

	mu      sync.Mutex
	open    []openRequest // in the order of posting
	broken  bool          // a request has failed
	settled bool          // it is known why
	missed  bool          // the peer has gone: the next request fails, and the queue pair with it
	through uint64        // requests before this one have completed
	held    []openRequest // that have failed, until it is
}

// An openRequest is one that the program gets a completion for.
type openRequest struct {
	slot   uint64
	done   bool
	status int
	vendor uint32
}

// ackRead marks the ID of a Read of the engine's.
const ackRead = 1 << 62

// note notes a signaled request. asks is for one whose own completion is enough.
func (a *acks) note(slot uint64, asks bool) {
	a.mu.Lock()
	a.open = append(a.open, openRequest{slot: slot})
	a.mu.Unlock()
	a.wait = !asks
}

// read is the Read behind what was translated last.
func (a *acks) read(slot uint64) verbs.SendWR {
	a.wait = false
	return verbs.SendWR{ID: slot | ackRead, Op: verbs.OpRead, Flags: verbs.Signaled, SGL: nowhere}
}

// refused notes a request that verbs did not take. It completes at the end of the stream.
func (a *acks) refused(slot uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unnote(slot)
	a.broken = true
	a.held = append(a.held, openRequest{slot: slot, status: C.IBV_WC_LOC_QP_OP_ERR, vendor: uint32(verbs.InvalidWQE)})
	a.blocked.Store(!a.on)
}

// postponed notes that requests from one on are to be posted later.
func (a *acks) postponed(slot uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unnote(slot)
}

// unnote forgets the requests from one on, which are translated again; needs mu.
func (a *acks) unnote(slot uint64) {
	i, _ := slices.BinarySearchFunc(a.open, slot, func(o openRequest, slot uint64) int { return int(int64(o.slot - slot)) })
	a.open = a.open[:i]
}

// completeRefused completes in error what verbs did not take.
func (q *queuePair) completeRefused() {
	a := &q.sends.acks
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.held {
		q.sends.to.emit(q, o) // if the queue has overflowed, nobody can poll it
	}
	a.held = nil
	a.blocked.Store(false)
}

// completed is the Sink's part for a request of the send queue.
func (q *queuePair) completed(to *completionQueue, wc *verbs.WC) bool {
	a := &q.sends.acks
	slot := wc.ID &^ (partial | ackRead)
	a.mu.Lock()
	defer a.mu.Unlock()
	if wc.Status != verbs.Success {
		return q.failed(to, slot, wc)
	}
	local := wc.Op == verbs.OpBind || wc.Op == verbs.OpInvalidate
	if !local {
		a.through = slot + 1
	}
	for i := range a.open {
		if o := &a.open[i]; o.slot == slot || o.slot < slot && !local {
			o.done = true
		}
	}
	for len(a.open) > 0 && a.open[0].done {
		if !to.emit(q, a.open[0]) {
			return false
		}
		a.open = a.open[1:]
	}
	return true
}

// failed notes a request that has failed; needs mu.
func (q *queuePair) failed(to *completionQueue, slot uint64, wc *verbs.WC) bool {
	a := &q.sends.acks
	o := openRequest{slot: slot, status: statusOf(wc), vendor: uint32(wc.Status)}
	if a.settled {
		if slices.ContainsFunc(a.held, func(h openRequest) bool { return h.slot == slot }) {
			return true // another part of it
		}
		a.held = append(a.held[:0], o)
		if a.missed {
			a.missed = false
			o.status = C.IBV_WC_RETRY_EXC_ERR
			q.background(q.noticed)
		}
		return to.emit(q, o)
	}
	a.broken = true
	a.held = append(a.held, o)
	return true
}

// settle completes what is open after the end of the stream. It reports whether there was
// anything.
func (q *queuePair) settle() bool {
	a := &q.sends.acks
	why := q.reason()
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.open
	for i := range all {
		all[i].status, all[i].vendor = C.IBV_WC_WR_FLUSH_ERR, uint32(verbs.Flushed)
	}
	own := false // a request failed here
	for _, h := range a.held {
		i, known := slices.BinarySearchFunc(all, h, func(o, h openRequest) int { return int(int64(o.slot - h.slot)) })
		if !known {
			all = slices.Insert(all, i, h)
		}
		if h.status != C.IBV_WC_WR_FLUSH_ERR && h.vendor != uint32(verbs.RemoteTermination) {
			all[i].status, own = h.status, true
		}
	}
	a.settled, a.open, a.held = true, nil, nil
	// A request that the peer refuses gets a completion that nobody asked for, too.
	if last := atomic.LoadUint64((*uint64)(&q.sends.queue.head)); len(all) == 0 && last > a.through && refusedByPeer(why) {
		all = []openRequest{{slot: last - 1}}
	}
	if len(all) == 0 {
		return false
	}
	if !own {
		all[0].status = why
	}
	for _, o := range all {
		if !q.sends.to.emit(q, o) {
			break // the queue has overflowed, which ends all that use it
		}
	}
	a.held = all[len(all)-1:]
	return true
}

// noticed is for a queue pair a request of which has found the peer gone.
func (q *queuePair) noticed() {
	q.mu.Lock()
	q.state = C.IBV_QPS_ERR
	q.mu.Unlock()
	q.flush()
}

// again is for a queue pair that is reset.
func (a *acks) again() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open, a.held, a.broken, a.settled, a.missed, a.wait = nil, nil, false, false, false, false
	a.blocked.Store(false)
	// through stays: slots are counted on
}

// refusedByPeer reports whether a reason is what the peer thought of a request.
func refusedByPeer(reason int) bool {
	switch reason {
	case C.IBV_WC_WR_FLUSH_ERR, C.IBV_WC_RETRY_EXC_ERR:
		return false
	}
	return true
}

// refusedPeer reports whether this end ended the stream, as it refused a request of the
// peer's. A message that found no receive is none: on a device only its sender learns.
func (q *queuePair) refusedPeer() bool {
	err := q.qp.Err()
	var t *rdmap.TerminateError
	return errors.As(err, &t) && !t.Remote && !lacksReceive(err)
}

// lacksReceive reports whether this end ended a stream as a message had found no receive.
func lacksReceive(err error) bool {
	var t *rdmap.TerminateError
	return errors.As(err, &t) && !t.Remote && t.Layer == layerDDP && t.EType == untaggedBuffer && t.Code == noBuffer
}

// reason is the status of the request that ended the stream, by what the peer said.
func (q *queuePair) reason() int {
	err := q.qp.Err()
	var t *rdmap.TerminateError
	if !errors.As(err, &t) {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.state == C.IBV_QPS_ERR {
			return C.IBV_WC_WR_FLUSH_ERR // the program's own doing
		}
		return C.IBV_WC_RETRY_EXC_ERR
	}
	switch {
	case !t.Remote:
		return C.IBV_WC_WR_FLUSH_ERR
	case t.Layer == rdmap.LayerRDMA && t.EType == rdmap.RemoteProtection, t.Layer == layerDDP && t.EType == taggedBuffer:
		return C.IBV_WC_REM_ACCESS_ERR
	case t.Layer == layerDDP && t.Code == noBuffer:
		return C.IBV_WC_RNR_RETRY_EXC_ERR
	case t.Layer == layerDDP:
		return C.IBV_WC_REM_INV_REQ_ERR
	}
	return C.IBV_WC_REM_OP_ERR
}

// Codes of Terminate messages (RFC 5041 §8.2).
const (
	layerDDP       = 1
	taggedBuffer   = 1
	untaggedBuffer = 2
	noBuffer       = 2
)
