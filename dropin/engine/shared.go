package main

/*
#include "engine.h"
#include <infiniband/verbs.h>
*/
import "C"

import (
	"sync"
	"syscall"
	"unsafe"

	"github.com/weft-rdma/weft/verbs"
)

// A sharedQueue is a shared receive queue.
type sharedQueue struct {
	srq     *verbs.SRQ
	context *context
	owner   uint64

	mu    sync.Mutex
	slots []slot // the receives that have not completed, by their IDs
	free  []uint64
}

// A slot is a receive of a shared queue: what the program calls it, and its memory, as
// it may have to be posted again.
type slot struct {
	id  uint64
	sgl []verbs.SGE
}

func createSRQ(a *C.struct_weft_srq) syscall.Errno {
	d, c := domains.get(uint32(a.pd)), contexts.get(uint32(a.context))
	if d == nil || c == nil {
		return syscall.EINVAL
	}
	srq, err := d.pd.CreateSRQ(verbs.SRQConfig{WRs: int(a.depth), SGEs: max(1, int(a.sges))})
	if err != nil {
		return errnoOf(err)
	}
	a.handle = C.uint32_t(sharedQueues.add(&sharedQueue{srq: srq, context: c, owner: uint64(a.owner)}))
	return 0
}

func modifySRQ(a *C.struct_weft_srq) syscall.Errno {
	s := sharedQueues.get(uint32(a.handle))
	if s == nil {
		return syscall.EINVAL
	}
	var m verbs.SRQModify
	if a.change&C.IBV_SRQ_MAX_WR != 0 {
		depth := int(a.depth)
		m.WRs = &depth
	}
	if a.change&C.IBV_SRQ_LIMIT != 0 {
		limit := int(a.limit)
		m.Limit, m.Arm = &limit, limit > 0
	}
	_, err := s.srq.Modify(m)
	return errnoOf(err)
}

// querySRQ tells a limit of 0 when the limit's event has been raised.
func querySRQ(a *C.struct_weft_srq) syscall.Errno {
	s := sharedQueues.get(uint32(a.handle))
	if s == nil {
		return syscall.EINVAL
	}
	q, err := s.srq.Query()
	if err != nil {
		return errnoOf(err)
	}
	a.depth, a.limit = C.uint32_t(q.WRs), 0
	if q.Armed {
		a.limit = C.uint32_t(q.Limit)
	}
	return 0
}

func destroySRQ(a *C.struct_weft_object) syscall.Errno {
	s := sharedQueues.get(uint32(a.handle))
	if s == nil {
		return syscall.EINVAL
	}
	if err := s.srq.Destroy(); err != nil {
		return errnoOf(err)
	}
	sharedQueues.remove(uint32(a.handle))
	a.events = s.context.forget(s.owner)
	return 0
}

// take posts the n receives at entries and returns how many there was room for.
func (s *sharedQueue) take(entries unsafe.Pointer, stride uintptr, n int) (taken int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; taken < n; taken++ {
		wr := receiveAt(unsafe.Add(entries, uintptr(taken)*stride))
		at := s.keep(wr)
		wr.ID = at
		if err := s.srq.PostRecv(wr); err != nil {
			s.free = append(s.free, at)
			explain("%v", err)
			break
		}
	}
	return taken
}

// keep puts a receive into a free slot; needs mu.
func (s *sharedQueue) keep(wr verbs.RecvWR) uint64 {
	if len(s.free) == 0 {
		s.slots = append(s.slots, slot{})
		s.free = append(s.free, uint64(len(s.slots)-1))
	}
	at := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	s.slots[at].id, s.slots[at].sgl = wr.ID, append(s.slots[at].sgl[:0], wr.SGL...)
	return at
}

// release returns what the program calls the receive in a slot, which is free then.
func (s *sharedQueue) release(at uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, at)
	return s.slots[at].id
}

// repost posts the receive in a slot again. It does so in the background, as a Sink
// must not call a verb.
func (s *sharedQueue) repost(at uint64) {
	spawn(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.srq.PostRecv(verbs.RecvWR{ID: at, SGL: s.slots[at].sgl}); err != nil {
			explain("%v", err)
		}
	})
}

// receiveAt is the receive that the program has written at p.
func receiveAt(p unsafe.Pointer) verbs.RecvWR {
	r := (*C.struct_weft_receive)(p)
	return verbs.RecvWR{ID: uint64(r.id), SGL: throughNull(elements(unsafe.Add(p, C.sizeof_struct_weft_receive), int(r.sges)), true)}
}

// elements are those of a scatter/gather list in C, which has them as verbs.SGE does.
func elements(p unsafe.Pointer, n int) []verbs.SGE { return unsafe.Slice((*verbs.SGE)(p), n) }

// They are laid out alike.
var _ = [1]struct{}{}[unsafe.Sizeof(verbs.SGE{})-C.sizeof_struct_weft_sge]
var _ = [1]struct{}{}[unsafe.Offsetof(verbs.SGE{}.STag)-unsafe.Offsetof(C.struct_weft_sge{}.key)]
var _ = [1]struct{}{}[unsafe.Offsetof(verbs.SGE{}.Length)-unsafe.Offsetof(C.struct_weft_sge{}.length)]
