package main

import (
	"bytes"
	"sync/atomic"
)

// This file is how two engines find out about each other. Immediate data and atomics
// are RFC 7306's, which a peer that does not know them ends the stream for; RFC 7306
// leaves it to the upper layer to agree on them. So the engine adds a mark behind the
// private data of its request for a connection, and one that finds the mark takes it off
// and answers with the same. A program at another implementation sees the mark as eight
// more octets of private data; WEFT_PLAIN leaves it out.

// mark is what private data ends with.
var mark = []byte("\xffweft\x00\x00\x01")

// mostData is how much private data rdma_cm can give to a program.
const mostData = 255

// marked is private data with the mark, if there is room for it.
func marked(data []byte) []byte {
	if options.plain || len(data)+len(mark) > mostData {
		return data
	}
	return append(bytes.Clone(data), mark...)
}

// unmarked is private data without the mark, and whether it had one.
func unmarked(data []byte) ([]byte, bool) {
	rest, ok := bytes.CutSuffix(data, mark)
	return rest, ok && !options.plain
}

// extend has the queue pair take requests for immediate data and atomics. It is for one
// that has no stream yet, or whose peer is known not to have sent anything.
func (q *queuePair) extend() {
	q.receives.single = true
	atomic.StoreUint32((*uint32)(&q.sends.queue.extensions), 1)
}
