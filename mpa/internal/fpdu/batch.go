// The batch of frames on their way out, which are written together.

package fpdu

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

	// CopyLimit, in octets: a shorter piece of payload is copied, because a
	// piece of its own in the vector costs more. See BenchmarkCopyLimit.
	CopyLimit = 4 << 10

	// An arena is arenaSize octets at first and grows to arenaLimit, which
	// takes all that a batch copies.
	arenaSize  = 16 << 10
	arenaLimit = batchCopied + MaxSize
)

// A Batch owns the frames added and not yet wholly written: as the pieces
// of a vector, in order, some of them in its arena and some in memory of the
// ULP. It belongs to one goroutine at a time.
type Batch struct {
	Markers bool // frames have markers
	CRC     bool // and CRCs; the fields are zero otherwise
	Refer   int  // payload as long as this, in octets, is referred to and not copied; 0: none is

	*batchSpace      // nil while the batch is empty
	first       int  // pieces before it have been written
	merge       bool // the last piece ends where the arena does

	octets int // length of the batch
	copied int // octets of it that were copied or made here
	sent   int // octets of it written
	whole  int // frames of it wholly written

	Pos  uint64 // stream position of the batch's first octet
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

// Appended counts the frames added since the stream began, and Written those that have
// been written wholly.
func (b *Batch) Appended() uint64 { return b.done + uint64(b.frames()) }
func (b *Batch) Written() uint64  { return b.done + uint64(b.whole) }

// Sent counts the octets of the stream that have been written.
func (b *Batch) Sent() uint64 { return b.Pos + uint64(b.sent) }

// Empty reports that nothing waits to be written.
func (b *Batch) Empty() bool { return b.batchSpace == nil }

// Pending returns what waits, in order; there is something.
func (b *Batch) Pending() [][]byte { return b.pieces[b.first:] }

func (b *Batch) frames() int {
	if b.Empty() {
		return 0
	}
	return len(b.ends)
}

// Room reports that the batch is not full.
func (b *Batch) Room() bool {
	return b.Empty() || b.octets < batchOctets && b.copied < batchCopied &&
		len(b.pieces) < batchPieces && len(b.ends) < batchFrames
}

// Add adds the frame of one ULPDU, of n octets in header and payload. refer lets
// it refer to payload. A fault in payload leaves a part of the frame, which Truncate
// drops.
//
// Each writer begins with a small stack. From here to the CRC it is short enough not to
// grow, which would take longer than the rest.
func (b *Batch) Add(n int, header []byte, payload [][]byte, refer bool) {
	if b.Empty() {
		b.batchSpace = batchSpaces.Get().(*batchSpace)
	}
	pos := b.Pos + uint64(b.octets)
	size := Size(pos, n, b.Markers)
	if refer {
		b.putReferring(n, header, payload)
	} else {
		put(b.extend(size), pos, n, header, payload, b.Markers, b.CRC)
	}
	b.octets += size
	b.ends = append(b.ends, b.octets)
}

// AddRun adds the frames of several short ULPDUs: each of the next size octets of headers, and
// the next payload, which is copied. After a fault in payload Truncate drops all of them.
//
// All are copied first. The digest of what has just been written in pieces would have to wait
// for it.
func (b *Batch) AddRun(headers []byte, size int, payloads [][]byte) {
	if b.Markers {
		for i := range payloads {
			b.Add(size+len(payloads[i]), headers[i*size:][:size], payloads[i:i+1], false)
		}
		return
	}
	if b.Empty() {
		b.batchSpace = batchSpaces.Get().(*batchSpace)
	}
	total := 0
	for _, p := range payloads {
		total += rawSize(size + len(p))
	}
	frames := b.extend(total)
	for i, rest := 0, frames; i < len(payloads); i++ {
		n := size + len(payloads[i])
		f := rest[:rawSize(n)]
		rest = rest[len(f):]
		at := putStart(f, n, headers[i*size:][:size])
		at += copy(f[at:], payloads[i])
		for end := len(f) - CRCSize; at < end; at++ {
			f[at] = 0
		}
	}
	for _, p := range payloads {
		f := frames[:rawSize(size+len(p))]
		frames = frames[len(f):]
		putCRC(f, b.CRC)
		b.octets += len(f)
		b.ends = append(b.ends, b.octets)
	}
}

// Refers reports whether a frame of a ULPDU of n octets is to refer to payload.
// Markers cut payload into pieces too short for that, so with them all of it is copied.
func (b *Batch) Refers(n int) bool { return b.Refer > 0 && n >= b.Refer }

func (b *Batch) putReferring(n int, header []byte, payload [][]byte) {
	start := b.extend(LengthSize + len(header))
	putStart(start, n, header)
	sum := b.digest(0, start)
	for _, p := range payload {
		switch {
		case len(p) >= b.Refer:
			b.pieces = append(b.pieces, p)
			b.merge = false
			sum = b.digest(sum, p)
		case len(p) > 0:
			sum = b.copy(sum, b.extend(len(p)), p)
		}
	}
	end := b.extend(Padding(n) + CRCSize)
	pad := end[:Padding(n)]
	clear(pad)
	storeCRC(end[len(pad):], b.digest(sum, pad))
}

// digest adds p to a CRC, if there is one.
func (b *Batch) digest(sum uint32, p []byte) uint32 {
	if !b.CRC {
		return 0
	}
	return updateCRC(sum, p)
}

// copy copies p to dst and adds it to a CRC, if there is one. The CRC is of what
// will be sent.
func (b *Batch) copy(sum uint32, dst, p []byte) uint32 {
	if !b.CRC {
		copy(dst, p)
		return 0
	}
	return copyCRC(sum, dst, p)
}

// extend makes the arena, and the batch, longer by n octets, which it returns to be
// filled.
func (b *Batch) extend(n int) []byte {
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

// Wrote records that the next n octets have been written.
func (b *Batch) Wrote(n int) {
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

// Within reports that a frame has been written in part.
func (b *Batch) Within() bool { return b.sent > b.start(b.whole) }

// UpTo is the number of octets to be written next: n or more, up to the end of
// a frame, or all there is.
func (b *Batch) UpTo(n int) int {
	for _, end := range b.ends[b.whole:] {
		if end-b.sent >= n {
			return end - b.sent
		}
	}
	return b.octets - b.sent
}

// reset begins a new batch after the last one, which has been written.
func (b *Batch) reset() {
	b.Pos += uint64(b.octets)
	b.done += uint64(len(b.ends))
	clear(b.pieces) // do not keep the ULP's memory
	b.arena, b.pieces, b.ends = b.arena[:0], b.pieces[:0], b.ends[:0]
	batchSpaces.Put(b.batchSpace)
	b.batchSpace = nil
	b.first, b.octets, b.copied, b.sent, b.whole, b.merge = 0, 0, 0, 0, 0, false
}

// Truncate drops the frames from number n on, counted as Appended counts, that
// have not begun to be written, and the part of a frame that a fault has left. The next frame takes the stream position of
// the first one dropped.
func (b *Batch) Truncate(n uint64) {
	if b.Empty() {
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
func (b *Batch) trim() {
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

// Unreadable finds the first frame not yet written whose payload cannot be read, counted
// from 0, and says why; the error is nil if there is none.
func (b *Batch) Unreadable() (frame uint64, err error) {
	at := b.sent
	for _, p := range b.pieces[b.first:] {
		if n, err := pages.Readable(p); err != nil {
			i := b.whole
			for b.ends[i] <= at+n {
				i++
			}
			return b.done + uint64(i), err
		}
		at += len(p)
	}
	return 0, nil
}

// start is the offset in the batch of frame i, or of its end.
func (b *Batch) start(i int) int {
	if i == 0 {
		return 0
	}
	return b.ends[i-1]
}
