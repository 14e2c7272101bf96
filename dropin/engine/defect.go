package main

/*
#include "engine.h"
#include "inherited.h"
#include <infiniband/verbs.h>
#include <rdma/rdma_user_cm.h>
*/
import "C"

import (
	gocontext "context"
	"fmt"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/weft-rdma/weft/internal/panics"
	"github.com/weft-rdma/weft/verbs"
)

// This file is what a panic does, wherever in the engine or below it: the device fails, and
// the program lives on.
//
//  1. The goroutine of the panic ends, in contain or in panics.Recover. It calls defect.
//  2. All sockets are reset, by the system alone: peers notice, and nothing arrives any more.
//  3. What is outstanding in the queues completes as flushed. Of verbs nothing is asked for
//     that: what it completes from now on is dropped (completionQueue.add), and each queue
//     of the program's knows which of its requests have completed. What a completion queue
//     has no room for is put when the program polls it.
//  4. Each context gets a DEVICE_FATAL, each rdma_cm_id a DEVICE_REMOVAL.
//  5. Verbs fail with EIO from then on (executeFailed). Those that destroy do not ask verbs
//     either. They wait until the streams have ended, or have had settling to do so: then
//     nobody uses the program's memory, but for goroutines that wait for the one that is gone.
//
// Locking: the goroutine may have held any lock of the packages below, and holds it for ever,
// unless its unlock was deferred. So nothing here waits for one of those. The locks of the
// engine are no such locks: nothing that may panic runs under them, or the unlock is deferred.
// Verbs are called under receives.mu, sharedQueue.mu and calls.mu: nothing here takes these.

// failed is set when the device has failed.
var failed atomic.Bool

// settling bounds how long streams have to end when the device has failed.
const settling = time.Second

// A device is what the engine's life depends on.
type device struct {
	working gocontext.Context // ends when the device fails
	fail    gocontext.CancelFunc
	settled chan struct{} // closed when no stream uses the program's memory any more
}

var theDevice atomic.Pointer[device]

func init() { mend() }

// mend makes a device that works.
func mend() {
	d := &device{settled: make(chan struct{})}
	d.working, d.fail = gocontext.WithCancel(gocontext.Background())
	theDevice.Store(d)
	failed.Store(false)
	atomic.StoreUint32((*uint32)(&C.weft_failed), 0)
}

// working is a context that ends when the device fails.
func working() gocontext.Context { return theDevice.Load().working }

// defect is for a panic with value v, in the goroutine of it.
func defect(v any) {
	first := failed.CompareAndSwap(false, true)
	if first || options.debug {
		report(v)
	}
	if !first {
		return
	}
	atomic.StoreUint32((*uint32)(&C.weft_failed), 1)
	d := theDevice.Load()
	d.fail()
	C.weft_sever_all()
	for _, q := range completionQueues.all() {
		q.wakeWaiting()
		q.flush()
	}
	for _, c := range contexts.all() {
		c.add(event{C.IBV_EVENT_DEVICE_FATAL, 0})
	}
	removeIdentifiers()
	spawn(d.settle)
}

// report says what was wrong, and where.
func report(v any) {
	advice := "WEFT_DEBUG=1 shows the stack"
	if options.debug {
		advice = "the stack follows"
	}
	fmt.Fprintf(os.Stderr, "weft: a defect of the engine: %v, in %s; the device has failed (%s)\n", v, where(), advice)
	if options.debug {
		_, _ = os.Stderr.Write(debug.Stack())
	}
}

// where is the function that has panicked, for a call that it has deferred.
func where() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs[:])])
	panicked := false
	for {
		f, more := frames.Next()
		ofRuntime := strings.HasPrefix(f.Function, "runtime.")
		if panicked && !ofRuntime {
			return fmt.Sprintf("%s (%s:%d)", path.Base(f.Function), path.Base(f.File), f.Line)
		}
		panicked = panicked || f.Function == "runtime.gopanic"
		if !more {
			return "an unknown function"
		}
	}
}

// settle waits until the streams have ended, which have lost their sockets. A stream that
// a goroutine is missing from does not end.
func (d *device) settle() {
	defer close(d.settled)
	ctx, cancel := gocontext.WithTimeout(gocontext.Background(), settling)
	defer cancel()
	var all sync.WaitGroup
	for _, q := range queuePairs.all() {
		all.Go(func() {
			defer panics.Recover()
			q.awaitEnd(ctx)
		})
	}
	ended := make(chan struct{})
	spawn(func() {
		all.Wait()
		close(ended)
	})
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// awaitEnd ends a queue pair's stream, and waits for all that uses the program's queues.
func (q *queuePair) awaitEnd(ctx gocontext.Context) {
	q.setGone(true) // nothing begins any more
	q.unpair()
	q.qp.Abort()
	if _, err := q.qp.WaitState(ctx, verbs.Idle, verbs.Error); err == nil {
		q.tasks.Wait()
	}
}

// flush completes as flushed what the queues of its queue pairs hold, as far as there is room.
func (q *completionQueue) flush() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queue == nil {
		return // it has been destroyed
	}
	for _, p := range queuePairs.all() {
		if p.sends.to == q {
			q.flushQueue(p, p.sends.queue, &p.sends.completed, 0)
		}
		if p.receives.to == q {
			q.flushQueue(p, p.receives.queue, &p.receives.completed, C.WEFT_RECEIVE)
		}
	}
}

