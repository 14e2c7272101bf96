package pages

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"unsafe"
)

// A Fault is an access that the system refused.
type Fault struct {
	Addr uintptr // where, as far as the system tells; 0: it does not
}

func (f *Fault) Error() string {
	if f.Addr == 0 {
		return "memory that cannot be accessed: " + reasons
	}
	return fmt.Sprintf("memory at address %#x cannot be accessed: %s", f.Addr, reasons)
}

const reasons = "it is not mapped, its pages lack the right, or its file was truncated"

// Trap has faults of this goroutine panic, and returns what Catch restores.
func Trap() (was bool) { return debug.SetPanicOnFault(true) }

// Catch, deferred, restores what Trap returned, and ends the panic of a fault in one of
// the pages where memory lies: *err is a *Fault then. Any other panic goes on.
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

// judge returns the Fault in memory that r is, or panics with r.
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

// pageSize is how exact the address of a fault is: some systems tell the page only.
var pageSize = uintptr(os.Getpagesize())

// within reports that addr is in one of the pages of m.
func within(addr uintptr, m []byte) bool {
	first := uintptr(unsafe.Pointer(unsafe.SliceData(m)))
	return len(m) > 0 && addr >= first&^(pageSize-1) && addr < (first+uintptr(len(m))+pageSize-1)&^(pageSize-1)
}
