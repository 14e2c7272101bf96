// This file walks an RPC message item by item for bindings: a whole message, one
// with items in chunks, or one with the pads of an RDMA_MSGP.

package payload

import (
	"encoding/binary"
	"math"

	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// A Cursor moves over the XDR stream of an RPC message. A [Binding] moves it and so says
// where the items are. The Cursor knows which items were moved out of the stream into
// chunks, and where there are pads.
//
// The first error sticks: [Cursor.Err] returns it, and everything read after it is zero, so
// that loops over counts end.
type Cursor struct {
	// EligibleOnly has Items leave out what is not eligible, of which a peer's
	// message may have any number.
	EligibleOnly bool

	b     []byte   // the piece of the stream that pos is in
	pos   int      // in b
	base  int      // octets of the stream walked before b
	rest  [][]byte // the pieces behind b
	after int      // octets in rest
	add   int      // octets of the unreduced stream before pos that are not in the one walked, less the pads

	err error

	// What is not in the stream: the chunks for its eligible items.
	chunks []int
	next   int // of chunks

	padding *wire.Padding
	pads    []Run

	items []Item
	word  [8]byte // a word that lies in two pieces
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

// maxStream is the most octets that an unreduced stream may have: positions fit
// an int everywhere, and their 32 bits on the wire.
const maxStream = math.MaxInt32

// Whole makes c walk b, a whole message, from the octet at on, which is where
// its arguments or results begin.
func (c *Cursor) Whole(b []byte, at int) { c.start(b, nil, at) }

// WholePieces makes c walk a whole message that lies in pieces, cut anywhere.
// It refers to pieces and does not copy what they hold, but for words, and for
// items that [Cursor.Opaque] returns, that are in several of them.
func (c *Cursor) WholePieces(pieces [][]byte, at int) {
	var first []byte
	if len(pieces) > 0 {
		first, pieces = pieces[0], pieces[1:]
	}
	c.start(first, pieces, at)
}

// Reduced makes c walk b, a message whose eligible items are in chunks: the
// first in the first chunk and so on, as far as there are chunks. Chunks holds
// their lengths, with roundup or without; each has to hold what the item's count
// word says. [Inline] says that the item is in the stream.
//
// An item of no octets uses up a chunk of none, as our responder has it, and
// passes by one that holds octets: that is the next item's, as Linux's server
// has it.
func (c *Cursor) Reduced(b []byte, at int, chunks []int) {
	c.start(b, nil, at)
	c.chunks = chunks
}

// Padded makes c walk b, what followed the header of an RDMA_MSGP.
func (c *Cursor) Padded(b []byte, at int, p *wire.Padding) {
	c.start(b, nil, at)
	c.padding = p
}

// FindPads returns the pads in stream, which followed the header of an RDMA_MSGP
// and has its arguments or results from the octet at on; walk goes through them.
// It tries the reading "at or above" the threshold first, and "exceeds" if that
// does not use up the message exactly. What it returns belongs to c.
func FindPads(c *Cursor, p wire.Padding, stream []byte, at int, walk func(*Cursor) error) (pads []Run, err error) {
	for _, p.Above = range []bool{false, true} {
		c.Padded(stream, at, &p)
		if err = walk(c); err == nil {
			return c.Pads(), nil
		}
	}
	return nil, err
}

func (c *Cursor) start(b []byte, rest [][]byte, at int) {
	*c = Cursor{EligibleOnly: c.EligibleOnly, b: b, rest: rest, items: c.items[:0], pads: c.pads[:0]}
	total := uint64(len(b))
	for _, piece := range rest {
		total += uint64(len(piece))
	}
	if total > maxStream {
		c.b, c.rest = nil, nil
		c.Fail("stream of %d octets, expected at most %d", total, maxStream)
		return
	}
	c.after = int(total) - len(b)
	if at < 0 || at > int(total) {
		c.Fail("begins at octet %d of %d", at, total)
		return
	}
	c.pass(at)
}

// Items are the items visited. They belong to c.
func (c *Cursor) Items() []Item { return c.items }

// Pads are where the pads of an RDMA_MSGP are in the stream walked. They belong
// to c.
func (c *Cursor) Pads() []Run { return c.pads }

// Chunks is how many of the chunks have met their item.
func (c *Cursor) Chunks() int { return c.next }

// at is the next octet in the stream walked.
func (c *Cursor) at() int { return c.base + c.pos }

// Pos is the position of the next octet in the unreduced stream.
func (c *Cursor) Pos() int { return c.at() + c.add }

// Left is how many octets of the stream walked are left.
func (c *Cursor) Left() int { return len(c.b) - c.pos + c.after }

// Err is the first error, an [*wire.Error] with [wire.FaultStream], or nil.
func (c *Cursor) Err() error { return c.err }

// Fail makes the Cursor fail, unless it has failed before.
func (c *Cursor) Fail(format string, args ...any) {
	if c.err == nil {
		c.err = wire.Errorf(wire.FaultStream, format, args...)
	}
	c.pass(c.Left())
}

// End returns the first error, or that octets are left over.
func (c *Cursor) End() error {
	if n := c.Left(); n != 0 {
		c.Fail("%d octets are left over", n)
	}
	return c.err
}

// has reports whether n more octets are left, and fails if not.
func (c *Cursor) has(n int) bool {
	if n < 0 || n > c.Left() {
		c.Fail("ends at octet %d, where %d more are expected", c.Pos()+c.Left(), n)
		return false
	}
	return true
}

// pass goes n octets on, which are left.
func (c *Cursor) pass(n int) {
	for n > len(c.b)-c.pos {
		n -= len(c.b) - c.pos
		c.base += len(c.b)
		c.b, c.rest, c.pos = c.rest[0], c.rest[1:], 0
		c.after -= len(c.b)
	}
	c.pos += n
}

// octets returns the next n octets. Those that lie in several pieces it copies,
// into to if they fit there.
func (c *Cursor) octets(n int, to []byte) []byte {
	if !c.has(n) {
		return nil
	}
	if n <= len(c.b)-c.pos {
		c.pos += n
		return c.b[c.pos-n : c.pos]
	}
	to = append(to[:0], c.b[c.pos:]...)
	for i := 0; len(to) < n; i++ {
		to = append(to, c.rest[i][:min(n-len(to), len(c.rest[i]))]...)
	}
	c.pass(n)
	return to
}

// Uint32 takes an unsigned integer or an enumeration.
func (c *Cursor) Uint32() uint32 {
	if b := c.octets(4, c.word[:]); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// Uint64 takes an unsigned hyper integer.
func (c *Cursor) Uint64() uint64 {
	if b := c.octets(8, c.word[:]); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// Bool takes a boolean, or the word that says that optional data follow.
func (c *Cursor) Bool() bool {
	v := c.Uint32()
	if v > 1 {
		c.Fail("%d at octet %d, expected a boolean", v, c.Pos()-4)
		return false
	}
	return v == 1
}

// Skip passes over n octets of data of fixed length, and their roundup.
func (c *Cursor) Skip(n int) {
	if n >= 0 && n <= maxStream-3 {
		n += wire.Pad(uint64(n))
	}
	if c.has(n) {
		c.pass(n)
	}
}

// Rest passes over all that is left, without looking at it: what the binding
// cannot know. No item is in it, so that a chunk for one is an error.
func (c *Cursor) Rest() { c.pass(c.Left()) }

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
	if !ok || !c.item(n, false) {
		return nil
	}
	b := c.octets(n, nil)
	c.pass(wire.Pad(uint64(n)))
	return b
}

// Eligible passes over an item that may be reduced, of at most limit octets. It
// returns the count word; the data may be elsewhere.
func (c *Cursor) Eligible(limit uint32) uint32 {
	n, ok := c.length(limit)
	if !ok {
		return 0
	}
	chunk, length := c.chunk(n)
	if length == Inline {
		if !c.item(n, true) {
			return 0
		}
		c.pass(n + wire.Pad(uint64(n)))
		return uint32(n)
	}
	if !wire.Holds(uint64(length), uint32(n)) {
		c.Fail("item of %d octets at %d, whose chunk holds %d", n, c.Pos(), length)
		return 0
	}
	rounded := n + wire.Pad(uint64(n))
	if rounded > maxStream-(c.Pos()+c.Left()) {
		c.Fail("item of %d octets at %d makes the stream longer than %d octets", n, c.Pos(), maxStream)
		return 0
	}
	c.items = append(c.items, Item{Run: Run{c.Pos(), n}, Eligible: true, At: c.at(), Chunk: chunk})
	c.add += rounded
	return uint32(n)
}

// chunk is the chunk of the next eligible item, which has n octets, and the
// chunk's length; Inline if there is none.
func (c *Cursor) chunk(n int) (chunk, length int) {
	if c.next == len(c.chunks) {
		return 0, Inline
	}
	if length = c.chunks[c.next]; n == 0 && length > 0 {
		return 0, Inline
	}
	c.next++
	return c.next - 1, length
}

// length takes the count word of an item.
func (c *Cursor) length(limit uint32) (n int, ok bool) {
	v := c.Uint32()
	if v > limit || v > maxStream-3 {
		c.Fail("item of %d octets at %d, of which %d are allowed", v, c.Pos(), limit)
		return 0, false
	}
	return int(v), c.err == nil
}

// item notes an item of n octets that is in the stream, behind its pad if it has
// one. Its data and roundup are there if it returns true.
func (c *Cursor) item(n int, eligible bool) bool {
	if c.padding != nil {
		if pad := c.padding.Pad(c.at(), uint32(n)); pad > 0 {
			if !c.has(pad) {
				return false
			}
			c.pads = append(c.pads, Run{c.at(), pad})
			c.pass(pad)
			c.add -= pad
		}
	}
	if !c.has(n + wire.Pad(uint64(n))) {
		return false
	}
	if eligible || !c.EligibleOnly {
		c.items = append(c.items, Item{Run: Run{c.Pos(), n}, Eligible: eligible, At: c.at(), Chunk: -1})
	}
	return true
}
