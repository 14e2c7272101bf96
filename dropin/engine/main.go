// Command engine is the part of the drop-in libibverbs that does the work: a Go
// library (-buildmode=c-shared) on packages verbs and cm, which the C part loads when
// a program opens a device. c/engine.h says what passes between the two.
//
// # The flow
//
// The program posts into queues in memory that both sides see. weftSend takes what is
// in a send queue and gives it to the queue pair, which sends in the program's thread
// as much as the socket takes. Receives are taken when a message needs one
// (verbs.Refill). Completions go into a queue that the program polls without a call
// (verbs.Sink). What a poll finds nothing for, weftProgress looks for in the sockets.
//
// # Locking
//
// Objects are in tables that are read without a lock. Each half of a queue pair is
// drained by one thread at a time; any other thread leaves it to that one. No lock
// is held while a verb waits.
//
// # Safety
//
// No panic leaves an exported function, a goroutine or timer of the engine or of a package
// below it, or what the engine has verbs call. A function that C calls returns EIO. The
// device fails (defect.go).
package main

/*
#cgo CFLAGS: -I../c
#include "engine.h"
*/
import "C"

import (
	"syscall"
	"unsafe"

	"github.com/weft-rdma/weft/internal/panics"
)

func main() {}

// contain ends a panic at the border to C: *errno becomes EIO.
func contain(errno *syscall.Errno) {
	if r := recover(); r != nil {
		defect(r)
		if errno != nil {
			*errno = syscall.EIO
		}
	}
}

// contained runs f. A panic ends f, and the device.
func contained(f func()) {
	defer contain(nil)
	f()
}

// spawn runs f in a goroutine.
func spawn(f func()) {
	go func() {
		defer panics.Recover()
		f()
	}()
}

//export weftStart
func weftStart(version C.uint32_t, rcPersona C.int, guid C.uint64_t) (result C.int) {
	var errno syscall.Errno
	defer func() { result = C.int(errno) }()
	defer contain(&errno)
	if version != C.WEFT_ENGINE_VERSION {
		return C.int(syscall.EINVAL)
	}
	errno = start(rcPersona != 0, uint64(guid))
	return
}

//export weftVerb
func weftVerb(verb C.uint32_t, arguments unsafe.Pointer) (result C.int) {
	var errno syscall.Errno
	defer func() { result = C.int(errno) }()
	defer contain(&errno)
	if failed.Load() {
		errno = executeFailed(uint32(verb), arguments)
		return
	}
	errno = execute(uint32(verb), arguments)
	return
}

//export weftSend
func weftSend(qp C.uint32_t) {
	defer contain(nil)
	if q := queuePairs.get(uint32(qp)); q != nil {
		q.takeSends()
	}
}

//export weftReceive
func weftReceive(qp C.uint32_t) {
	defer contain(nil)
	if q := queuePairs.get(uint32(qp)); q != nil {
		q.takeReceives()
	}
}

//export weftReceiveShared
func weftReceiveShared(srq C.uint32_t, entries unsafe.Pointer, stride, n C.uint32_t) (taken C.int) {
	defer contain(nil)
	if s := sharedQueues.get(uint32(srq)); s != nil && !failed.Load() {
		taken = C.int(s.take(entries, uintptr(stride), int(n)))
	}
	return
}

//export weftProgress
func weftProgress(cq C.uint32_t) {
	defer contain(nil)
	if q := completionQueues.get(uint32(cq)); q != nil {
		q.progress()
	}
}

//export weftWait
func weftWait(fd C.int, cqs *C.uint32_t, n C.uint32_t) (result C.int) {
	defer contain(nil) // the result is WEFT_WAITED_BELL
	if failed.Load() {
		return
	}
	return C.int(wait(int(fd), unsafe.Slice((*uint32)(cqs), int(n))))
}

//export weftCM
func weftCM(fd C.int, command unsafe.Pointer, octets C.ulong) (result C.long) {
	var errno syscall.Errno
	defer func() {
		if result = C.long(octets); errno != 0 {
			result = -C.long(errno)
		}
	}()
	defer contain(&errno)
	errno = cmCommand(int(fd), unsafe.Slice((*byte)(command), int(octets)))
	return
}

//export weftCMOpen
func weftCMOpen(fd, eventFD C.int) {
	defer contain(nil)
	openChannel(int(fd), int(eventFD))
}

//export weftCMClose
func weftCMClose(fd C.int) {
	defer contain(nil)
	closeChannel(int(fd))
}

//export weftFinish
func weftFinish(refusals C.uint32_t) {
	defer contain(nil)
	refused.Add(int64(refusals)) // the library's own
	finish()
}
