// This file goes through an RPC message item by item, for bindings: whole, with
// items that are elsewhere, or with the pads of an RDMA_MSGP.

package rpcrdma

import "encoding/binary"

// A Cursor goes through the XDR stream of an RPC message. A [Binding] moves it
// and so says where the items are; what happens at each is the Cursor's: it
// knows which were left out of the stream, and where there are pads.
//
// The first error sticks: what is read after it is zero, and [Cursor.Err] tells
// it. Only counts of zero, and loops that end, are to be relied upon then.
type Cursor struct {
	b   []byte
	pos int // in b
	add int // octets of the unreduced stream before pos that are not in b, less the pads

	err error

	// What is not in the stream: the chunks for its eligible items.
	chunks []int
	next   int // of chunks

	padding *Padding
	pads    []Run

	items []Item
}

// An Item is a variable-length opaque or string item of a message.
type Item struct {
	Run           // in the unreduced stream, from the first octet of its data and without roundup
	Eligible bool // may be reduced
	At       int  // where its data are in the stream walked, or are missing
	Chunk    int  // which chunk holds it; -1: it is in the stream
}

// Inline in the chunks of [Cursor.Reduced] is the length of one whose item is
// in the stream after all.
const Inline = -1

// Whole makes c walk b, a whole message, from the octet at on, which is where
// its arguments or results begin.
func (c *Cursor) Whole(b []byte, at int) { c.start(b, at) }

// Reduced makes c walk b, a message whose eligible items are in chunks: the
// first in the first chunk and so on, as far as there are chunks. Chunks holds
// their lengths, with roundup or without; each has to hold what the item's count
// word says. [Inline] says that the item is in the stream.
func (c *Cursor) Reduced(b []byte, at int, chunks []int) {
	c.start(b, at)
	c.chunks = chunks
}

// Padded makes c walk b, what followed the header of an RDMA_MSGP.
func (c *Cursor) Padded(b []byte, at int, p *Padding) {
	c.start(b, at)
	c.padding = p
}

func (c *Cursor) start(b []byte, at int) {
	*c = Cursor{b: b, items: c.items[:0], pads: c.pads[:0]}
	if at < 0 || at > len(b) {
		c.Fail("begins at octet %d of %d", at, len(b))
		return
	}
	c.pos = at
}

// Items are the items visited. They belong to c.
func (c *Cursor) Items() []Item { return c.items }

// Pads are where the pads of an RDMA_MSGP are in the stream walked. They belong
// to c.
func (c *Cursor) Pads() []Run { return c.pads }

// Chunks is how many of the chunks have met their item.
func (c *Cursor) Chunks() int { return c.next }

// Pos is the position of the next octet in the unreduced stream.
func (c *Cursor) Pos() int { return c.pos + c.add }

// Left is how many octets of the stream walked are left.
func (c *Cursor) Left() int { return len(c.b) - c.pos }

// Err is the first error, an [*Error] with [FaultStream], or nil.
func (c *Cursor) Err() error { return c.err }

// Fail makes the Cursor fail, unless it has failed before.
func (c *Cursor) Fail(format string, args ...any) {
	if c.err == nil {
		c.err = faultf(FaultStream, format, args...)
	}
	c.pos = len(c.b)
}

// End returns the first error, or that octets are left over.
func (c *Cursor) End() error {
	if n := c.Left(); n != 0 {
		c.Fail("%d octets are left over", n)
	}
	return c.err
}

func (c *Cursor) take(n int) []byte {
	if n < 0 || n > c.Left() {
		c.Fail("ends at octet %d, where %d more are expected", c.Pos(), n)
		return nil
	}
	b := c.b[c.pos : c.pos+n]
	c.pos += n
	return b
}

// Uint32 takes an unsigned integer or an enumeration.
func (c *Cursor) Uint32() uint32 {
	if b := c.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// Uint64 takes an unsigned hyper integer.
func (c *Cursor) Uint64() uint64 {
	if b := c.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// Bool takes a boolean, or the word that says that optional data follow.
func (c *Cursor) Bool() bool {
	v := c.Uint32()
	if v > 1 {
		c.Fail("%d at octet %d, want a boolean", v, c.Pos()-4)
		return false
	}
	return v == 1
}

// Skip passes over n octets of data of fixed length, and their roundup.
func (c *Cursor) Skip(n int) {
	if n < 0 || n > c.Left() {
		n = c.Left() + 1
	}
	c.take(n + Pad(uint64(n)))
}

// Rest passes over all that is left, without looking at it: what the binding
// cannot know. No item is in it, so that a chunk for one is an error.
func (c *Cursor) Rest() { c.pos = len(c.b) }

// Count takes the count word of an array of at most limit elements, each of
// size octets at least, and makes sure that so many can follow.
func (c *Cursor) Count(limit uint32, size int) int {
	n := c.Uint32()
	if n > limit || uint64(n)*uint64(max(size, 4)) > uint64(c.Left()) {
		c.Fail("%d elements counted at octet %d, of which %d are allowed and %d octets are left", n, c.Pos()-4, limit, c.Left())
		return 0
	}
	return int(n)
}

// Opaque passes over an opaque or string item of variable length, of at most
// limit octets, and returns its data.
func (c *Cursor) Opaque(limit uint32) []byte {
	n, ok := c.length(limit)
	if !ok {
		return nil
	}
	return c.inline(n, false)
}

// Eligible passes over an item that may be reduced, of at most limit octets. It
// returns the count word; the data may be elsewhere.
func (c *Cursor) Eligible(limit uint32) uint32 {
	n, ok := c.length(limit)
	if !ok {
		return 0
	}
	if c.next == len(c.chunks) {
		c.inline(n, true)
		return n
	}
	chunk := c.next
	c.next++
	length := c.chunks[chunk]
	if length == Inline {
		c.inline(n, true)
		return n
	}
	if !Holds(uint64(length), n) {
		c.Fail("item of %d octets at %d, whose chunk holds %d", n, c.Pos(), length)
		return 0
	}
	c.items = append(c.items, Item{Run: Run{c.Pos(), int(n)}, Eligible: true, At: c.pos, Chunk: chunk})
	c.add += int(n) + Pad(uint64(n))
	return n
}

func (c *Cursor) length(limit uint32) (uint32, bool) {
	n := c.Uint32()
	if n > limit || n > maxItem {
		c.Fail("item of %d octets at %d, of which %d are allowed", n, c.Pos(), limit)
	}
	return n, c.err == nil
}

// maxItem keeps positions within an int where that has 32 bits.
const maxItem = 1 << 30

func (c *Cursor) inline(n uint32, eligible bool) []byte {
	if c.padding != nil {
		if pad := c.padding.Pad(c.pos, n); pad > 0 {
			if c.take(pad) == nil {
				return nil
			}
			c.pads = append(c.pads, Run{c.pos - pad, pad})
			c.add -= pad
		}
	}
	item := Item{Run: Run{c.Pos(), int(n)}, Eligible: eligible, At: c.pos, Chunk: -1}
	b := c.take(int(n) + Pad(uint64(n)))
	if b == nil {
		return nil
	}
	c.items = append(c.items, item)
	return b[:n]
}
