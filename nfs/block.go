// This file goes through fields whose octets have been counted before: one check is
// enough for all of them.

package nfs

import "encoding/binary"

// A block is a row of fields of fixed length. They go through it one after the other;
// together they have as many octets as coder.block was asked for.
type block struct {
	b        []byte // the octets of the fields to come
	decoding bool   // into the fields; otherwise from them
}

// block goes through a block of n octets. ok is false where their values do not matter,
// or cannot be had: then the fields stay as they are.
func (c *coder) block(n int) (b block, ok bool) {
	switch c.mode {
	case encoding:
		return block{b: c.e.Extend(n)}, true
	case decoding:
		p := c.d.Fixed(n)
		return block{b: p, decoding: true}, len(p) == n
	case walking:
		c.w.Skip(n)
	default:
		c.n += n
	}
	return block{}, false
}

func (k *block) uint32(v *uint32) {
	if k.decoding {
		*v = binary.BigEndian.Uint32(k.b)
	} else {
		binary.BigEndian.PutUint32(k.b, *v)
	}
	k.b = k.b[4:]
}

func (k *block) uint64(v *uint64) {
	if k.decoding {
		*v = binary.BigEndian.Uint64(k.b)
	} else {
		binary.BigEndian.PutUint64(k.b, *v)
	}
	k.b = k.b[8:]
}
