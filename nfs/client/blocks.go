// This file pools the memory of blocks, which Readers and Writers use in turn.

package client

import "sync"

// blocks provides memory for the data of requests, with undefined content. The garbage
// collector may free what is idle.
type blocks struct{ idle sync.Pool }

func (b *blocks) get(size int) []byte {
	if p, ok := b.idle.Get().(*[]byte); ok && cap(*p) >= size {
		return (*p)[:size:size]
	}
	return make([]byte, size)
}

// put returns memory to the pool. The small blocks of small files are not kept.
func (b *blocks) put(p []byte) {
	if cap(p) >= keepBlocks {
		b.idle.Put(&p)
	}
}

// keepBlocks is the smallest size, in octets, of a block that is kept.
const keepBlocks = 64 << 10
