// Package panics is for programs that are not Go's, in which Weft is a library: a panic in
// a goroutine of Weft's would end them. What is deferred at the top of each goroutine of the
// core, and of each function that a timer or a context calls, gives a panic to the handler
// of such a program. In programs in Go there is no handler, and a panic does what it always
// does.
package panics

import "sync/atomic"

var handler atomic.Pointer[func(v any)]

// Handle has f called with the value of each panic that [Recover] meets from then on. f is
// called in the goroutine of the panic, whose stack runtime.Callers and debug.Stack still
// show, and which ends when f returns. What it had locked is locked for ever, unless a
// deferred call unlocked it. f must not panic. nil removes the handler.
func Handle(f func(v any)) {
	if f == nil {
		handler.Store(nil)
		return
	}
	handler.Store(&f)
}

// Recover is the first thing that a goroutine of the core defers. Without a handler it does
// nothing, so that the program crashes with the stack of the panic itself.
func Recover() {
	f := handler.Load()
	if f == nil {
		return
	}
	if v := recover(); v != nil {
		(*f)(v)
	}
}
