// This file goes through structures of XDR. A structure describes itself once,
// by a method that names its fields in the order of the wire; what becomes of
// the fields depends on the coder. So encoding, decoding, walking and measuring
// cannot disagree.

package nfs

import "github.com/weft-rdma/weft/oncrpc"

// A Walker goes through a message of which it need not keep anything:
// payload.Cursor of rpcrdma is one. The first error sticks, and what is read after it is
// zero.
type Walker interface {
	Uint32() uint32
	Uint64() uint64
	Bool() bool
	Skip(n int)                      // n octets of fixed length
	Opaque(limit uint32) []byte      // an item that stays in the message
	Eligible(limit uint32) uint32    // an item that may be elsewhere
	Fail(format string, args ...any) // what was read cannot be
}

// A structure is described by its fields.
type structure interface{ fields(*coder) }

// A coder does one of these with a structure.
type coder struct {
	mode mode
	e    *oncrpc.Encoder
	d    *oncrpc.Decoder
	w    *walk
	n    int // octets, of measuring and bounding

	// headOnly leaves the octets of a structure's data alone: only their count
	// word is encoded, which is count, or decoded, into count.
	headOnly bool
	count    int
}

type mode uint8

const (
	encoding mode = iota
	decoding
	walking
	measuring // the octets of the structure as it is
	bounding  // the most octets that it can have, without eligible items and entries of lists
)

// A walk is a Walker. Calls of an interface's methods let what is beside it in a
// structure escape; so it is a step away, and Encoders stay on their stacks.
type walk struct{ Walker }

func encoderTo(e *oncrpc.Encoder) *coder   { return &coder{mode: encoding, e: e} }
func decoderFrom(d *oncrpc.Decoder) *coder { return &coder{mode: decoding, d: d} }
func walkerBy(w Walker) *coder             { return &coder{mode: walking, w: &walk{w}} }

// bound returns the most octets that s, which is zero, can have.
func bound(s structure) int {
	c := coder{mode: bounding}
	s.fields(&c)
	return c.n
}

func (c *coder) uint32(v *uint32) {
	switch c.mode {
	case encoding:
		c.e.Uint32(*v)
	case decoding:
		*v = c.d.Uint32()
	case walking:
		*v = c.w.Uint32()
	default:
		c.n += 4
	}
}

func (c *coder) uint64(v *uint64) {
	switch c.mode {
	case encoding:
		c.e.Uint64(*v)
	case decoding:
		*v = c.d.Uint64()
	case walking:
		*v = c.w.Uint64()
	default:
		c.n += 8
	}
}

func (c *coder) bool(v *bool) {
	switch c.mode {
	case encoding:
		c.e.Bool(*v)
	case decoding:
		*v = c.d.Bool()
	case walking:
		*v = c.w.Bool()
	default:
		c.n += 4
	}
}

// optional goes through the word that says whether a structure follows, and
// reports whether one does. It always does in what is longest.
func (c *coder) optional(follows *bool) bool {
	c.bool(follows)
	return *follows || c.mode == bounding
}

// more is optional for the next entry of a list, of which more says whether there
// is one if it is not read.
func (c *coder) more(more bool) bool {
	c.bool(&more)
	return more
}

// next is more for the entry of a list that follows i others, of the n that it
// has if it is not read. A list has at most MaxMounts.
func (c *coder) next(i, n int, what string) bool {
	more := c.more(i < n)
	if more && i == MaxMounts {
		c.fail("list of more than %d %s", i, what)
		return false
	}
	return more
}

// elements goes through the count word of an array of words and returns how many
// there are: n if it is not read.
func (c *coder) elements(n int, limit uint32) int {
	switch c.mode {
	case encoding:
		c.e.Count(n, limit)
	case decoding:
		n = c.d.Count(limit, 4)
	default:
		c.n += 4
	}
	return n
}

// stat goes through a status and reports whether it is OK, which is what the
// longest results have.
func (c *coder) stat(v *Stat) bool {
	c.uint32((*uint32)(v))
	return *v == OK
}

// fixed goes through opaque data of fixed length.
func (c *coder) fixed(b []byte) {
	switch c.mode {
	case encoding:
		c.e.Fixed(b)
	case decoding:
		copy(b, c.d.Fixed(len(b)))
	case walking:
		c.w.Skip(len(b))
	default:
		c.n += oncrpc.RoundUp(len(b))
	}
}

// opaque goes through an opaque item of variable length, which stays in the
// message.
func (c *coder) opaque(b *[]byte, limit uint32) {
	switch c.mode {
	case encoding:
		c.e.Opaque(*b, limit)
	case decoding:
		*b = c.d.Opaque(limit)
	case walking:
		c.w.Opaque(limit)
	case measuring:
		c.n += 4 + oncrpc.RoundUp(len(*b))
	case bounding:
		c.n += 4 + oncrpc.RoundUp(int(limit))
	}
}

// string goes through a string, which stays in the message.
func (c *coder) string(s *string, limit uint32) {
	switch c.mode {
	case encoding:
		c.e.String(*s, limit)
	case decoding:
		*s = c.d.String(limit)
	case walking:
		c.w.Opaque(limit)
	case measuring:
		c.n += 4 + oncrpc.RoundUp(len(*s))
	case bounding:
		c.n += 4 + oncrpc.RoundUp(int(limit))
	}
}

// path goes through the path of a symbolic link, which may be in a chunk (RFC
// 8267 §4).
func (c *coder) path(s *string) {
	switch c.mode {
	case walking:
		c.w.Eligible(MaxPath)
	case bounding:
		c.n += 4
	default:
		c.string(s, MaxPath)
	}
}

// data goes through the data of a READ or WRITE, which may be in a chunk (RFC
// 8267 §4). A message that counts them twice has to agree with itself: RFC 1813
// leaves open what happens if it does not.
func (c *coder) data(b *[]byte, count uint32) {
	switch c.mode {
	case encoding:
		if c.headOnly {
			c.e.Length(c.count, MaxData)
			return
		}
		c.e.Opaque(*b, MaxData)
	case decoding:
		at := c.d.Pos()
		n := c.d.Length(MaxData)
		if c.d.Err() == nil && n != count {
			c.d.Fail(at, "%d octets of data, with count %d", n, count)
			n = 0
		}
		if c.count = int(n); !c.headOnly && n > 0 {
			*b = c.d.Fixed(c.count)
		}
	case walking:
		c.w.Eligible(MaxData)
	case measuring:
		c.n += 4 + oncrpc.RoundUp(len(*b))
	case bounding:
		c.n += 4
	}
}

// fail says that the word before decides about what follows and has no such
// value.
func (c *coder) fail(format string, args ...any) {
	switch c.mode {
	case encoding:
		c.e.Fail(format, args...)
	case decoding:
		c.d.Fail(c.d.Pos()-4, format, args...)
	case walking:
		c.w.Fail(format, args...)
	}
}

// refuse reports, when decoding, that the word which begins before octets before the
// position has an invalid value.
func (c *coder) refuse(before int, format string, args ...any) {
	if c.mode == decoding {
		c.d.Fail(c.d.Pos()-before, format, args...)
	}
}
