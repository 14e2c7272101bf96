// This file remembers whether standard output could be written to.

package main

import (
	"io"
	"os"
	"sync"
)

// An output is standard output. It keeps the first error, so that a command that
// ignores the results of its writes fails all the same.
type output struct {
	w io.Writer

	mu  sync.Mutex
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// failed returns the first error.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// onTerminal reports whether w is standard output and a terminal.
func onTerminal(w io.Writer) bool {
	if o, ok := w.(*output); ok {
		w = o.w
	}
	return w == io.Writer(os.Stdout) && terminal(os.Stdout)
}
