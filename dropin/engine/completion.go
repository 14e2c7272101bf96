package main

/*
#include "engine.h"
#include <infiniband/verbs.h>
*/
import "C"

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/verbs"
)

// A completionQueue puts completions where the program finds them.
type completionQueue struct {
	cq      *verbs.CQ
	context *context
	owner   uint64
	bell    int // where one octet is written for each event; -1 without a channel

	mu      sync.Mutex // against a resize; a Sink has it while it puts
	queue   *C.struct_weft_completions
	led     atomic.Bool   // a thread has waited in ibv_get_cq_event
	armings atomic.Uint32 // that progress has seen until then
	leads   int           // threads that receive for the channel, and look for events themselves
	untold  int           // events that were raised meanwhile
}

func createCQ(a *C.struct_weft_cq) syscall.Errno {
	q := &completionQueue{context: contexts.get(uint32(a.context)), owner: uint64(a.owner), bell: int(a.queue.event_fd), queue: a.queue}
	if q.context == nil {
		return syscall.EINVAL
	}
	var err error
	if q.cq, err = rnic.CreateCQ(verbs.CQConfig{Entries: int(a.queue.mask) + 1, Sink: q.sink, Spin: spin}); err != nil {
		return errnoOf(err)
	}
	a.handle = C.uint32_t(completionQueues.add(q))
	return 0
}

// spin lets threads that poll receive.
const spin = 20 * time.Microsecond

// resizeCQ moves what is in the queue into the entries of another, and gives it these.
func resizeCQ(a *C.struct_weft_cq) syscall.Errno {
	q := completionQueues.get(uint32(a.handle))
	if q == nil {
		return syscall.EINVAL
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	from, to := q.queue, a.queue
	n := from.tail - from.head // the program's thread is the one in this call
	if n > C.uint64_t(to.mask)+1 {
		return refuse(syscall.EINVAL, "resize CQ: %d completions are there, %d were asked for", n, to.mask+1)
	}
	for i := range n {
		*entry(to, uint64(from.head+i)) = *entry(from, uint64(from.head+i))
	}
	from.entries, to.entries = to.entries, from.entries
	from.mask, to.mask = to.mask, from.mask
	return 0
}

func destroyCQ(a *C.struct_weft_object) syscall.Errno {
	q := completionQueues.get(uint32(a.handle))
	if q == nil {
		return syscall.EINVAL
	}
	if err := q.cq.Destroy(); err != nil {
		return errnoOf(err)
	}
	completionQueues.remove(uint32(a.handle))
	a.events = q.context.forget(q.owner)
	return 0
}

// entry is completion n of a queue.
func entry(q *C.struct_weft_completions, n uint64) *C.struct_weft_completion {
	return (*C.struct_weft_completion)(unsafe.Add(unsafe.Pointer(q.entries), uintptr(n&uint64(q.mask))*C.sizeof_struct_weft_completion))
}

// sink is the Sink. What it cannot put overflows the queue.
func (q *completionQueue) sink(wc *verbs.WC) (put bool) {
	defer contain(nil)
	return q.put(wc)
}

// put puts a completion, or what comes of it.
func (q *completionQueue) put(wc *verbs.WC) bool {
	pair := byNumber(wc.QPNum)
	if pair == nil || failed.Load() {
		return true // it is being destroyed, or flush completes what is there
	}
	received := wc.Op == verbs.OpRecv || wc.Op == verbs.OpRecvImmediate
	if !received && pair.sends.acks.on {
		return pair.completed(q, wc)
	}
	if pair.takes(wc) {
		return true // a part of a request, of which another part completes
	}
	c := C.struct_weft_completion{
		id: C.uint64_t(wc.ID &^ partial), owner: C.uint64_t(pair.owner), status: C.uint8_t(statusOf(wc)), vendor_error: C.uint32_t(wc.Status),
	}
	completed := &pair.sends.completed
	if received {
		completed = &pair.receives.completed
		if pair.receives.shared != nil {
			completed = nil
		}
		pair.describe(&c, wc)
	} else if wc.Status == verbs.Success {
		c.length = C.uint32_t(pair.sentLength(wc.ID))
	}
	return q.add(c, wc.Solicited, completed)
}

// emit puts the completion of a request that the peer has acknowledged, or that has failed.
func (q *completionQueue) emit(pair *queuePair, o openRequest) bool {
	if failed.Load() {
		return true
	}
	c := C.struct_weft_completion{id: C.uint64_t(o.slot), owner: C.uint64_t(pair.owner), status: C.uint8_t(o.status), vendor_error: C.uint32_t(o.vendor)}
	if o.status == C.IBV_WC_SUCCESS {
		c.length = C.uint32_t(pair.sentLength(o.slot))
	}
	return q.add(c, false, &pair.sends.completed)
}

// add puts a completion, if there is room, and notes through which request of its queue
// there are completions; of a shared queue that is not known.
func (q *completionQueue) add(c C.struct_weft_completion, solicited bool, completed *uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if failed.Load() {
		return true // flush has completed it
	}
	ok := q.append(c, solicited)
	if ok && completed != nil {
		*completed = max(*completed, uint64(c.id)+1)
	}
	return ok
}

// append puts a completion, if there is room; needs mu.
func (q *completionQueue) append(c C.struct_weft_completion, solicited bool) bool {
	tail := uint64(q.queue.tail)
	if tail-atomic.LoadUint64((*uint64)(&q.queue.head)) > uint64(q.queue.mask) {
		return false
	}
	if q.queue.timed != 0 {
		c.time = C.uint64_t(now())
	}
	*entry(q.queue, tail) = c
	atomic.StoreUint64((*uint64)(&q.queue.tail), tail+1)
	q.notify(solicited || c.status != C.IBV_WC_SUCCESS)
	return true
}

// now is the time of the clock that completions are stamped by, in nanoseconds.
func now() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // exists
	return t.Nano()
}

