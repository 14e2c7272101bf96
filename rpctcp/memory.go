// This file is the memory of messages: buffers in a few sizes, used again and
// again, and a limit on all of them together.

package rpctcp

import (
	"context"
	"sync"
)

// sizes are the capacities of buffers that are kept for later, in octets: up to
// short calls, up to what one reads first of a long one, and up to the payloads
// that NFS peers agree on with anything around them.
var sizes = [...]int{4 << 10, 16 << 10, 64<<10 + 4<<10, 256<<10 + 4<<10, 1<<20 + 4<<10}

// idle holds buffers that nobody uses, by the index of sizes. The garbage
// collector takes those that are not wanted for a while.
var idle [len(sizes)]sync.Pool

// A buffer is memory for one message.
type buffer struct {
	b     []byte
	class int // index of sizes, or len(sizes): not to be kept
	pool  *pool
}

// release gives the memory back. It is nobody's after that.
func (b *buffer) release() {
	for p := b.pool; p != nil; p = p.parent {
		p.give(cap(b.b))
	}
	b.pool = nil
	if b.class < len(sizes) {
		idle[b.class].Put(b)
	}
}

// A pool gives out buffers and counts the octets that are out. Many goroutines
// may use it.
type pool struct {
	limit  int64 // octets; see wait
	parent *pool // counts them as well; nil for none

	mu   sync.Mutex
	out  int64         // octets given out
	room chan struct{} // closed when out falls, with children below limit; nil if nobody waits
}

// get returns memory of n octets, in which there may be anything. It never
// waits: what has been begun can come to its end.
func (p *pool) get(n int) *buffer {
	class := 0
	for class < len(sizes) && sizes[class] < n {
		class++
	}
	var b *buffer
	if class == len(sizes) {
		b = &buffer{b: make([]byte, n), class: class}
	} else if b, _ = idle[class].Get().(*buffer); b == nil {
		b = &buffer{b: make([]byte, sizes[class]), class: class}
	}
	b.b, b.pool = b.b[:n], p
	for ; p != nil; p = p.parent {
		p.take(cap(b.b))
	}
	return b
}

func (p *pool) take(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out += int64(n)
}

func (p *pool) give(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out -= int64(n)
	if p.room != nil && (p.out < p.limit || p.parent != nil) {
		close(p.room)
		p.room = nil
	}
}

// wait waits until less than the limit is out, here and of the parent, or nothing
// is out here, so that nobody waits for others alone; or the context ends.
func (p *pool) wait(ctx context.Context) error {
	for late := false; ; late = true { // who is let in at once makes no channel
		out, given := p.look(late)
		if out == 0 {
			return nil
		}
		var others chan struct{}
		if out < p.limit {
			if p.parent == nil {
				return nil
			}
			if out, others = p.parent.look(late); out < p.parent.limit {
				return nil
			}
		}
		if !late {
			continue
		}
		select {
		case <-given:
		case <-others:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// look returns how much is out, and if one is wanted a channel that is closed when
// it is worth looking again.
func (p *pool) look(wanted bool) (out int64, given chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.room == nil && wanted {
		p.room = make(chan struct{})
	}
	return p.out, p.room
}
