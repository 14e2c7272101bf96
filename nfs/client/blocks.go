// This file holds the memory of blocks, which streams use one after the other.

package client

import "sync"

// blocks gives memory for the data of requests, of no defined content. What is
// idle is the garbage collector's to take.
type blocks struct{ idle sync.Pool }

func (b *blocks) get(size int) []byte {
	if p, ok := b.idle.Get().(*[]byte); ok && cap(*p) >= size {
		return (*p)[:size:size]
	}
	return make([]byte, size)
}

// put takes memory back. Small pieces, those of small files, are not worth it.
func (b *blocks) put(p []byte) {
	if cap(p) >= keepBlocks {
		b.idle.Put(&p)
	}
}

// keepBlocks is the octets from which on memory is kept.
const keepBlocks = 64 << 10
