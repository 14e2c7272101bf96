package main

/*
#include "engine.h"
#include <infiniband/verbs.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/weft-rdma/weft/internal/panics"
	"github.com/weft-rdma/weft/verbs"
)

// The engine has one RNIC, which all contexts of the program share.
var (
	rnic *verbs.RNIC
	// persona says what the device looks like: as any RC device, or as an RNIC.
	rcPersona bool
	guid      uint64 // of the device, as the C part has it
)

// For the summary.
var queuePairsMade, refused atomic.Int64

var (
	contexts         table[context]
	domains          table[domain]
	regions          table[region]
	windows          table[window]
	completionQueues table[completionQueue]
	sharedQueues     table[sharedQueue]
	queuePairs       table[queuePair]
)

// leastProcs is how many threads may be in Go at once. Each thread of the program that has
// called the engine keeps a place for a while after it has returned to C, and must not keep
// the engine's own from running.
const leastProcs = 16

// start opens the RNIC.
func start(rc bool, deviceGUID uint64) syscall.Errno {
	mend()
	panics.Handle(defect)
	var err error
	if err = startPoller(); err != nil {
		return errnoOf(err)
	}
	rcPersona, guid = rc, deviceGUID
	runtime.GOMAXPROCS(max(leastProcs, runtime.GOMAXPROCS(0)))
	cfg := verbs.Config{Limits: verbs.Limits{WRs: 1 << 18, CQEntries: 1 << 21}}
	if cfg.Logger, err = readOptions(); err != nil {
		fmt.Fprintf(os.Stderr, "weft: %v\n", err)
		return syscall.EINVAL
	}
	if rnic, err = verbs.Open(cfg); err != nil {
		return errnoOf(err)
	}
	_ = rnic.SetAsyncHandler(func(e verbs.Event) { contained(func() { raise(e) }) }) // fails only for an RNIC that is closed
	return 0
}

// explain says why something is refused, if the user asked for that.
func explain(format string, args ...any) {
	if options.debug {
		fmt.Fprintf(os.Stderr, "weft: "+format+"\n", args...)
	}
}

// refuse is explain with the errno that is returned.
func refuse(errno syscall.Errno, format string, args ...any) syscall.Errno {
	refused.Add(1)
	explain(format, args...)
	return errno
}

// errnoOf is what a verb's error is in C.
func errnoOf(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	explain("%v", err)
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	for _, e := range [...]struct {
		is    error
		errno syscall.Errno
	}{
		{verbs.ErrResources, syscall.ENOMEM}, {verbs.ErrFull, syscall.ENOMEM}, {verbs.ErrRNIC, syscall.EIO},
		{verbs.ErrCQInUse, syscall.EBUSY}, {verbs.ErrSRQInUse, syscall.EBUSY}, {verbs.ErrPDInUse, syscall.EBUSY},
		{verbs.ErrMRWindows, syscall.EBUSY}, {verbs.ErrQPWindows, syscall.EBUSY},
	} {
		if errors.Is(err, e.is) {
			return e.errno
		}
	}
	return syscall.EINVAL
}

// A domain is a protection domain.
type domain struct {
	pd *verbs.PD
}

// A context is what a program has opened: where its asynchronous events go.
type context struct {
	handle  uint32
	eventFD int

	mu     sync.Mutex
	closed bool // the descriptor may be another's
	events []event
}

// execute executes a verb.
func execute(verb uint32, a unsafe.Pointer) syscall.Errno {
	switch verb {
	case C.WEFT_OPEN:
		return openContext((*C.struct_weft_open)(a))
	case C.WEFT_CLOSE:
		return closeContext((*C.struct_weft_object)(a))
	case C.WEFT_ALLOC_PD:
		return allocDomain((*C.struct_weft_object)(a))
	case C.WEFT_FREE_PD:
		return freeDomain((*C.struct_weft_object)(a))
	case C.WEFT_REGISTER:
		return register((*C.struct_weft_register)(a))
	case C.WEFT_REGISTER_NULL:
		return registerNull((*C.struct_weft_register)(a))
	case C.WEFT_FIND_REGION:
		return findRegion((*C.struct_weft_register)(a))
	case C.WEFT_FIND_PD:
		return findDomain((*C.struct_weft_object)(a))
	case C.WEFT_ADVISE:
		return advise((*C.struct_weft_advise)(a))
	case C.WEFT_REREGISTER:
		return reregister((*C.struct_weft_register)(a))
	case C.WEFT_DEREGISTER:
		return deregister((*C.struct_weft_object)(a))
	case C.WEFT_ALLOC_WINDOW:
		return allocWindow((*C.struct_weft_window)(a))
	case C.WEFT_FREE_WINDOW:
		return freeWindow((*C.struct_weft_object)(a))
	case C.WEFT_CREATE_CQ:
		return createCQ((*C.struct_weft_cq)(a))
	case C.WEFT_RESIZE_CQ:
		return resizeCQ((*C.struct_weft_cq)(a))
	case C.WEFT_DESTROY_CQ:
		return destroyCQ((*C.struct_weft_object)(a))
	case C.WEFT_CREATE_SRQ:
		return createSRQ((*C.struct_weft_srq)(a))
	case C.WEFT_MODIFY_SRQ:
		return modifySRQ((*C.struct_weft_srq)(a))
	case C.WEFT_QUERY_SRQ:
		return querySRQ((*C.struct_weft_srq)(a))
	case C.WEFT_DESTROY_SRQ:
		return destroySRQ((*C.struct_weft_object)(a))
	case C.WEFT_CREATE_QP:
		return createQP((*C.struct_weft_qp)(a))
	case C.WEFT_MODIFY_QP:
		return modifyQP((*C.struct_weft_modify)(a))
	case C.WEFT_QUERY_QP:
		return queryQP((*C.struct_weft_modify)(a))
	case C.WEFT_DESTROY_QP:
		return destroyQP((*C.struct_weft_object)(a))
	case C.WEFT_AWAIT_EXTENSIONS:
		return awaitExtensions((*C.struct_weft_object)(a))
	case C.WEFT_NEXT_EVENT:
		return nextEvent((*C.struct_weft_event)(a))
	}
	return syscall.ENOSYS
}

func openContext(a *C.struct_weft_open) syscall.Errno {
	c := &context{eventFD: int(a.event_fd)}
	c.handle = contexts.add(c)
	a.handle = C.uint32_t(c.handle)
	return 0
}

// closeContext ends a context. Its objects may live on: their events go nowhere.
func closeContext(a *C.struct_weft_object) syscall.Errno {
	c := contexts.remove(uint32(a.handle))
	if c == nil {
		return syscall.EINVAL
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed, c.events = true, nil
	return 0
}

func allocDomain(a *C.struct_weft_object) syscall.Errno {
	pd, err := rnic.AllocPD()
	if err != nil {
		return errnoOf(err)
	}
	a.handle = C.uint32_t(domains.add(&domain{pd}))
	return 0
}

func freeDomain(a *C.struct_weft_object) syscall.Errno {
	d := domains.get(uint32(a.handle))
	if d == nil {
		return syscall.EINVAL
	}
	if err := d.pd.Dealloc(); err != nil {
		return errnoOf(err)
	}
	domains.remove(uint32(a.handle))
	return 0
}
