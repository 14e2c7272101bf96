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
	p := b.pool
	b.pool = nil
	p.give(cap(b.b))
	if b.class < len(sizes) {
		idle[b.class].Put(b)
	}
}

// A pool gives out buffers and counts the octets that are out. Many goroutines
// may use it.
type pool struct {
	limit int64 // octets; see wait

	mu   sync.Mutex
	out  int64         // octets given out
	room chan struct{} // closed when out falls below limit; nil if nobody waits
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
	p.mu.Lock()
	p.out += int64(cap(b.b))
	p.mu.Unlock()
	return b
}

func (p *pool) give(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out -= int64(n)
	if p.out < p.limit && p.room != nil {
		close(p.room)
		p.room = nil
	}
}

// wait waits until less than the limit is out, or the context ends.
func (p *pool) wait(ctx context.Context) error {
	for {
		p.mu.Lock()
		if p.out < p.limit {
			p.mu.Unlock()
			return nil
		}
		if p.room == nil {
			p.room = make(chan struct{})
		}
		room := p.room
		p.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
