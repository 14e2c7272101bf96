// This file turns a refused access to memory into an error.

package pages

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"unsafe"
)

// A Fault is an access to memory that the system refused.
type Fault struct {
	Addr uintptr // 0 if the system does not report it
}

func (f *Fault) Error() string {
	if f.Addr == 0 {
		return "memory cannot be accessed: " + reasons
	}
	return fmt.Sprintf("memory at address %#x cannot be accessed: %s", f.Addr, reasons)
}

const reasons = "it is not mapped, its pages lack the right, or its file was truncated"

// Trap makes faults of this goroutine panic, and returns the setting that Catch restores.
func Trap() (was bool) { return debug.SetPanicOnFault(true) }

// Catch is deferred. It restores what Trap returned, and recovers the panic of a fault in
// one of the pages of memory: *err is a *Fault then. Any other panic continues.
func Catch(err *error, memory [][]byte, was bool) {
	debug.SetPanicOnFault(was)
	if r := recover(); r != nil {
		*err = judge(r, memory)
	}
}

// CatchIn is Catch for memory that is not known before: memory is called when there
// was a fault, and names what was in use.
func CatchIn(err *error, memory func() [][]byte, was bool) {
	debug.SetPanicOnFault(was)
	if r := recover(); r != nil {
		*err = judge(r, memory())
	}
}

// judge returns r as a Fault if it is one in memory; otherwise it panics with r.
func judge(r any, memory [][]byte) *Fault {
	if f, ok := r.(interface {
		runtime.Error
		Addr() uintptr
	}); ok {
		for _, m := range memory {
			if within(f.Addr(), m) {
				return &Fault{Addr: f.Addr()}
			}
		}
	}
	panic(r)
}

// pageSize is the precision of a fault's address: some systems report only the page.
var pageSize = uintptr(os.Getpagesize())

// within reports whether addr is in one of the pages of m.
func within(addr uintptr, m []byte) bool {
	first := uintptr(unsafe.Pointer(unsafe.SliceData(m)))
	return len(m) > 0 && addr >= first&^(pageSize-1) && addr < (first+uintptr(len(m))+pageSize-1)&^(pageSize-1)
}
