//go:build race

// The race detector does not see what goes through raw system calls. As package
// syscall does, every write is made to happen before every read, so that two
// ends of a stream in one process are not accused of what the network orders.

package socket

import (
	"runtime"
	"unsafe"
)

var ioSync int64

func released() { runtime.RaceReleaseMerge(unsafe.Pointer(&ioSync)) }

func acquired() { runtime.RaceAcquire(unsafe.Pointer(&ioSync)) }
