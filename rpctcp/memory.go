// The memory of messages: buffers in a few sizes, which are reused, and counted in accounts
// with limits.

package rpctcp

import (
	"context"
	"sync"

	"github.com/weft-rdma/weft/internal/fairness"
)

// sizes are the capacities of buffers that are kept for later, in octets: up to
// short calls, up to what one reads first of a long one, and up to the payloads
// that NFS peers agree on with anything around them.
var sizes = [...]int{4 << 10, 16 << 10, 64<<10 + 4<<10, 256<<10 + 4<<10, 1<<20 + 4<<10}

// idle holds unused buffers, by the index of sizes. The garbage collector frees those that
// stay unused.
var idle [len(sizes)]sync.Pool

// A buffer is memory for one message.
type buffer struct {
	b     []byte
	class int // index of sizes, or len(sizes): not to be kept
	size  int // capacity of b
	owner *fairness.Account
}

// classOf returns which buffers have room for n octets, and how much they have.
func classOf(n int) (class, size int) {
	for class, size = range sizes {
		if n <= size {
			return class, size
		}
	}
	return len(sizes), n
}

// get returns memory of n octets, in which there may be anything, when the account
// has them. It fails with the cause of the context's end.
func get(ctx context.Context, a *fairness.Account, n int) (*buffer, error) {
	class, size := classOf(n)
	if err := a.Acquire(ctx, size, false); err != nil {
		return nil, err
	}
	return newBuffer(a, n, class, size), nil
}

// newBuffer returns memory that has been taken from the account.
func newBuffer(a *fairness.Account, n, class, size int) *buffer {
	var b *buffer
	if class < len(sizes) {
		b, _ = idle[class].Get().(*buffer)
	}
	if b == nil {
		b = &buffer{b: make([]byte, size), class: class, size: size}
	}
	b.b, b.owner = b.b[:n], a
	return b
}

// release gives the memory back. The buffer must not be used after that.
func (b *buffer) release() {
	owner, size := b.owner, b.size
	b.recycle()
	owner.Release(size)
}

// recycle keeps the memory for later. It counts still.
func (b *buffer) recycle() {
	b.owner = nil
	if b.class < len(sizes) {
		idle[b.class].Put(b)
	}
}
