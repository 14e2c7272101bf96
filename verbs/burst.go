// This file detects bursts of work requests: posted one or a few at a time, each post
// right after the other. If the poster sends after each post, each costs a write; if it
// leaves them to the writer goroutine, one write takes several. For a request that comes
// alone the hand-over takes longer than the write.

package verbs

import (
	"sync/atomic"
	"time"
)

const (
	// burstGap is the time from one post to the next in a burst, at most.
	burstGap = time.Microsecond

	// burstLength is how many posts are a burst, and so many requests in one post
	// are sent without waiting for more; a pause halves what has been seen of it, up
	// to burstMemory.
	burstLength = 16
	burstMemory = 4 * burstLength
)

// A burst watches the posts to one send queue. Moments are times since start.
type burst struct {
	seen int          // posts without a pause; the queue's post
	last atomic.Int64 // the moment when the last post was done with
}

var start = time.Now()

func sinceStart() time.Duration { return time.Since(start) }

// another notes a post of n requests at the moment now, and reports whether more
// are to be expected and worth to be waited for: many requests are sent at once.
// Needs the queue's post.
func (b *burst) another(n int, now time.Duration) bool {
	if now-time.Duration(b.last.Load()) > burstGap {
		b.seen /= 2
	} else if b.seen < burstMemory {
		b.seen++
	}
	b.sent(now)
	return b.seen >= burstLength && n < burstLength
}

// sent notes that the poster has itself sent what it posted, which took its time.
func (b *burst) sent(now time.Duration) { b.last.Store(int64(now)) }
