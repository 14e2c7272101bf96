package mpa

// The batch of frames on their way out: what Append gathers and Flush writes.

import (
	"sync"

	"github.com/weft-rdma/weft/internal/pages"
)

const (
	// A batch is full at whichever of these comes first. While a write of much
	// is under way the peer has something to do: up to 1 MiB each doubling made
	// a stream faster. What is copied is to stay in the cache until then; a
	// vector may hold 1024 pieces on every system that counts them.
	batchOctets = 1 << 20
	batchCopied = 512 << 10
	batchPieces = 500
	batchFrames = 2048

	// copyLimit, in octets: a shorter piece of payload is copied, because a
	// piece of its own in the vector costs more. See BenchmarkCopyLimit.
	copyLimit = 4 << 10

	// An arena is arenaSize octets at first and grows to arenaLimit, which
	// takes all that a batch copies.
	arenaSize  = 16 << 10
	arenaLimit = batchCopied + maxFPDU
)

// A batch owns the frames appended and not yet wholly written: as the pieces
// of a vector, in order, some of them in its arena and some in memory of the
// ULP. It belongs to one goroutine at a time.
type batch struct {
	markers bool
	crc     bool
	refer   int // payload as long as this, in octets, is referred to and not copied; 0: none is

	*batchSpace      // nil while the batch is empty
	first       int  // pieces before it have been written
	merge       bool // the last piece ends where the arena does

	octets int // length of the batch
	copied int // octets of it that were copied or made here
	sent   int // octets of it written
	whole  int // frames of it wholly written

	pos  uint64 // stream position of the batch's first octet
	done uint64 // frames before this batch, all written
}

// A batchSpace is what a batch takes from the pool with its first frame and gives
// back when all is written: connections that send nothing share it.
type batchSpace struct {
	arena  []byte   // the octets that are copied or made here
	pieces [][]byte // what is to be written
	ends   []int    // for each frame, the offset in the batch of its end
}

var batchSpaces = sync.Pool{New: func() any { return new(batchSpace) }}

func (b *batch) appended() uint64 { return b.done + uint64(b.frames()) }
func (b *batch) written() uint64  { return b.done + uint64(b.whole) }
func (b *batch) empty() bool      { return b.batchSpace == nil }

func (b *batch) frames() int {
	if b.empty() {
		return 0
	}
	return len(b.ends)
}

func (b *batch) room() bool {
	return b.empty() || b.octets < batchOctets && b.copied < batchCopied &&
		len(b.pieces) < batchPieces && len(b.ends) < batchFrames
}

// add adds the frame of one ULPDU, of n octets in header and payload. refer lets
// it refer to payload. A fault in payload leaves a part of the frame, which truncate
// drops.
//
// Each writer begins with a small stack. From here to the CRC it is short enough not to
// grow, which would take longer than the rest.
func (b *batch) add(n int, header []byte, payload [][]byte, refer bool) {
	if b.empty() {
		b.batchSpace = batchSpaces.Get().(*batchSpace)
	}
	pos := b.pos + uint64(b.octets)
	size := fpduSize(pos, n, b.markers)
	if refer {
		b.putReferring(n, header, payload)
	} else {
		putFPDU(b.take(size), pos, n, header, payload, b.markers, b.crc)
	}
	b.octets += size
	b.ends = append(b.ends, b.octets)
}

// refers reports whether a frame of a ULPDU of n octets is to refer to payload.
// Markers cut payload into pieces too short for that, so with them all of it is copied.
func (b *batch) refers(n int) bool { return b.refer > 0 && n >= b.refer }

func (b *batch) putReferring(n int, header []byte, payload [][]byte) {
	start := b.take(lengthSize + len(header))
	putStart(start, n, header)
	sum := b.digest(0, start)
	for _, p := range payload {
		switch {
		case len(p) >= b.refer:
			b.pieces = append(b.pieces, p)
			b.merge = false
			sum = b.digest(sum, p)
		case len(p) > 0:
			sum = b.copy(sum, b.take(len(p)), p)
		}
	}
	end := b.take(padding(n) + crcSize)
	pad := end[:padding(n)]
	clear(pad)
	storeCRC(end[len(pad):], b.digest(sum, pad))
}

