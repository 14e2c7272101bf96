// This file describes one run of an operation.

package perf

import (
	"fmt"
	"slices"
)

// A kind is what a run is for.
type kind string

const (
	bandwidth kind = "bandwidth" // RDMA, pipelined
	latency   kind = "latency"   // RDMA, one at a time
	stream    kind = "stream"    // plain TCP, one way
	echo      kind = "echo"      // plain TCP, one at a time
)

// A run moves N messages over each connection, on all at the same time. Driver and peer
// derive their parts from it.
type run struct {
	Kind   kind   `json:"kind"`
	Op     Op     `json:"op"`
	Size   int    `json:"size"`   // bytes a message
	CRC    bool   `json:"crc"`    // which RDMA connection
	N      int    `json:"n"`      // messages of one connection
	Slots  int    `json:"slots"`  // places at each end, see offset
	Depth  int    `json:"depth"`  // messages under way at a time
	Batch  int    `json:"batch"`  // messages posted at once
	Signal int    `json:"signal"` // every which message is signaled; so is the last
	Seed   uint64 `json:"seed"`   // of the driver's pattern
}

// split returns what r is to each of n connections. They differ in their
// patterns, so that data of another one shows.
func (r *run) split(n int) []run {
	runs := make([]run, n)
	for i := range runs {
		runs[i] = *r
		runs[i].Seed += uint64(i) << 16 // above the number of slots
	}
	return runs
}

// peerSeed is the seed of the peer's pattern.
func (r *run) peerSeed() uint64 { return ^r.Seed }

// A message k uses slot k modulo Slots of the memory at both ends; Slots is 1
// in timed runs.
func (r *run) offset(k int) int { return k % r.Slots * r.Size }

// check refuses a run that memory of room bytes and queues of depth work
// requests cannot carry out.
func (r *run) check(room, depth int) error {
	switch {
	case !slices.Contains(Ops, r.Op) || r.Op.word() && r.Size != wordSize:
		return fmt.Errorf("there is no operation %q of %d bytes", r.Op, r.Size)
	case r.Size < 1 || r.Size > MaxSize || r.Slots < 1 || r.Slots > room/r.Size:
		return fmt.Errorf("%d messages of %d bytes do not fit the connection's %d bytes of memory", r.Slots, r.Size, room)
	case r.N < 1 || r.N > maxMessages:
		return fmt.Errorf("%d messages: expected 1 to %d in a run", r.N, maxMessages)
	case r.Depth < 1 || r.Depth > depth:
		return fmt.Errorf("%d messages in flight: the connection has a depth of %d", r.Depth, depth)
	case r.Batch < 1 || r.Batch > r.Depth || r.Signal < 1 || r.Signal > r.Depth-r.Batch+1:
		// Otherwise a batch could wait for a message that is not signaled.
		return fmt.Errorf("batches of %d and one signal in %d: expected a sum of at most one more than the depth of %d", r.Batch, r.Signal, r.Depth)
	}
	return nil
}

// inFlight bounds the bytes in flight, so that large messages need no deep queues.
const inFlight = 4 << 20

// depthFor is the number of messages of size bytes that are in flight, if queues have
// depth work requests.
func depthFor(size, depth int) int {
	return min(max(inFlight/size, portions), depth)
}

// portions is how many batches, and how many signaled messages, make up the depth by
// default.
const portions = 4

// portion is the batch size or the signaling interval for a depth. Want is the flag's
// value, 0 for the default. It is at most half of the depth, so that there are always
// messages in flight.
func portion(want, depth int) int {
	if want == 0 {
		return max(depth/portions, 1)
	}
	return min(want, max(depth/2, 1))
}

// signals reports whether message k is signaled.
func (r *run) signals(k int) bool { return (k+1)%r.Signal == 0 || k+1 == r.N }

// signaled is how many of the first k messages are signaled.
func (r *run) signaled(k int) int {
	n := k / r.Signal
	if k == r.N && k%r.Signal > 0 {
		n++
	}
	return n
}

// Sends and Immediate Data go by credits: the peer has window receives posted
// and answers once for each Depth messages, and for the last.
const (
	windowDepths = 4
	maxAcks      = 2 * windowDepths // more than are under way
)

func (r *run) window() int { return windowDepths * r.Depth }

// acks is the number of messages by which the peer answers a transfer.
func (r *run) acks() int {
	switch {
	case r.Op.receives():
		return (r.N + r.Depth - 1) / r.Depth
	case r.Op == Write:
		return 1
	}
	return 0
}

// ackAt is how many messages have come when the peer answers for the k-th time,
// from 0.
func (r *run) ackAt(k int) int {
	if r.Op.receives() {
		return min((k+1)*r.Depth, r.N)
	}
	return r.incoming()
}

// incoming is the number of messages that take a receive of the peer's in a
// transfer. One-sided operations go between a Send of no bytes that opens
// and one that ends the run: the peer's memory is its own before and after.
func (r *run) incoming() int {
	if r.Op.receives() {
		return r.N
	}
	return r.opening() + 1
}

// opening is the number of messages by which the driver opens a run.
func (r *run) opening() int {
	if r.Op.receives() {
		return 0
	}
	return 1
}