// flushQueue is flush for a send or receive queue; needs mu.
func (q *completionQueue) flushQueue(p *queuePair, w *C.struct_weft_queue, completed *uint64, op C.uint8_t) {
	for tail := atomic.LoadUint64((*uint64)(&w.tail)); *completed < tail; *completed++ {
		c := C.struct_weft_completion{
			id: C.uint64_t(*completed), owner: C.uint64_t(p.owner), op: op, status: C.IBV_WC_WR_FLUSH_ERR, vendor_error: C.uint32_t(verbs.Flushed),
		}
		if !q.append(c, false) {
			return
		}
	}
}

// wakeWaiting rings for events that a thread was to find which receives. It may be gone.
func (q *completionQueue) wakeWaiting() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for ; q.untold > 0; q.untold-- {
		tell(q.bell)
	}
}

// deviceRemoval is an event of rdma_cm.
const deviceRemoval = 11

// removeIdentifiers queues a device removal event for each rdma_cm_id that the program knows.
// One without a uid is not known yet, and gets none, as with the kernel.
func removeIdentifiers() {
	cmMu.Lock()
	defer cmMu.Unlock()
	for _, id := range identifiers.all() {
		if id.uid != 0 {
			id.event(deviceRemoval, syscall.EIO)
		}
	}
}

// executeFailed is execute for a device that has failed.
func executeFailed(verb uint32, a unsafe.Pointer) syscall.Errno {
	switch verb {
	case C.WEFT_NEXT_EVENT:
		return nextEvent((*C.struct_weft_event)(a))
	case C.WEFT_CLOSE:
		return closeContext((*C.struct_weft_object)(a))
	case C.WEFT_FREE_PD:
		return dropped(domains.remove(handleOf(a)))
	case C.WEFT_FREE_WINDOW:
		return dropped(windows.remove(handleOf(a)))
	case C.WEFT_DEREGISTER:
		<-theDevice.Load().settled // the memory is the program's again
		return dropped(regions.remove(handleOf(a)))
	case C.WEFT_DESTROY_QP:
		return destroyFailedQP((*C.struct_weft_object)(a))
	case C.WEFT_DESTROY_SRQ:
		return destroyFailedSRQ((*C.struct_weft_object)(a))
	case C.WEFT_DESTROY_CQ:
		return destroyFailedCQ((*C.struct_weft_object)(a))
	}
	return syscall.EIO
}

func handleOf(a unsafe.Pointer) uint32 { return uint32((*C.struct_weft_object)(a).handle) }

func dropped[T any](object *T) syscall.Errno {
	if object == nil {
		return syscall.EINVAL
	}
	return 0
}

func destroyFailedQP(a *C.struct_weft_object) syscall.Errno {
	<-theDevice.Load().settled
	q := queuePairs.get(uint32(a.handle))
	if q == nil {
		return syscall.EINVAL
	}
	q.sends.to.leave(q)
	q.receives.to.leave(q)
	a.events = q.context.forget(q.owner)
	return 0
}

// leave takes a queue pair out when flush does not use it.
func (q *completionQueue) leave(p *queuePair) {
	q.mu.Lock()
	defer q.mu.Unlock()
	queuePairs.remove(p.handle)
}

func destroyFailedSRQ(a *C.struct_weft_object) syscall.Errno {
	s := sharedQueues.get(uint32(a.handle))
	if s == nil {
		return syscall.EINVAL
	}
	for _, q := range queuePairs.all() {
		if q.receives.shared == s {
			return syscall.EBUSY
		}
	}
	sharedQueues.remove(uint32(a.handle))
	a.events = s.context.forget(s.owner)
	return 0
}

func destroyFailedCQ(a *C.struct_weft_object) syscall.Errno {
	c := completionQueues.get(uint32(a.handle))
	if c == nil {
		return syscall.EINVAL
	}
	for _, q := range queuePairs.all() {
		if q.sends.to == c || q.receives.to == c {
			return syscall.EBUSY
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = nil
	completionQueues.remove(uint32(a.handle))
	a.events = c.context.forget(c.owner)
	return 0
}

// cmFailed is cmCommand for a device that has failed.
func (ch *channel) cmFailed(number uint32, body []byte) syscall.Errno {
	switch number {
	case C.RDMA_USER_CM_CMD_GET_EVENT:
		return run(body, ch.next)
	case C.RDMA_USER_CM_CMD_DESTROY_ID:
		return run(body, destroyIdentifier)
	case C.RDMA_USER_CM_CMD_MIGRATE_ID:
		return run(body, ch.migrate)
	case C.RDMA_USER_CM_CMD_NOTIFY:
		return 0
	case writeCMEvent: // a thread of the program's may be told by one to end
		return run(body, writeEvent)
	}
	return syscall.EIO
}

// unlessFailed runs f, which may wait for a stream, in a goroutine, and does not wait for it
// any more when the device fails.
func unlessFailed(f func() error) error {
	done := make(chan error, 1)
	spawn(func() {
		err := error(syscall.EIO) // of a panic
		defer func() { done <- err }()
		err = f()
	})
	select {
	case err := <-done:
		return err
	case <-working().Done():
		return syscall.EIO
	}
}
