// This file holds the pieces of which layouts of XDR types are made, so that the
// types of NFS version 4 can be written down nearly as RFC 7863 has them.

package binding

import (
	"github.com/weft-rdma/weft/rpcrdma/payload"
)

// A layout moves over one value of an XDR type. It returns false if it does not know where
// the value ends, or if c has found an error.
//
// Only lengths matter here, and the values that they depend on. The server that executes
// the call checks the others.
type layout func(c *payload.Cursor) bool

// unlimited is the limit of items to which the protocol sets none. The message
// ends them.
const unlimited = 1<<32 - 1

// fixed is n octets of any types of fixed length; n is a multiple of four.
func fixed(n int) layout {
	return func(c *payload.Cursor) bool {
		c.Skip(n)
		return c.Err() == nil
	}
}

// opaque is an opaque or string item of variable length, opaque<limit>.
func opaque(limit uint32) layout {
	return func(c *payload.Cursor) bool {
		c.Opaque(limit)
		return c.Err() == nil
	}
}

// eligible is an opaque<> that may be reduced (RFC 8267 §6.1).
func eligible(c *payload.Cursor) bool {
	c.Eligible(unlimited)
	return c.Err() == nil
}

// void is no octets.
func void(*payload.Cursor) bool { return true }

// members is the members of a structure, one after the other.
func members(list ...layout) layout {
	return func(c *payload.Cursor) bool {
		for _, l := range list {
			if !l(c) {
				return false
			}
		}
		return true
	}
}

// array is element<limit>.
func array(limit uint32, element layout) layout {
	return func(c *payload.Cursor) bool {
		for range c.Count(limit, 4) {
			if !element(c) {
				return false
			}
		}
		return c.Err() == nil
	}
}

// words is an array of elements of size octets each, a multiple of four.
func words(limit uint32, size int) layout {
	return func(c *payload.Cursor) bool {
		c.Skip(c.Count(limit, size) * size)
		return c.Err() == nil
	}
}

// chain is element *next: each entry has a word before it that says there is
// one. It ends with the stream, where that word is zero.
func chain(entry layout) layout {
	return func(c *payload.Cursor) bool {
		for c.Bool() {
			if !entry(c) {
				return false
			}
		}
		return c.Err() == nil
	}
}

// arms is the arms of a union that has no others.
type arms map[uint32]layout

// union is a union without a default arm, or with it: other.
func union(known arms, other layout) layout {
	return func(c *payload.Cursor) bool {
		v := c.Uint32()
		if c.Err() != nil {
			return false
		}
		if l, ok := known[v]; ok {
			return l(c)
		}
		return other != nil && other(c)
	}
}

// when is a union over a boolean that has something only if it is true.
func when(l layout) layout { return union(arms{0: void, 1: l}, nil) }
