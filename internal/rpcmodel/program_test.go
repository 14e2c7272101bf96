package rpcmodel_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/payload"
)

// The program: procedure 1 takes k items and n lengths, and returns n items of
// these lengths, of octets that depend on all the arguments.
//
//	arguments  tag opaque<64>, k, k times eligible opaque<>, n, n times a length
//	results    digest opaque[32], n, n times eligible opaque<>, tag opaque<64>
const (
	program = 0x20000abc
	version = 3
	proc    = 1

	mostItems = 12
	mostTag   = 64
	mostItem  = 1 << 20
)

var bindings = payload.Bindings{{Prog: program, Vers: version}: binding{}}

type binding struct{}

func (binding) WalkCall(_ uint32, c *payload.Cursor) error {
	c.Opaque(mostTag)
	for range c.Count(mostItems, 4) {
		c.Eligible(mostItem)
	}
	for range c.Count(mostItems, 4) {
		c.Uint32()
	}
	return c.Err()
}

func (binding) WalkReply(_ uint32, c *payload.Cursor) error {
	c.Skip(sha256.Size)
	for range c.Count(mostItems, 4) {
		c.Eligible(mostItem)
	}
	c.Opaque(mostTag)
	return c.Err()
}

func (binding) MaxReply(_ uint32, c *payload.Cursor) (b payload.ReplyBound) {
	tag := len(c.Opaque(mostTag))
	for range c.Count(mostItems, 4) {
		c.Eligible(mostItem)
	}
	for range c.Count(mostItems, 4) {
		b.Items = append(b.Items, int(c.Uint32()))
	}
	b.Fixed = 24 + sha256.Size + 4 + 4*len(b.Items) + 4 + oncrpc.RoundUp(tag)
	return b
}

func (binding) ReadRead(uint32) bool { return true }

// A question is the arguments of a call.
type question struct {
	tag    []byte
	items  [][]byte
	wanted []int
}

// args are the arguments as one stream.
func (q *question) args() []byte {
	e := oncrpc.NewEncoder(nil)
	e.Opaque(q.tag, mostTag)
	e.Uint32(uint32(len(q.items)))
	for _, item := range q.items {
		e.Opaque(item, mostItem)
	}
	e.Uint32(uint32(len(q.wanted)))
	for _, n := range q.wanted {
		e.Uint32(uint32(n))
	}
	b, _ := e.Finish()
	return b
}

// parse is the inverse of args.
func (q *question) parse(args []byte) error {
	d := oncrpc.NewDecoder(args, "arguments")
	q.tag = d.Opaque(mostTag)
	for range d.Count(mostItems, 4) {
		q.items = append(q.items, d.Opaque(mostItem))
	}
	for range d.Count(mostItems, 4) {
		q.wanted = append(q.wanted, int(d.Uint32()))
	}
	return d.End()
}

// results is what the model says that the program returns.
func (q *question) results() []byte {
	digest := sha256.Sum256(q.args())
	e := oncrpc.NewEncoder(nil)
	e.Fixed(digest[:])
	e.Uint32(uint32(len(q.wanted)))
	for i, n := range q.wanted {
		e.Opaque(octets(binary.BigEndian.Uint64(digest[:])+uint64(i), n), mostItem)
	}
	e.Opaque(q.tag, mostTag)
	b, _ := e.Finish()
	return b
}

// octets are n of them that seed determines.
func octets(seed uint64, n int) []byte {
	b := make([]byte, n+8)
	r := rand.NewPCG(seed, 1)
	for at := 0; at < n; at += 8 {
		binary.LittleEndian.PutUint64(b[at:], r.Uint64())
	}
	return b[:n:n]
}

// serve is the program's handler. It holds the octets that it gets against what
// they decode to.
func serve(_ context.Context, r *oncrpc.Request) ([]byte, error) {
	var q question
	if err := q.parse(r.Args); err != nil {
		return nil, err
	}
	if !bytes.Equal(q.args(), r.Args) {
		return nil, fmt.Errorf("arguments have octets of roundup that are not zero")
	}
	results := q.results()
	e := r.Accept(len(results))
	e.Fixed(results)
	return e.Finish()
}

// ask is a random question, of lengths around thresholds.
func ask(r *rand.Rand, most int) *question {
	length := func() int {
		switch r.IntN(6) {
		case 0:
			return 0
		case 1:
			return r.IntN(10)
		case 2:
			return max(0, 1024-120+r.IntN(240))
		case 3:
			return 4096 - 120 + r.IntN(240)
		}
		return r.IntN(most)
	}
	q := &question{tag: octets(r.Uint64(), r.IntN(mostTag))}
	for range r.IntN(4) * r.IntN(4) {
		q.items = append(q.items, octets(r.Uint64(), length()))
	}
	for range r.IntN(4) * r.IntN(4) {
		q.wanted = append(q.wanted, length())
	}
	return q
}

// cut cuts a stream anywhere, or not at all.
func cut(r *rand.Rand, b []byte) (pieces [][]byte) {
	for len(b) > 0 && r.IntN(8) > 0 {
		n := r.IntN(len(b) + 1)
		pieces, b = append(pieces, b[:n:n]), b[n:]
	}
	return append(pieces, b)
}
