// This file is the upper-layer binding of NFS version 4 (RFC 8267 §6): which
// data of a COMPOUND travel in chunks of their own.

package binding

import (
	"math"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/rpcrdma/payload"
)

// V4 is the upper-layer binding of NFS versions 4.0, 4.1 and 4.2, which
// are all version 4 of the program. Of its one procedure with anything in it,
// COMPOUND, these may be reduced and nothing else (RFC 8267 §6.1): the data of
// WRITE, the target of a symbolic link that CREATE makes, the data of READ and
// the link of READLINK.
//
// An operation that it does not know, or a union in one, hides what is behind
// it: nothing there is eligible, and nothing there is looked at. What belongs to
// a later minor version can be sent for this reason, as long as it is not
// reduced. The same holds for operations beyond those that any server takes.
type V4 struct{}

// Procedures of NFS version 4 (RFC 7863).
const (
	procNull4     = 0
	procCompound4 = 1
)

// maxOps4 is how many operations of a COMPOUND are looked at: more than servers
// take (Linux: 200).
const maxOps4 = 1024

// WalkCall visits the items of the arguments of a COMPOUND: tag, minorversion,
// argarray.
func (V4) WalkCall(proc uint32, c *payload.Cursor) error {
	if proc != procCompound4 {
		return otherProc4(proc, c)
	}
	c.Opaque(unlimited)
	c.Skip(4)
	for i := range c.Count(unlimited, 4) {
		op, ok := ops4[c.Uint32()]
		if !ok || i == maxOps4 || !op.walkArgs(c) {
			return hidden(c)
		}
	}
	return c.End()
}

func (o *op4) walkArgs(c *payload.Cursor) bool { return o.args == nil || o.args(c) }

// WalkReply visits the items of the results of a COMPOUND: status, tag,
// resarray.
func (V4) WalkReply(proc uint32, c *payload.Cursor) error {
	if proc != procCompound4 {
		return otherProc4(proc, c)
	}
	c.Skip(4)
	c.Opaque(unlimited)
	n := c.Count(unlimited, 8)
	for i := range n {
		op, ok := ops4[c.Uint32()]
		if !ok || i == maxOps4 {
			return hidden(c)
		}
		status := c.Uint32()
		if c.Err() != nil || !op.walkResult(status, c) {
			return hidden(c)
		}
		if status != nfs4OK && i != n-1 {
			// RFC 7530 §14.2: the server stops at the first operation that fails.
			c.Fail("operation %d of %d has failed with status %d and is not the last", i+1, n, status)
		}
	}
	return c.End()
}

// walkResult goes through what follows the status of a result.
func (o *op4) walkResult(status uint32, c *payload.Cursor) bool {
	l := o.errs[status]
	if status == nfs4OK {
		l = o.ok
	}
	if o.all != nil {
		l = o.all
	}
	return l == nil || l(c)
}

// hidden leaves the rest of the stream alone, unless it is wrong.
func hidden(c *payload.Cursor) error {
	if c.Err() == nil {
		c.Rest()
	}
	return c.Err()
}

// otherProc4 is for procedures that have nothing to reduce: NULL, and those that
// are none, which the server answers by PROC_UNAVAIL.
func otherProc4(proc uint32, c *payload.Cursor) error {
	if proc == procNull4 {
		return c.End()
	}
	c.Rest()
	return c.Err()
}

// MaxReply adds up the results of all operations, each with at most [MaxData] octets. If
// there is an operation that it does not know, the limit is unknown; the eligible items in
// the results before that are returned nevertheless. In NFS version 4.1 and later the
// ca_maxresponsesize of the session is another limit (RFC 8267 §6.2.2), which the caller
// has to apply.
func (V4) MaxReply(proc uint32, c *payload.Cursor) payload.ReplyBound {
	const header = 24 // of the reply, with AUTH_NONE
	if proc != procCompound4 {
		return payload.ReplyBound{Fixed: header}
	}
	tag := len(c.Opaque(unlimited))
	c.Skip(4)
	n := uint64(header + 4 + 4 + (tag+3)&^3 + 4)
	var items []int
	for i := range c.Count(unlimited, 4) {
		op, ok := ops4[c.Uint32()]
		if !ok || i == maxOps4 {
			return payload.ReplyBound{Fixed: -1, Items: items}
		}
		n += 8 + uint64(op.max) // number, status
		if op.need == nil {
			if !op.walkArgs(c) {
				return payload.ReplyBound{Fixed: -1, Items: items}
			}
			continue
		}
		octets, item := op.need(c)
		if c.Err() != nil {
			break
		}
		n += min(octets, nfs.MaxData)
		if item != noItem {
			items = append(items, int(min(item, nfs.MaxData)))
		}
	}
	if c.Err() != nil {
		return payload.ReplyBound{Fixed: -1, Items: items}
	}
	return payload.ReplyBound{Fixed: int(min(n, math.MaxInt32)), Items: items}
}

// ReadRead reports that replies may have a Read list: RFC 5667 §3 has it as one
// of the ways in which results return.
func (V4) ReadRead(uint32) bool { return true }
