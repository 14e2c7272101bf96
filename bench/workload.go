// What one sample does: a transport, an operation, a size and how it is
// driven. A Workload is comparable, so that it can be the key of its samples.

package main

import (
	"fmt"
	"strings"
)

// A Transport is what carries the octets.
type Transport string

const (
	TCP  Transport = "tcp"
	Weft Transport = "weft"
)

// A Shape is the pattern of the traffic.
type Shape string

const (
	Stream   Shape = "stream"   // one way, as fast as it goes
	PingPong Shape = "pingpong" // one message there, one back, and again
)

// An Op is the operation that carries the message.
type Op string

const (
	Octets Op = "octets" // plain TCP knows no other
	Write  Op = "write"  // RDMA Write
	Read   Op = "read"   // RDMA Read
	Send   Op = "send"   // Send into a posted receive
)

// A Workload is what one sample does.
type Workload struct {
	Transport Transport
	Shape     Shape
	Op        Op
	Size      int  // octets of a message
	CRC       bool // CRC32C in each FPDU; of Weft only

	// Batch is about streams: Weft posts lists of work requests, TCP gathers
	// its messages into writes of gatherSize. Without it, each message is one
	// post, or one write.
	Batch bool

	// Spin is about ping-pong: each end polls for a bounded time before it
	// parks in the netpoller.
	Spin bool
}

func (w Workload) String() string {
	parts := []string{string(w.Transport), string(w.Shape)}
	if w.Transport == Weft {
		parts = append(parts, string(w.Op))
	}
	parts = append(parts, sizeName(w.Size))
	if w.CRC {
		parts = append(parts, "crc")
	}
	if w.Batch {
		parts = append(parts, "batched")
	}
	if w.Spin {
		parts = append(parts, "spin")
	}
	return strings.Join(parts, " ")
}

// fileName is String fit for the name of a file.
func (w Workload) fileName() string {
	return strings.ReplaceAll(w.String(), " ", "-")
}

// windowSize is the least memory that a stream walks through, in octets. It is
// what a good TCP reader takes in one call: both kinds of streams then touch
// the same amount of memory.
const windowSize = 256 << 10

// gatherSize is how much a batching TCP sender hands to one write.
const gatherSize = 64 << 10

// window is the memory, in octets, that a stream of w walks through: a whole
// number of messages.
func (w Workload) window() int {
	return w.slots() * w.Size
}

// slots is how many messages fit the window.
func (w Workload) slots() int {
	return max(1, windowSize/w.Size)
}

// sizeName is n octets in the largest binary unit that divides it.
func sizeName(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return fmt.Sprintf("%dB", n)
}
