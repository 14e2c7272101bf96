package main

/*
#include "engine.h"
*/
import "C"

import (
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/verbs"
)

// This file lets a thread of the program that waits for an event receive by itself: it
// waits in the place of the connections' readers (leader and followers, see package
// mpa), and nobody has to wake it. A program that waits for the channel's descriptor in
// another way is woken by that.

// longestWait is how long a thread waits in the readers' place. Then they do, at less
// cost.
const longestWait = 60 * time.Millisecond

// A waiting is a thread's wait for the events of a channel.
type waiting struct {
	cqs   []*completionQueue
	all   []verbs.Waiter
	taken []verbs.Waiter
	ready []unix.PollFd // the channel's, and those of taken
	addFn func(verbs.Waiter)
}

var waitings = sync.Pool{New: func() any {
	w := new(waiting)
	w.addFn = w.add
	return w
}}

// add adds a connection, once: both queues of a queue pair have it.
func (w *waiting) add(c verbs.Waiter) {
	if !slices.Contains(w.all, c) {
		w.all = append(w.all, c)
	}
}

// wait waits for an event of a channel.
func wait(fd int, handles []uint32) int {
	w := waitings.Get().(*waiting)
	defer waitings.Put(w)
	defer w.forget()
	for _, h := range handles {
		if q := completionQueues.get(h); q != nil {
			w.cqs = append(w.cqs, q)
			q.cq.Waiters(w.addFn)
		}
	}
	for !failed.Load() && w.take(fd) {
		switch n, errno := poll(w.ready); {
		case failed.Load():
			return C.WEFT_WAITED_BELL
		case errno == unix.EINTR:
			w.give()
			return C.WEFT_WAITED_INTERRUPTED
		case n == 0 || w.ready[0].Revents != 0:
			w.give()
			return C.WEFT_WAITED_BELL
		}
		for _, q := range w.cqs {
			q.led.Store(true)
		}
		if w.receive() {
			return C.WEFT_WAITED_EVENT
		}
	}
	return C.WEFT_WAITED_BELL
}

// progress receives what has arrived, for a poll that has found nothing. A program that has
// armed the queue is about to wait for an event.
func (q *completionQueue) progress() {
	if failed.Load() {
		q.flush() // there may be room for more by now
		return
	}
	q.cq.Poll(nil)
	if q.bell >= 0 && atomic.LoadUint32((*uint32)(&q.queue.armed)) != C.WEFT_DISARMED && q.leaves() {
		q.cq.Leave()
	}
}

// leaves reports whether the program is taken to wait in another way than by
// ibv_get_cq_event, which it has not waited in before. An event that is there before the
// call does not show: the engine may have been too quick. So it leaves the event to the
// program now and then, less and less often, which costs those that wait in another way some
// ms each time.
func (q *completionQueue) leaves() bool {
	if q.led.Load() {
		return false
	}
	n := q.armings.Add(1)
	return n < firstTrial || n&(n-1) != 0
}

// firstTrial is at what arming the engine leaves an event to the program first. It does so
// again after twice as many each time.
const firstTrial = 16

// take takes over the waits that it can. It reports whether there are any.
func (w *waiting) take(fd int) bool {
	w.taken, w.ready = w.taken[:0], append(w.ready[:0], unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	for _, c := range w.all {
		if fd, ok := c.BeginWait(); ok {
			w.taken = append(w.taken, c)
			w.ready = append(w.ready, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	return len(w.taken) > 0
}

// give gives the waits back.
func (w *waiting) give() {
	for i, c := range w.taken {
		c.EndWait(w.ready[1+i].Revents != 0)
	}
}

// receive receives what has come, and reports whether there is an event.
func (w *waiting) receive() bool {
	w.give() // of all before the first is received from, which may close any of them
	for _, q := range w.cqs {
		q.lead(1)
	}
	for i, c := range w.taken {
		if w.ready[1+i].Revents != 0 {
			c.Poll()
		}
	}
	return w.led()
}

// led ends receiving. It reports whether an event was raised meanwhile: that is this
// thread's. Further ones ring the channel's bell.
func (w *waiting) led() (mine bool) {
	for _, q := range w.cqs {
		for range q.lead(-1) {
			if mine {
				tell(q.bell)
			}
			mine = true
		}
	}
	return mine
}

func (w *waiting) forget() {
	clear(w.cqs)
	clear(w.all)
	clear(w.taken)
	w.cqs, w.all, w.taken = w.cqs[:0], w.all[:0], w.taken[:0]
}

// lead notes that a thread begins to receive for the channel, or has ended, and then
// returns how many events were raised without a ring of the bell.
func (q *completionQueue) lead(change int) (untold int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.leads += change; change < 0 {
		untold, q.untold = q.untold, 0
	}
	return untold
}

// poll waits until one of the descriptors is ready.
func poll(ready []unix.PollFd) (int, syscall.Errno) {
	longest := unix.NsecToTimespec(int64(longestWait))
	n, _, errno := syscall.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&ready[0])), uintptr(len(ready)), uintptr(unsafe.Pointer(&longest)), 0, 0, 0)
	return int(n), errno
}
