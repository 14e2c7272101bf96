// This file bounds the memory that the calls of all connections of a server have
// together.

package rpcrdma

import "sync/atomic"

// DefaultServerMemory is how many octets the calls of all connections of a server
// may have together where the configuration says nothing.
const DefaultServerMemory = 1 << 30

// A budget is octets for the calls of many connections. Each connection may have
// one call whatever the others have, so that nobody waits but for himself: the end
// of a call of its own is when to try again. A nil *budget has no bound. Methods may
// be called by any goroutine.
type budget struct {
	most int64
	used atomic.Int64
}

// take takes n octets if they are there, or in any case.
func (b *budget) take(n int, anyhow bool) bool {
	if b == nil {
		return true
	}
	if used := b.used.Add(int64(n)); used <= b.most || anyhow {
		return true
	}
	b.used.Add(-int64(n))
	return false
}

// give gives n octets back.
func (b *budget) give(n int) {
	if b != nil {
		b.used.Add(-int64(n))
	}
}
