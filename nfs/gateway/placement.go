// This file provides memory for results that a backend places apart from the reply, and
// puts the reply together.

package gateway

import (
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/payload"
)

// A placement is memory for the DDP-eligible results of a call. Results lie where the
// whole reply will have them if the rest of the reply has its greatest length. So the data
// of READ of NFS version 3 are not moved if the reply has attributes. The zero value
// places nothing.
type placement struct {
	buf   []byte // room for the whole reply
	sinks [][]byte
	at    []int // where in buf each sink begins
}

const (
	// sinks is how many results of a call can be placed. Every NFS server supports
	// one Write chunk (RFC 8267 §6.4.2).
	sinks = 1

	// unknownReply is the room, in octets, for the rest of a reply whose greatest length
	// is unknown.
	unknownReply = 4 << 10
)

// garbage reports whether the arguments of r do not match its procedure, so that the
// transport could not plan the call.
func (g *Gateway) garbage(r *oncrpc.Request) bool {
	b, ok := g.cfg.Backend.Bindings[payload.ProgramVersion{Prog: r.Prog, Vers: r.Vers}]
	if !ok {
		return false
	}
	var c payload.Cursor
	c.Whole(r.Message, len(r.Message)-len(r.Args))
	return b.WalkCall(r.Proc, &c) != nil || c.End() != nil
}

// place provides memory for the results of r.
func (g *Gateway) place(r *oncrpc.Request) (p placement) {
	b, ok := g.cfg.Backend.Bindings[payload.ProgramVersion{Prog: r.Prog, Vers: r.Vers}]
	if !ok {
		return p
	}
	var c payload.Cursor
	c.Whole(r.Message, len(r.Message)-len(r.Args))
	bound := b.MaxReply(r.Proc, &c)
	n := bound.Fixed
	if n < 0 || n > g.cfg.MaxPayload {
		n = unknownReply
	}
	items := bound.Items[:min(len(bound.Items), sinks)]
	if len(items) == 0 || items[0] == 0 {
		return p // there is no result to place
	}
	for _, item := range items {
		p.at = append(p.at, n)
		n += oncrpc.RoundUp(min(item, g.cfg.MaxPayload))
	}
	p.buf = r.Buffer(n)[:n]
	for i, item := range items {
		at := p.at[i]
		end := at + min(item, g.cfg.MaxPayload)
		p.sinks = append(p.sinks, p.buf[at:end:end])
	}
	return p
}

// assemble returns the whole reply, in memory of r.
func (p *placement) assemble(r *oncrpc.Request, reply *oncrpc.ClientReply) []byte {
	total, in := len(reply.Message), 0
	inPlace := true // no result has to move up and so overwrite what is behind it
	for _, it := range reply.Placed {
		if it.Length >= 0 {
			inPlace = inPlace && it.At+in <= p.at[it.Sink]
			in += oncrpc.RoundUp(it.Length)
		}
	}
	total += in
	out := p.buf
	if !inPlace || total > len(out) {
		out = r.Buffer(total)
	}
	out = out[:0]
	from := 0
	for _, it := range reply.Placed {
		if it.Length >= 0 {
			out = append(out, reply.Message[from:it.At]...)
			from = it.At
			out = append(out, p.sinks[it.Sink][:it.Length]...)
			out = append(out, "\x00\x00\x00"[:oncrpc.Padding(it.Length)]...)
		}
	}
	return append(out, reply.Message[from:]...)
}
