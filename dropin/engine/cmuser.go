package main

/*
#include <rdma/rdma_user_cm.h>
*/
import "C"

import "syscall"

// This file is events that a program writes into a channel itself, for a thread of its
// own that waits there (rdma_write_cm_event).

// Commands that the headers of older distributions do not have.
const (
	resolveIBService = 23
	writeCMEvent     = 24
)

// The events that may be written (rdma/rdma_cma.h).
const (
	userEvent     = 18
	internalEvent = 19
)

// A writtenEvent is struct rdma_ucm_write_cm_event, as far as it matters.
type writtenEvent struct {
	id, reserved, event, status uint32
	argument                    [8]byte
}

func writeEvent(a *writtenEvent) syscall.Errno {
	if a.event != userEvent && a.event != internalEvent {
		return syscall.EINVAL
	}
	id, errno := find(C.__u32(a.id))
	if errno != 0 {
		return errno
	}
	cmMu.Lock()
	defer cmMu.Unlock()
	e := id.newEvent(a.event, 0)
	e.resp.status = C.__u32(a.status)
	copy(e.resp.param[:], a.argument[:])
	e.raise()
	return 0
}