// digest adds p to a CRC, if there is one.
func (b *batch) digest(sum uint32, p []byte) uint32 {
	if !b.crc {
		return 0
	}
	return updateCRC(sum, p)
}

// copy copies p to dst and adds it to a CRC, if there is one. The CRC is of what
// will be sent.
func (b *batch) copy(sum uint32, dst, p []byte) uint32 {
	if !b.crc {
		copy(dst, p)
		return 0
	}
	return copyCRC(sum, dst, p)
}

// take extends the arena, and the batch, by n octets and returns them, to be
// filled.
func (b *batch) take(n int) []byte {
	b.copied += n
	at := len(b.arena)
	if cap(b.arena)-at < n {
		// What is in the old arena stays there until it is written.
		b.arena = make([]byte, 0, max(n, arenaSize, min(2*cap(b.arena), arenaLimit)))
		at = 0
		b.merge = false
	}
	b.arena = b.arena[:at+n]
	if b.merge {
		last := &b.pieces[len(b.pieces)-1]
		*last = (*last)[:len(*last)+n]
	} else {
		b.pieces = append(b.pieces, b.arena[at:])
		b.merge = true
	}
	return b.arena[at:]
}

// wrote tells that the next n octets have been written.
func (b *batch) wrote(n int) {
	b.sent += n
	if b.sent == b.octets {
		b.reset()
		return
	}
	for n > 0 {
		p := &b.pieces[b.first]
		if n < len(*p) {
			*p = (*p)[n:]
			break
		}
		n -= len(*p)
		*p = nil
		b.first++
	}
	for b.ends[b.whole] <= b.sent {
		b.whole++
	}
}

// within reports that a frame has been written in part.
func (b *batch) within() bool { return b.sent > b.start(b.whole) }

// upTo is the number of octets to be written next: n or more, up to the end of
// a frame, or all there is.
func (b *batch) upTo(n int) int {
	for _, end := range b.ends[b.whole:] {
		if end-b.sent >= n {
			return end - b.sent
		}
	}
	return b.octets - b.sent
}

// reset begins a new batch after the last one, which has been written.
func (b *batch) reset() {
	b.pos += uint64(b.octets)
	b.done += uint64(len(b.ends))
	clear(b.pieces) // do not keep the ULP's memory
	b.arena, b.pieces, b.ends = b.arena[:0], b.pieces[:0], b.ends[:0]
	batchSpaces.Put(b.batchSpace)
	b.batchSpace = nil
	b.first, b.octets, b.copied, b.sent, b.whole, b.merge = 0, 0, 0, 0, 0, false
}

// truncate drops the frames from number n on, counted as appended counts, that
// have not begun to be written, and the part of a frame that a fault has left. The next frame takes the stream position of
// the first one dropped.
func (b *batch) truncate(n uint64) {
	if b.empty() {
		return
	}
	keep := 0
	if n > b.done {
		keep = int(min(n-b.done, uint64(len(b.ends))))
	}
	keep = max(keep, b.whole)
	if b.start(keep) < b.sent {
		keep++ // the frame that is written in part
	}
	b.ends = b.ends[:keep]
	b.octets = b.start(keep)
	b.trim()
}

// trim drops the pieces behind the last frame.
func (b *batch) trim() {
	left, i := b.octets-b.sent, b.first
	for ; left > 0; i++ {
		p := &b.pieces[i]
		*p = (*p)[:min(len(*p), left)]
		left -= len(*p)
	}
	clear(b.pieces[i:])
	b.pieces, b.merge = b.pieces[:i], false
	if b.sent == b.octets {
		b.reset()
	}
}

// unreadable finds the first frame not yet written whose payload cannot be read; nil if
// there is none.
func (b *batch) unreadable() *MemoryError {
	at := b.sent
	for _, p := range b.pieces[b.first:] {
		if n, err := pages.Readable(p); err != nil {
			i := b.whole
			for b.ends[i] <= at+n {
				i++
			}
			return &MemoryError{Frame: b.done + uint64(i), Err: err}
		}
		at += len(p)
	}
	return nil
}

// start is the offset in the batch of frame i, or of its end.
func (b *batch) start(i int) int {
	if i == 0 {
		return 0
	}
	return b.ends[i-1]
}