// notify raises an event if the program has asked for one of this kind; needs mu.
func (q *completionQueue) notify(solicited bool) {
	armed := atomic.LoadUint32((*uint32)(&q.queue.armed))
	if armed == C.WEFT_DISARMED || armed == C.WEFT_ARMED_SOLICITED && !solicited {
		return
	}
	if !atomic.CompareAndSwapUint32((*uint32)(&q.queue.armed), armed, C.WEFT_DISARMED) {
		q.notify(solicited) // it asks for more by now
		return
	}
	if q.bell < 0 {
		return
	}
	atomic.AddUint32((*uint32)(&q.queue.raised), 1)
	if q.leads > 0 && !failed.Load() {
		q.untold++
		return
	}
	tell(q.bell)
}

// statusOf is what a status is to the program.
func statusOf(wc *verbs.WC) int {
	receive := wc.Op == verbs.OpRecv || wc.Op == verbs.OpRecvImmediate
	switch wc.Status {
	case verbs.Success:
		return C.IBV_WC_SUCCESS
	case verbs.Flushed:
		return C.IBV_WC_WR_FLUSH_ERR
	case verbs.RemoteTermination:
		return C.IBV_WC_REM_ACCESS_ERR
	case verbs.InvalidLength:
		return C.IBV_WC_LOC_LEN_ERR
	case verbs.BaseBounds:
		if receive {
			return C.IBV_WC_LOC_LEN_ERR
		}
		return C.IBV_WC_LOC_PROT_ERR
	case verbs.InvalidSTag, verbs.AccessViolation, verbs.InvalidPD, verbs.WrapError:
		if wc.Op == verbs.OpBind {
			return C.IBV_WC_MW_BIND_ERR
		}
		return C.IBV_WC_LOC_PROT_ERR
	case verbs.InvalidateRefused:
		return C.IBV_WC_REM_INV_REQ_ERR
	case verbs.InvalidWindow, verbs.InvalidRegion:
		return C.IBV_WC_MW_BIND_ERR
	case verbs.LocalCatastrophic:
		return C.IBV_WC_FATAL_ERR
	}
	return C.IBV_WC_LOC_QP_OP_ERR
}
