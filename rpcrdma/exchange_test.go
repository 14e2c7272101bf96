package rpcrdma

import (
	"encoding/binary"

	"github.com/weft-rdma/weft/oncrpc"
)

// The program of these tests. Its procedure 1, EXCHANGE, takes and returns
// whatever mixture of items there can be:
//
//	arguments  tag opaque<64>, k, k times eligible opaque<>, n, n times wanted length
//	results    status, n, n times eligible opaque<>, tag opaque<64>
//
// With a status other than 0 nothing follows it.
const (
	exchangeProgram = 0x20000a0a
	exchangeVersion = 1
	exchangeProc    = 1

	exchangeItems = 64
	exchangeItem  = 16 << 20
	exchangeTag   = 64
)

var exchangeBindings = Bindings{{exchangeProgram, exchangeVersion}: exchangeBinding{}}

type exchangeBinding struct{}

func (exchangeBinding) WalkCall(proc uint32, c *Cursor) error {
	if proc != exchangeProc {
		return nil
	}
	c.Opaque(exchangeTag)
	for range c.Count(exchangeItems, 4) {
		c.Eligible(exchangeItem)
	}
	for range c.Count(exchangeItems, 4) {
		c.Uint32()
	}
	return c.Err()
}

func (exchangeBinding) WalkReply(proc uint32, c *Cursor) error {
	if proc != exchangeProc || c.Uint32() != 0 {
		return nil
	}
	for range c.Count(exchangeItems, 4) {
		c.Eligible(exchangeItem)
	}
	c.Opaque(exchangeTag)
	return c.Err()
}

func (exchangeBinding) MaxReply(proc uint32, c *Cursor) (bound ReplyBound) {
	if proc != exchangeProc {
		return ReplyBound{Fixed: 24}
	}
	tag := len(c.Opaque(exchangeTag))
	for range c.Count(exchangeItems, 4) {
		c.Eligible(exchangeItem)
	}
	for range c.Count(exchangeItems, 4) {
		bound.Items = append(bound.Items, int(min(c.Uint32(), exchangeItem)))
	}
	bound.Fixed = 24 + 8 + 4*len(bound.Items) + 4 + int(rounded(tag))
	return bound
}

func (exchangeBinding) ReadRead(uint32) bool { return true }

// exchangeArgs are the arguments of EXCHANGE, with each item in a piece of its
// own, as programs hand over what they do not want copied.
func exchangeArgs(tag string, items [][]byte, wanted ...int) [][]byte {
	e := oncrpc.NewEncoder(nil)
	e.Opaque([]byte(tag), exchangeTag)
	e.Uint32(uint32(len(items)))
	var pieces [][]byte
	for _, item := range items {
		e.Uint32(uint32(len(item)))
		head, _ := e.Finish()
		pieces = append(pieces, head, item)
		e = oncrpc.NewEncoder(make([]byte, Pad(uint64(len(item)))))
	}
	e.Uint32(uint32(len(wanted)))
	for _, n := range wanted {
		e.Uint32(uint32(n))
	}
	last, _ := e.Finish()
	return append(pieces, last)
}

// exchangeCall is a call of EXCHANGE.
func exchangeCall(args [][]byte) *oncrpc.ClientCall {
	return &oncrpc.ClientCall{
		Call: oncrpc.Call{Prog: exchangeProgram, Vers: exchangeVersion, Proc: exchangeProc},
		Args: args,
	}
}

// exchangeReply is the reply message to EXCHANGE, whole.
func exchangeReply(xid uint32, tag string, items ...[]byte) []byte {
	e := oncrpc.NewEncoder(nil)
	reply := oncrpc.Reply{XID: xid}
	reply.Encode(&e)
	e.Uint32(0)
	e.Uint32(uint32(len(items)))
	for _, item := range items {
		e.Opaque(item, exchangeItem)
	}
	e.Opaque([]byte(tag), exchangeTag)
	b, _ := e.Finish()
	return b
}

// pattern is n octets that tell where they belong: seed says which.
func pattern(seed, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(seed*31 + i + i>>8*7)
	}
	return b
}

// word is a big-endian word.
func word(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }
