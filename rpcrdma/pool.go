// This file holds the memory that messages are put together in: registered once,
// in sizes that fit many messages, and kept for reuse.

package rpcrdma

import (
	"errors"
	"math/bits"
	"sync"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// Buffers have 4 KiB and twice that again and again, up to 8 MiB. Those from 64
// KiB on have 4 KiB more: what is that long is mostly a power of two of payload
// with a few words around it.
const (
	leastBuffer = 4 << 10
	bufferSizes = 12
	slackFrom   = 64 << 10
	slack       = 4 << 10
)

// DefaultIdleMemory is how many octets of registered memory are kept for reuse, if
// [ServerConfig.IdleMemory] is 0.
const DefaultIdleMemory = 64 << 20

// A pool hands out registered memory. It gives local rights alone, so that no
// peer reaches any of it by an STag: RDMA Reads of ours deliver into it, RDMA
// Writes and Sends come from it. Methods may be called by any goroutine.
type pool struct {
	pd   *verbs.PD
	most int // octets that may be idle

	mu     sync.Mutex
	idle   int // octets of the buffers in free
	free   [bufferSizes][]*buffer
	closed bool
}

// A buffer is registered memory of a pool.
type buffer struct {
	b    []byte
	mr   *verbs.MR
	size int // index in pool.free; -1: of a size of its own, not kept
}

// poolAccess has the rights of memory of a pool.
const poolAccess memory.Access = verbs.LocalRead | verbs.LocalWrite

func newPool(pd *verbs.PD, idle int) *pool {
	return &pool{pd: pd, most: orDefault(idle, DefaultIdleMemory)}
}

// bufferSize returns the size in octets of the buffers of an index.
func bufferSize(index int) int {
	n := leastBuffer << index
	if n >= slackFrom {
		n += slack
	}
	return n
}

// bufferIndex returns the index of the smallest size that holds n octets, -1 for none.
func bufferIndex(n int) int {
	i := 0
	if n > leastBuffer {
		i = bits.Len(uint(n-1)) - bits.Len(uint(leastBuffer-1))
	}
	if i > 0 && i <= bufferSizes && n <= bufferSize(i-1) {
		i--
	}
	if i >= bufferSizes {
		return -1
	}
	return i
}

// takes returns the size of the buffer that get returns for n octets.
func takes(n int) int {
	if i := bufferIndex(n); i >= 0 {
		return bufferSize(i)
	}
	return n
}

// get returns a buffer of at least n octets, in which what they are is not
// defined. An error is the RNIC's.
func (p *pool) get(n int) (*buffer, error) {
	size := bufferIndex(n)
	if size >= 0 {
		p.mu.Lock()
		if free := p.free[size]; len(free) > 0 {
			b := free[len(free)-1]
			free[len(free)-1] = nil
			p.free[size] = free[:len(free)-1]
			p.idle -= len(b.b)
			p.mu.Unlock()
			return b, nil
		}
		p.mu.Unlock()
		n = bufferSize(size)
	}
	b := &buffer{b: make([]byte, n), size: size}
	var err error
	b.mr, err = p.pd.Register(b.b, poolAccess)
	return b, err
}

// put returns a buffer to the pool. No work request may name it any more.
func (p *pool) put(b *buffer) {
	if b.size >= 0 {
		p.mu.Lock()
		if !p.closed && p.idle+len(b.b) <= p.most {
			p.free[b.size] = append(p.free[b.size], b)
			p.idle += len(b.b)
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
	_ = b.mr.Deallocate() // fails only with the RNIC, when nothing is registered
}

// close frees idle buffers. Buffers in use are freed when they are put back.
func (p *pool) close() error {
	p.mu.Lock()
	free := p.free
	p.free, p.idle, p.closed = [bufferSizes][]*buffer{}, 0, true
	p.mu.Unlock()
	var errs []error
	for _, buffers := range free {
		for _, b := range buffers {
			if err := b.mr.Deallocate(); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
