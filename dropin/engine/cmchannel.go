package main

/*
#include "engine.h"
#include <rdma/rdma_user_cm.h>
*/
import "C"

import (
	"slices"
	"sync"
	"syscall"
)

// This file is event channels of rdma_cm: descriptors of /dev/infiniband/rdma_cm, and
// the events that wait in them.

// A channel is one such descriptor.
type channel struct {
	fd     int        // the program's
	ring   int        // where its events go
	events []*cmEvent // cmMu
}

// A cmEvent is an event that the program has not taken.
type cmEvent struct {
	id   *identifier // whose it is, for the program
	resp C.struct_rdma_ucm_event_resp
	made *identifier // of a request for a connection: what it gets
}

// cmMu guards channels, identifiers and their events. It is never held while something
// waits.
var (
	cmMu     sync.Mutex
	channels = map[int]*channel{}
)

func openChannel(fd, ring int) {
	cmMu.Lock()
	defer cmMu.Unlock()
	channels[fd] = &channel{fd: fd, ring: ring}
}

// closeChannel ends a channel with all its identifiers, as the kernel does.
func closeChannel(fd int) {
	cmMu.Lock()
	ch := channels[fd]
	delete(channels, fd)
	cmMu.Unlock()
	if ch == nil {
		return
	}
	for _, id := range identifiers.all() {
		cmMu.Lock()
		ours := id.channel == ch
		cmMu.Unlock()
		if ours {
			id.destroy()
		}
	}
}

// raise puts an event into its identifier's channel; needs cmMu. Of a device that has failed
// only the end of it, and what the program itself raises, is told.
func (e *cmEvent) raise() {
	ch := e.id.channel
	if e.id.dead || ch == nil || failed.Load() && e.resp.event < deviceRemoval {
		return
	}
	ch.events = append(ch.events, e)
	tell(ch.ring)
}

// purge drops the events of an identifier; needs cmMu. It returns the identifiers of
// requests that nobody will ever see.
func (ch *channel) purge(id *identifier) (unseen []*identifier) {
	was := len(ch.events)
	ch.events = slices.DeleteFunc(ch.events, func(e *cmEvent) bool {
		if e.id == id && e.made != nil {
			unseen = append(unseen, e.made)
		}
		if e.id != id && e.made == id {
			<-e.id.unseen
		}
		return e.id == id || e.made == id
	})
	unring(ch.fd, was-len(ch.events))
	return unseen
}

// nextCMEvent gives the program an event, or EAGAIN if the event that it was woken for has gone.
func (ch *channel) next(a *C.struct_rdma_ucm_get_event) syscall.Errno {
	cmMu.Lock()
	defer cmMu.Unlock()
	if len(ch.events) == 0 {
		return syscall.EAGAIN
	}
	e := ch.events[0]
	ch.events = ch.events[1:]
	e.id.reported++
	if e.made != nil {
		<-e.id.unseen
	}
	e.resp.uid = C.__u64(e.id.uid)
	*(*C.struct_rdma_ucm_event_resp)(pointer(uint64(a.response))) = e.resp
	return 0
}
