package main

/*
#include "engine.h"
#include <infiniband/verbs.h>
*/
import "C"

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/verbs"
)

// This file is asynchronous events: where they go and how they are taken.

// An event is one that a program has not taken.
type event struct {
	kind  uint32
	owner uint64 // of the object that it is about
}

// tell rings for one event. What is full already is as readable as can be.
func tell(fd int) { _, _ = syscall.Write(fd, []byte{1}) }

// unring takes back rings for events that are no more, at the program's end, as bell_unring
// does in C.
func unring(fd, n int) {
	if n <= 0 {
		return
	}
	nowhere, err := unix.Open("/dev/null", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(nowhere)
	for n > 0 {
		taken, err := unix.Splice(fd, nil, nowhere, nil, n, unix.SPLICE_F_NONBLOCK)
		if err != nil || taken <= 0 {
			return // a thread has woken already, finds nothing and waits again
		}
		n -= int(taken)
	}
}

// raise finds out which object of the program an event of the RNIC is about.
func raise(e verbs.Event) {
	kind := kindOf(e.ID)
	if kind < 0 || failed.Load() || rcPersona && lacksReceive(e.Err) {
		return // of a message without a receive only its sender learns
	}
	switch {
	case e.QP != nil:
		if q := byNumber(e.QP.Num()); q != nil {
			q.context.add(event{uint32(kind), q.owner})
		}
	case e.SRQ != nil:
		for _, s := range sharedQueues.all() {
			if s.srq == e.SRQ {
				s.context.add(event{uint32(kind), s.owner})
			}
		}
	case e.CQ != nil:
		for _, c := range completionQueues.all() {
			if c.cq == e.CQ {
				c.context.add(event{uint32(kind), c.owner})
			}
		}
	default:
		for _, c := range contexts.all() {
			c.add(event{uint32(kind), 0})
		}
	}
}

// kindOf is what an event is to the program, -1 for none.
func kindOf(id verbs.EventID) int {
	switch id {
	case verbs.EventCQOverflow, verbs.EventCQOperation:
		return C.IBV_EVENT_CQ_ERR
	case verbs.EventSRQLimit:
		return C.IBV_EVENT_SRQ_LIMIT_REACHED
	case verbs.EventSRQCatastrophic:
		return C.IBV_EVENT_SRQ_ERR
	case verbs.EventRNICCatastrophic:
		return C.IBV_EVENT_DEVICE_FATAL
	case verbs.EventProtectionSTag, verbs.EventProtectionBounds, verbs.EventProtectionAccess, verbs.EventProtectionPD,
		verbs.EventProtectionWrap, verbs.EventIRRQSTag, verbs.EventIRRQBounds, verbs.EventIRRQAccess, verbs.EventIRRQPD,
		verbs.EventIRRQWrap, verbs.EventReadDisabled, verbs.EventWriteDisabled:
		return C.IBV_EVENT_QP_ACCESS_ERR
	case verbs.EventLLPCloseComplete, verbs.EventLLPReset, verbs.EventLLPLost, verbs.EventBadLLPClose, verbs.EventBadClose,
		verbs.EventTerminateReceived, verbs.EventRQLimit:
		return -1 // the completions tell, and the connection manager
	case verbs.EventQPCatastrophic, verbs.EventCQSQ, verbs.EventCQRQ, verbs.EventSRQError:
		return C.IBV_EVENT_QP_FATAL
	}
	return C.IBV_EVENT_QP_REQ_ERR
}

// add gives an event to the program.
func (c *context) add(e event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.events = append(c.events, e)
	tell(c.eventFD)
}

// forget drops the events of an object that is being destroyed, and returns how many.
func (c *context) forget(owner uint64) C.uint32_t {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := len(c.events)
	c.events = slices.DeleteFunc(c.events, func(e event) bool { return e.owner == owner })
	return C.uint32_t(was - len(c.events))
}

func nextEvent(a *C.struct_weft_event) syscall.Errno {
	c := contexts.get(uint32(a.context))
	if c == nil {
		return syscall.EINVAL
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.events) == 0 {
		return syscall.EAGAIN
	}
	e := c.events[0]
	c.events = c.events[1:]
	a._type, a.owner = C.uint32_t(e.kind), C.uint64_t(e.owner)
	return 0
}
