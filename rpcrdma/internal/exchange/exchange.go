// Package exchange is a program for tests, with its messages and its upper-layer
// binding. Its procedure 1, EXCHANGE, takes and returns whatever mixture of items
// there can be:
//
//	arguments  tag opaque<64>, k, k times eligible opaque<>, n, n times wanted length
//	results    status, n, n times eligible opaque<>, tag opaque<64>
//
// With a status other than 0 nothing follows it.
package exchange

import (
	"encoding/binary"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// The numbers of the program, and limits of its messages: items, and octets of
// an item and of a tag.
const (
	Program = 0x20000a0a
	Version = 1
	Proc    = 1

	MaxItems = 64
	MaxItem  = 16 << 20
	MaxTag   = 64
)

// Bindings are those of the program.
var Bindings = payload.Bindings{{Prog: Program, Vers: Version}: Binding{}}

// Binding is the upper-layer binding.
type Binding struct{}

func (Binding) WalkCall(proc uint32, c *payload.Cursor) error {
	if proc != Proc {
		return nil
	}
	c.Opaque(MaxTag)
	for range c.Count(MaxItems, 4) {
		c.Eligible(MaxItem)
	}
	for range c.Count(MaxItems, 4) {
		c.Uint32()
	}
	return c.Err()
}

func (Binding) WalkReply(proc uint32, c *payload.Cursor) error {
	if proc != Proc || c.Uint32() != 0 {
		return nil
	}
	for range c.Count(MaxItems, 4) {
		c.Eligible(MaxItem)
	}
	c.Opaque(MaxTag)
	return c.Err()
}

func (Binding) MaxReply(proc uint32, c *payload.Cursor) (bound payload.ReplyBound) {
	if proc != Proc {
		return payload.ReplyBound{Fixed: 24}
	}
	tag := len(c.Opaque(MaxTag))
	for range c.Count(MaxItems, 4) {
		c.Eligible(MaxItem)
	}
	for range c.Count(MaxItems, 4) {
		bound.Items = append(bound.Items, int(min(c.Uint32(), MaxItem)))
	}
	bound.Fixed = 24 + 8 + 4*len(bound.Items) + 4 + tag + wire.Pad(uint64(tag))
	return bound
}

func (Binding) ReadRead(uint32) bool { return true }

// TwoItems binds a procedure that takes two items of up to one mebibyte, of
// which none may be reduced.
type TwoItems struct{ Binding }

func (TwoItems) WalkCall(_ uint32, c *payload.Cursor) error {
	c.Opaque(1 << 20)
	c.Opaque(1 << 20)
	return c.Err()
}

// Args are the arguments of EXCHANGE, with each item in a piece of its
// own, as programs hand over what they do not want copied.
func Args(tag string, items [][]byte, wanted ...int) [][]byte {
	e := oncrpc.NewEncoder(nil)
	e.Opaque([]byte(tag), MaxTag)
	e.Uint32(uint32(len(items)))
	var pieces [][]byte
	for _, item := range items {
		e.Uint32(uint32(len(item)))
		head, _ := e.Finish()
		pieces = append(pieces, head, item)
		e = oncrpc.NewEncoder(make([]byte, wire.Pad(uint64(len(item)))))
	}
	e.Uint32(uint32(len(wanted)))
	for _, n := range wanted {
		e.Uint32(uint32(n))
	}
	last, _ := e.Finish()
	return append(pieces, last)
}

// Call is a call of EXCHANGE.
func Call(args [][]byte) *oncrpc.ClientCall {
	return &oncrpc.ClientCall{
		Call: oncrpc.Call{Prog: Program, Vers: Version, Proc: Proc},
		Args: args,
	}
}

// Reply is the reply message to EXCHANGE, whole.
func Reply(xid uint32, tag string, items ...[]byte) []byte {
	e := oncrpc.NewEncoder(nil)
	reply := oncrpc.Reply{XID: xid}
	reply.Encode(&e)
	e.Uint32(0)
	e.Uint32(uint32(len(items)))
	for _, item := range items {
		e.Opaque(item, MaxItem)
	}
	e.Opaque([]byte(tag), MaxTag)
	b, _ := e.Finish()
	return b
}

// Pattern returns n octets whose values show their position; seed selects the pattern.
func Pattern(seed, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(seed*31 + i + i>>8*7)
	}
	return b
}

// Word is a big-endian word.
func Word(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }
