package main

/*
#include "engine.h"
#include <infiniband/verbs.h>
*/
import "C"

import (
	"errors"
	"slices"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/weft-rdma/weft/verbs"
)

// This file is the states of a queue pair as the program has them. What is connected
// by rdma_cm gets its stream there, and the ways to RTR and RTS only note that.

func modifyQP(a *C.struct_weft_modify) syscall.Errno {
	q := queuePairs.get(uint32(a.handle))
	if q == nil {
		return syscall.EINVAL
	}
	q.modifying.Lock()
	defer q.modifying.Unlock()
	want, mask := (*C.struct_ibv_qp_attr)(a.attributes), uint32(a.mask)
	if errno := q.check(want, mask); errno != 0 {
		return errno
	}
	if mask&C.IBV_QP_STATE != 0 {
		if errno := q.enter(uint32(want.qp_state), a); errno != 0 {
			return errno
		}
	}
	q.mu.Lock()
	q.note(want, mask)
	if mask&C.IBV_QP_STATE != 0 {
		q.asked = uint32(want.qp_state)
	}
	a.state = C.uint32_t(q.state)
	q.mu.Unlock()
	if mask&C.IBV_QP_ACCESS_FLAGS != 0 {
		inbound := remoteAccess(uint32(want.qp_access_flags))
		q.modify(verbs.QPModify{Inbound: &inbound})
	}
	if mask&C.IBV_QP_MIN_RNR_TIMER != 0 {
		q.limitPause()
	}
	if rcPersona {
		q.bring()
	}
	return 0
}

// note keeps the attributes that mask names, to be queried; needs mu.
func (q *queuePair) note(want *C.struct_ibv_qp_attr, mask uint32) {
	have := &q.attributes
	for _, f := range [...]struct {
		bit  uint32
		copy func()
	}{
		{C.IBV_QP_ACCESS_FLAGS, func() { have.qp_access_flags = want.qp_access_flags }},
		{C.IBV_QP_PKEY_INDEX, func() { have.pkey_index = want.pkey_index }},
		{C.IBV_QP_PORT, func() { have.port_num = want.port_num }},
		{C.IBV_QP_QKEY, func() { have.qkey = want.qkey }},
		{C.IBV_QP_AV, func() { have.ah_attr = want.ah_attr }},
		{C.IBV_QP_PATH_MTU, func() { have.path_mtu = want.path_mtu }},
		{C.IBV_QP_TIMEOUT, func() { have.timeout = want.timeout }},
		{C.IBV_QP_RETRY_CNT, func() { have.retry_cnt = want.retry_cnt }},
		{C.IBV_QP_RNR_RETRY, func() { have.rnr_retry = want.rnr_retry }},
		{C.IBV_QP_RQ_PSN, func() { have.rq_psn = want.rq_psn }},
		{C.IBV_QP_SQ_PSN, func() { have.sq_psn = want.sq_psn }},
		{C.IBV_QP_MAX_QP_RD_ATOMIC, func() { have.max_rd_atomic = want.max_rd_atomic }},
		{C.IBV_QP_MAX_DEST_RD_ATOMIC, func() { have.max_dest_rd_atomic = want.max_dest_rd_atomic }},
		{C.IBV_QP_MIN_RNR_TIMER, func() { have.min_rnr_timer = want.min_rnr_timer }},
		{C.IBV_QP_DEST_QPN, func() { have.dest_qp_num = want.dest_qp_num }},
	} {
		if mask&f.bit != 0 {
			f.copy()
		}
	}
}

// modify changes attributes in the state that the queue pair is in. A stream that is
// ending needs them no more.
func (q *queuePair) modify(m verbs.QPModify) {
	for {
		state := q.qp.State()
		if state != verbs.Idle && state != verbs.RTS {
			return
		}
		if _, err := q.qp.Modify(state, m); !errors.Is(err, verbs.ErrState) {
			return
		}
	}
}

// following are the states that a program may ask for, by that which it has asked for last.
// Besides these any state leads to RESET and ERR.
var following = map[uint32][]uint32{
	C.IBV_QPS_RESET: {C.IBV_QPS_INIT},
	C.IBV_QPS_INIT:  {C.IBV_QPS_INIT, C.IBV_QPS_RTR},
	C.IBV_QPS_RTR:   {C.IBV_QPS_RTS},
	C.IBV_QPS_RTS:   {C.IBV_QPS_RTS, C.IBV_QPS_SQD},
	C.IBV_QPS_SQD:   {C.IBV_QPS_RTS, C.IBV_QPS_SQD},
}

// A transition is what a program gives with a state of an RC queue pair (InfiniBand
// §11.2.5.2): attributes that it has to give, and those that it may.
type transition struct{ required, optional uint32 }

// transitions are by the state that the program has asked for last and the one it asks
// for. Where none is, there are no attributes.
var transitions = map[[2]uint32]transition{
	{C.IBV_QPS_RESET, C.IBV_QPS_INIT}: {required: initAttributes},
	{C.IBV_QPS_INIT, C.IBV_QPS_INIT}:  {optional: initAttributes},
	{C.IBV_QPS_INIT, C.IBV_QPS_RTR}: {
		requiredForRTR, C.IBV_QP_ALT_PATH | C.IBV_QP_ACCESS_FLAGS | C.IBV_QP_PKEY_INDEX,
	},
	{C.IBV_QPS_RTR, C.IBV_QPS_RTS}: {requiredForRTS, rtsAttributes},
	{C.IBV_QPS_RTS, C.IBV_QPS_RTS}: {optional: rtsAttributes},
	{C.IBV_QPS_RTS, C.IBV_QPS_SQD}: {optional: C.IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{C.IBV_QPS_SQD, C.IBV_QPS_RTS}: {optional: rtsAttributes},
	{C.IBV_QPS_SQD, C.IBV_QPS_SQD}: {optional: sqdAttributes},
}

const (
	requiredForRTR = C.IBV_QP_AV | C.IBV_QP_PATH_MTU | C.IBV_QP_DEST_QPN | C.IBV_QP_RQ_PSN | C.IBV_QP_MAX_DEST_RD_ATOMIC | C.IBV_QP_MIN_RNR_TIMER
	requiredForRTS = C.IBV_QP_SQ_PSN | C.IBV_QP_TIMEOUT | C.IBV_QP_RETRY_CNT | C.IBV_QP_RNR_RETRY | C.IBV_QP_MAX_QP_RD_ATOMIC

	initAttributes = C.IBV_QP_PKEY_INDEX | C.IBV_QP_PORT | C.IBV_QP_ACCESS_FLAGS
	rtsAttributes  = C.IBV_QP_CUR_STATE | C.IBV_QP_ALT_PATH | C.IBV_QP_ACCESS_FLAGS | C.IBV_QP_MIN_RNR_TIMER | C.IBV_QP_PATH_MIG_STATE
	sqdAttributes  = C.IBV_QP_PORT | C.IBV_QP_AV | C.IBV_QP_TIMEOUT | C.IBV_QP_RETRY_CNT | C.IBV_QP_RNR_RETRY | C.IBV_QP_MAX_QP_RD_ATOMIC |
		C.IBV_QP_MAX_DEST_RD_ATOMIC | C.IBV_QP_ALT_PATH | C.IBV_QP_ACCESS_FLAGS | C.IBV_QP_PKEY_INDEX | C.IBV_QP_MIN_RNR_TIMER | C.IBV_QP_PATH_MIG_STATE
)

// check checks the order of the states of the rc persona, and what may come with them. With
// rdma_cm the stream comes by itself, and may be gone before the program has asked for RTS.
func (q *queuePair) check(want *C.struct_ibv_qp_attr, mask uint32) syscall.Errno {
	if !rcPersona {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	state := q.asked // without a state to enter it is kept
	if mask&C.IBV_QP_STATE != 0 {
		state = uint32(want.qp_state)
	}
	fails := state == C.IBV_QPS_RESET || state == C.IBV_QPS_ERR
	if mask&C.IBV_QP_STATE != 0 && !fails && !slices.Contains(following[q.asked], state) {
		return refuse(syscall.EINVAL, "modify QP: state %d does not follow state %d", state, q.asked)
	}
	t := transitions[[2]uint32{q.asked, state}]
	if missing := t.required &^ mask; missing != 0 {
		return refuse(syscall.EINVAL, "modify QP from state %d to %d: attributes %#x are missing (enum ibv_qp_attr_mask)", q.asked, state, missing)
	}
	if extra := mask &^ (t.required | t.optional | C.IBV_QP_STATE); extra != 0 {
		return refuse(syscall.EINVAL, "modify QP from state %d to %d: attributes %#x cannot be changed then (enum ibv_qp_attr_mask)", q.asked, state, extra)
	}
	return 0
}

// enter moves the queue pair to a state.
func (q *queuePair) enter(state uint32, a *C.struct_weft_modify) syscall.Errno {
	switch state {
	case C.IBV_QPS_RESET:
		return errnoOf(unlessFailed(q.reset))
	case C.IBV_QPS_ERR:
		q.fail()
		return 0
	case C.IBV_QPS_INIT, C.IBV_QPS_SQD:
		q.mu.Lock()
		defer q.mu.Unlock()
		q.state = state
		return 0
	case C.IBV_QPS_RTR:
		if a.mask&(C.IBV_QP_DEST_QPN|C.IBV_QP_AV) != 0 && !ofManager(a) {
			if errno := q.address(a); errno != 0 {
				return errno
			}
		}
		return q.rise(state)
	case C.IBV_QPS_RTS:
		return q.rise(state)
	}
	return syscall.EINVAL
}

// ofManager reports that the attributes are those of initQPAttr, which name no peer.
func ofManager(a *C.struct_weft_modify) bool {
	want := (*C.struct_ibv_qp_attr)(a.attributes)
	return rcPersona && want.dest_qp_num == 0 && want.ah_attr.is_global == 0 && want.ah_attr.dlid == 0
}

// fail moves the queue pair to the error state. A stream is closed as gracefully as can
// be: what was sent is to reach the peer, and what is open is flushed when that is over.
func (q *queuePair) fail() {
	q.mu.Lock()
	q.state = C.IBV_QPS_ERR
	connected := q.down != nil
	q.mu.Unlock()
	if connected && q.qp.State() == verbs.RTS && q.disconnect() == 0 {
		return
	}
	if !connected && q.sends.acks.on {
		q.settle() // there is no stream whose end would tell
	}
	q.flush()
}

// rise notes RTR or RTS of a queue pair whose stream has come, or will, by itself.
func (q *queuePair) rise(state uint32) syscall.Errno {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state == C.IBV_QPS_ERR {
		if q.conn != nil {
			return 0 // it was connected, and the end came first: completions tell
		}
		return syscall.EINVAL
	}
	q.state = max(q.state, state)
	return 0
}

// reset drops the stream and what is posted.
func (q *queuePair) reset() error {
	q.mu.Lock()
	down := q.down
	q.mu.Unlock()
	q.linger()
	if down != nil {
		if q.qp.State() != verbs.Idle {
			q.qp.Abort()
		}
		select {
		case <-down: // the end of the stream may bring the queue pair to Error, also from Idle
		case <-working().Done():
			return syscall.EIO
		}
	}
	if q.qp.State() != verbs.Idle {
		q.qp.Abort()
		_, _ = q.qp.WaitState(working(), verbs.Error) // it comes at once
		for q.qp.Reset() != nil {                     // until the stream is wholly gone
			if failed.Load() {
				return syscall.EIO
			}
			if q.qp.State() != verbs.Error {
				return syscall.EINVAL
			}
		}
	}
	q.unpair()
	q.sends.acks.again()
	q.sends.to.drop(q.sends.queue, &q.sends.completed)
	q.receives.to.drop(q.receives.queue, &q.receives.completed)
	q.receives.flushing.Store(false)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state, q.conn, q.closing, q.down = C.IBV_QPS_RESET, nil, nil, nil
	q.attributes, q.peerRetries = C.struct_ibv_qp_attr{}, retriesForEver
	return nil
}

// drop empties a queue that completes here.
func (q *completionQueue) drop(w *C.struct_weft_queue, completed *uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if failed.Load() {
		return // flush has completed what is there
	}
	*completed = atomic.LoadUint64((*uint64)(&w.tail))
	atomic.StoreUint64((*uint64)(&w.head), *completed)
	atomic.StoreUint32((*uint32)(&w.bell), 0)
}

func queryQP(a *C.struct_weft_modify) syscall.Errno {
	q := queuePairs.get(uint32(a.handle))
	if q == nil {
		return syscall.EINVAL
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	to := (*C.struct_ibv_qp_attr)(unsafe.Pointer(a.attributes))
	*to = q.attributes
	to.qp_state, to.cur_qp_state = q.state, q.state
	to.path_mig_state = C.IBV_MIG_MIGRATED
	a.state = C.uint32_t(q.state)
	return 0
}
