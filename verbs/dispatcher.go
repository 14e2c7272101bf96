// This file calls the handlers of events and completions.

package verbs

import (
	"sync"

	"github.com/weft-rdma/weft/internal/panics"
)

// A dispatcher calls handlers one after the other, in a goroutine that lives only while
// there are calls to make, so that handlers may call any verb. Its queue is bounded by
// use: each call of a completion handler was requested, and a stream raises a few events
// in its life.
type dispatcher[T any] struct {
	mu      sync.Mutex
	queue   []notice[T]
	running bool
}

// A notice is a call to be made.
type notice[T any] struct {
	v    T
	call func(T)
}

// dispatch has call called with v, after the calls before it.
func (d *dispatcher[T]) dispatch(v T, call func(T)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = append(d.queue, notice[T]{v, call})
	if !d.running {
		d.running = true
		go d.run()
	}
}

func (d *dispatcher[T]) run() {
	defer panics.Recover()
	for {
		d.mu.Lock()
		if len(d.queue) == 0 {
			d.running = false
			d.queue = nil
			d.mu.Unlock()
			return
		}
		n := d.queue[0]
		d.queue[0] = notice[T]{} // keep nothing alive
		d.queue = d.queue[1:]
		d.mu.Unlock()
		n.call(n.v)
	}
}
