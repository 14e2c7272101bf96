package main

/*
#include "engine.h"
*/
import "C"

import (
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weft-rdma/weft/verbs"
)

// This file is whether a queue pair of an RNIC may use immediate data and atomics, for
// which a peer that does not know RFC 7306 ends the stream. The queue pairs of two
// engines tell each other, unseen by the programs (verbs.Announced); WEFT_PLAIN leaves
// that out.

// announced notes that the peer's queue pair is such a one.
func (q *queuePair) announced(*verbs.QP) {
	q.mu.Lock()
	defer q.mu.Unlock()
	atomic.StoreUint32((*uint32)(&q.sends.queue.extensions), 1)
	close(q.extended)
}

// unannounced is for a queue pair of an RNIC that is to have a stream.
func (q *queuePair) unannounced() {
	if rcPersona {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	atomic.StoreUint32((*uint32)(&q.sends.queue.extensions), 0)
	q.extended, q.alone = make(chan struct{}), false
}

// announcementLimit is how long a request that needs the peer to know RFC 7306 waits for
// it to say so. It does within a round trip after the connection was established.
const announcementLimit = time.Second

// awaitExtensions returns when immediate data and atomics may be posted, or with
// EOPNOTSUPP if they may not.
func awaitExtensions(a *C.struct_weft_object) syscall.Errno {
	q := queuePairs.get(uint32(a.handle))
	if q == nil {
		return syscall.EINVAL
	}
	q.mu.Lock()
	extended, down, alone := q.extended, q.down, q.alone
	q.mu.Unlock()
	if down != nil && !alone && !options.plain {
		late := time.NewTimer(announcementLimit)
		defer late.Stop()
		select {
		case <-extended:
			return 0
		case <-down:
		case <-working().Done():
			return syscall.EIO
		case <-late.C:
			q.mu.Lock()
			q.alone = true
			q.mu.Unlock()
		}
	}
	return refuse(syscall.EOPNOTSUPP, "post send: immediate data and atomics need a peer that is Weft, too, or the rc persona")
}
