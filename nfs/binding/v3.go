// This file holds the upper-layer binding of NFS version 3 (RFC 8267 §4, RFC
// 5667 §4).

package binding

import (
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/payload"
)

// V3 is the upper-layer binding of NFS version 3. Data of WRITE and READ,
// and paths of SYMLINK and READLINK may travel in chunks of their own; nothing
// else (RFC 8267 §4).
//
// Results that have no such item are not looked at. Arguments of procedures that
// there are not have no items.
type V3 struct{}

var _ payload.Binding = V3{}

// WalkCall goes through the arguments of a call: see [payload.Binding].
func (V3) WalkCall(proc uint32, c *payload.Cursor) error {
	if !nfs.Proc(proc).WalkArgs(c) {
		c.Rest()
	}
	return c.Err()
}

// WalkReply goes through the results of a call: see [payload.Binding].
func (V3) WalkReply(proc uint32, c *payload.Cursor) error {
	switch nfs.Proc(proc) {
	case nfs.ProcRead:
		new(nfs.ReadRes).Walk(c)
	case nfs.ProcReadlink:
		new(nfs.ReadlinkRes).Walk(c)
	default:
		c.Rest()
	}
	return c.Err()
}

// MaxReply bounds the reply to a call: see [payload.Binding]. Of what READ,
// READDIR and READDIRPLUS ask for, no more than [nfs.MaxData] counts.
func (V3) MaxReply(proc uint32, c *payload.Cursor) payload.ReplyBound {
	p := nfs.Proc(proc)
	if p > nfs.ProcCommit {
		return payload.ReplyBound{Fixed: -1}
	}
	bound := payload.ReplyBound{Fixed: new(oncrpc.Reply).Len() + p.MaxResults()}
	switch p {
	case nfs.ProcRead:
		var args nfs.ReadArgs
		args.Walk(c)
		bound.Items = []int{atMost(args.Count)}
	case nfs.ProcReadlink:
		bound.Items = []int{nfs.MaxPath}
	case nfs.ProcReaddir:
		// RFC 1813 §3.3.16 has the count bound all of the result; Linux's server
		// bounds the entries by it, and what is before them comes on top.
		var args nfs.ReaddirArgs
		args.Walk(c)
		bound.Fixed += atMost(args.Count)
	case nfs.ProcReaddirplus:
		var args nfs.ReaddirplusArgs
		args.Walk(c)
		bound.Fixed += atMost(args.MaxCount)
	}
	return bound
}

// ReadRead permits replies to be fetched from Read chunks. RFC 5667 §3 finds
// them unnecessary and does not forbid them; both peers have to be configured for
// RFC 5666.
func (V3) ReadRead(uint32) bool { return true }

// atMost limits a count of a peer's.
func atMost(count uint32) int { return int(min(count, nfs.MaxData)) }
