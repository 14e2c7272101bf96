// The read-ahead buffer of a reader: taken from a pool when octets are due, given
// back when nothing of it is used and the wait for more may be long. So a stream
// that is idle has none.

package mpa

import (
	"math/bits"
	"sync"
)

const (
	// The read-ahead buffer, in octets: what it starts with, and the most it
	// grows to by default. It grows when reads fill it, so a peer that does
	// not send does not make us keep memory.
	firstReadBuffer   = 16 << 10
	defaultReadBuffer = 512 << 10

	// leastReadLimit is a buffer that has room for the longest frame.
	leastReadLimit = 64 << 10
)

// readBuffers has a pool for each size: firstReadBuffer shifted by the index.
var readBuffers [12]sync.Pool

// ULPDUs are handed up in one call until there are mostInRun, or octetsInRun octets: they stay in
// the cache of the first level from the CRC to the copy.
const (
	mostInRun   = 32
	octetsInRun = 24 << 10
)

// A readBuffer is one of them, with room for the ULPDUs in it that are handed up together.
type readBuffer struct {
	octets []byte
	size   int // index into readBuffers
	run    [mostInRun][]byte
}

func takeReadBuffer(size int) *readBuffer {
	if b, ok := readBuffers[size].Get().(*readBuffer); ok {
		return b
	}
	return &readBuffer{octets: make([]byte, firstReadBuffer<<size), size: size}
}

func (b *readBuffer) release() { readBuffers[b.size].Put(b) }

// A readAhead is the octets that were read and not yet handed up.
type readAhead struct {
	buf        []byte // buf[start:end] is what was read; nil while at rest
	start, end int

	buffer *readBuffer // that buf is of
	size   int         // of the buffer to be taken next
	limit  int         // of size
	most   int         // the largest end since the buffer was taken
	filled bool        // the last read filled the buffer

	placement *placement // the last one, kept for the next
}

// newReadAhead begins with early, and keeps no more than limit octets.
func newReadAhead(early []byte, limit int) readAhead {
	limit = max(limit, leastReadLimit) / firstReadBuffer
	return readAhead{buf: early, end: len(early), limit: min(bits.Len(uint(limit)), len(readBuffers)) - 1}
}

// unread is what was read and not handed up.
func (a *readAhead) unread() []byte { return a.buf[a.start:a.end] }

// room is where to read to, behind what is there already: never nothing.
func (a *readAhead) room() []byte {
	switch {
	case a.start == a.end:
		a.start, a.end = 0, 0
		if a.buffer == nil {
			a.buf = nil // it was early
		}
	case a.start > 0:
		a.end = copy(a.buf, a.unread())
		a.start = 0
	}
	if a.filled || a.end == len(a.buf) {
		a.enlarge()
	}
	return a.buf[a.end:]
}

// enlarge takes a buffer, or a larger one. What waits in it is less than a frame,
// for which the largest buffer always has room.
func (a *readAhead) enlarge() {
	old := a.buffer
	switch {
	case old != nil && a.size == a.limit:
		return
	case old != nil:
		a.size++
	}
	for firstReadBuffer<<a.size <= a.end {
		a.size++
	}
	a.buffer = takeReadBuffer(a.size)
	copy(a.buffer.octets, a.buf[:a.end])
	a.buf, a.most, a.filled = a.buffer.octets, a.end, false
	if old != nil {
		old.release()
	}
}

// grown notes that the first n octets of the room have been read.
func (a *readAhead) grown(n int) {
	a.end += n
	a.filled = n > 0 && a.end == len(a.buf)
	a.most = max(a.most, a.end)
}

// rest gives the buffer back, if nothing is in it. The next one is larger or
// smaller, as this one was used.
func (a *readAhead) rest() {
	if a.start < a.end || a.buffer == nil {
		return
	}
	switch {
	case a.filled && a.size < a.limit:
		a.size++
	case a.size > 0 && a.most < len(a.buf)/4:
		a.size--
	}
	if a.placement != nil {
		a.placement.free()
		a.placement = nil
	}
	a.buffer.release()
	a.buffer, a.buf, a.start, a.end, a.filled = nil, nil, 0, 0, false
}
