// Physical Buffer Lists: memory registered in several buffers of one size.

package memory

import (
	"fmt"
	"slices"
	"unsafe"
)

// Sizes of the entries of a BufferList, in octets (Verbs §9.2.1.2). A page size is
// any power of two from MinPageSize to MaxPageSize, a block size any number from
// MinBlockSize to MaxBlockSize.
const (
	MinPageSize  = 4 << 10
	MaxPageSize  = 1 << 30
	MinBlockSize = 64
	MaxBlockSize = 1 << 30

	// DefaultMaxEntries is the limit of a list's entries where Config gives none.
	DefaultMaxEntries = 1 << 16
)

// A BufferList is a Physical Buffer List (Verbs §7.6.2): buffers of equal size that form
// a region one after the other. The region has Length octets, from octet FBO (First Byte
// Offset) of the first buffer on.
//
// Config.Block decides which kind it is. In Page Mode it is a Page List: Size is a power
// of two from MinPageSize to MaxPageSize, and the address of each buffer is a multiple of
// Size ([Pages] makes such buffers). In Block Mode it is a Block List: Size is any number
// from MinBlockSize to MaxBlockSize, and buffers may have any address.
type BufferList struct {
	Buffers [][]byte // each of Size octets; a buffer may occur more than once
	Size    int      // octets
	FBO     int      // octets, less than Size
	Length  uint64   // octets of the region, 1 to len(Buffers)*Size - FBO
}

// Pages allocates n buffers for a Page List: of size octets each, at addresses that are
// multiples of size, a power of two.
func Pages(n, size int) [][]byte {
	b := make([]byte, n*size+size-1)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (size - 1)
	pages := make([][]byte, n)
	for i := range pages {
		pages[i] = b[skip+i*size:][:size]
	}
	return pages
}

// check makes the checks of Verbs §7.6.2.1 and §7.6.2.2 that do not depend on the tagged
// offsets of the list.
func (l *BufferList) check(block bool) error {
	switch {
	case block && (l.Size < MinBlockSize || l.Size > MaxBlockSize):
		return fmt.Errorf("%w: blocks of %d octets, expected %d to %d", ErrBufferSize, l.Size, MinBlockSize, MaxBlockSize)
	case !block && (l.Size < MinPageSize || l.Size > MaxPageSize || l.Size&(l.Size-1) != 0):
		return fmt.Errorf("%w: pages of %d octets, expected a power of two from %d to %d", ErrBufferSize, l.Size, MinPageSize, MaxPageSize)
	case l.FBO < 0 || l.FBO >= l.Size:
		return fmt.Errorf("%w: %d is not within the first buffer of %d octets", ErrFBO, l.FBO, l.Size)
	}
	for i, b := range l.Buffers {
		if len(b) != l.Size {
			return fmt.Errorf("%w %d: it has %d octets, not %d", ErrBufferEntry, i, len(b), l.Size)
		}
		if !block && uintptr(unsafe.Pointer(unsafe.SliceData(b)))&uintptr(l.Size-1) != 0 {
			return fmt.Errorf("%w %d: its address is not a multiple of %d", ErrBufferEntry, i, l.Size)
		}
	}
	if have := uint64(len(l.Buffers))*uint64(l.Size) - uint64(l.FBO); l.Length == 0 || len(l.Buffers) == 0 || l.Length > have {
		return fmt.Errorf("%w: %d octets: %d buffers of %d octets, from octet %d on, are to hold at least 1", ErrLength,
			l.Length, len(l.Buffers), l.Size, l.FBO)
	}
	return nil
}

// An extent is the memory of a registration: length octets, of which octet n is
// octet start+n of buf or, if buf is nil, of the equal buffers in list.
type extent struct {
	buf    []byte
	length uint64
	start  uint64
	list   [][]byte
	size   uint64 // octets of each buffer; 1 if it was not registered as a list, for any VA
	fbo    uint64 // as in BufferList
}

// extent returns the memory of a list that has been checked. It is in one piece if the
// buffers follow each other without gaps in one piece of the consumer's memory.
func (l *BufferList) extent() extent {
	e := extent{length: l.Length, start: uint64(l.FBO), size: uint64(l.Size), fbo: uint64(l.FBO)}
	// A copy, because the consumer may change its list.
	e.list = slices.Clone(l.Buffers[:(e.start+e.length-1)/e.size+1])
	if whole, n := e.join(0); n == len(e.list) {
		e.buf, e.list, e.start = whole[e.start:][:e.length:e.length], nil, 0
	}
	return e
}

// extentOf returns the memory of a plain buffer.
func extentOf(buf []byte) extent { return extent{buf: buf, length: uint64(len(buf)), size: 1} }

// part returns the memory of n octets from off on.
func (e *extent) part(off, n uint64) extent {
	p := *e
	p.start, p.length = e.start+off, n
	if e.buf != nil {
		p.start, p.buf = 0, e.buf[off:off+n:off+n]
	}
	return p
}

// join returns the memory of buffer i and those that follow it without a gap in the same
// piece of memory, and their number.
func (e *extent) join(i int) (whole []byte, n int) {
	whole = e.list[i]
	for n = 1; i+n < len(e.list); n++ {
		if !adjacent(whole, e.list[i+n]) {
			break
		}
		whole = whole[:len(whole)+len(e.list[i+n])]
	}
	return whole, n
}

// adjacent reports whether next, which is not empty, follows b in the same piece of
// memory.
func adjacent(b, next []byte) bool {
	return cap(b)-len(b) >= len(next) && unsafe.SliceData(b[len(b):len(b)+1]) == unsafe.SliceData(next)
}

// scattered appends the memory of n octets from off on of a list, in as few pieces as
// possible.
func (e *extent) scattered(dst [][]byte, off, n uint64) [][]byte {
	off += e.start
	i := int(off / e.size)
	off %= e.size
	for n > 0 {
		b := e.list[i]
		// The next buffers, too, as far as they are needed and adjacent.
		for i++; uint64(len(b)) < off+n; i++ {
			if !adjacent(b, e.list[i]) {
				break
			}
			b = b[:len(b)+len(e.list[i])]
		}
		end := min(off+n, uint64(len(b)))
		dst = append(dst, b[off:end:end])
		n -= end - off
		off = 0
	}
	return dst
}

// pieces returns all of the memory.
func (e *extent) pieces() [][]byte {
	if e.buf != nil {
		return [][]byte{e.buf}
	}
	return e.scattered(nil, 0, e.length)
}

// contiguous returns the memory of n octets from off on if it is in one piece, else nil.
func (e *extent) contiguous(off, n uint64) []byte {
	if e.buf != nil {
		return e.buf[off : off+n : off+n]
	}
	off += e.start
	b := e.list[off/e.size]
	if off %= e.size; n > e.size-off {
		return nil
	}
	return b[off : off+n : off+n]
}
