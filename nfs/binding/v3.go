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
	switch nfs.Proc(proc) {
	case nfs.ProcNull:
	case nfs.ProcGetattr, nfs.ProcReadlink, nfs.ProcFsstat, nfs.ProcFsinfo, nfs.ProcPathconf:
		c.Opaque(nfs.MaxFH)
	case nfs.ProcSetattr:
		c.Opaque(nfs.MaxFH)
		walkSetAttributes(c)
		if c.Bool() { // sattrguard3
			c.Skip(8)
		}
	case nfs.ProcLookup, nfs.ProcRemove, nfs.ProcRmdir:
		walkDirOp(c)
	case nfs.ProcAccess:
		c.Opaque(nfs.MaxFH)
		c.Skip(4)
	case nfs.ProcRead, nfs.ProcCommit:
		c.Opaque(nfs.MaxFH)
		c.Skip(8 + 4) // offset, count
	case nfs.ProcWrite:
		c.Opaque(nfs.MaxFH)
		c.Skip(8 + 4 + 4) // offset, count, stable
		c.Eligible(nfs.MaxData)
	case nfs.ProcCreate:
		walkDirOp(c)
		switch mode := nfs.CreateMode(c.Uint32()); mode {
		case nfs.Unchecked, nfs.Guarded:
			walkSetAttributes(c)
		case nfs.Exclusive:
			c.Skip(8) // createverf3
		default:
			c.Fail("%v, want 0 to 2", mode)
		}
	case nfs.ProcMkdir:
		walkDirOp(c)
		walkSetAttributes(c)
	case nfs.ProcSymlink:
		walkDirOp(c)
		walkSetAttributes(c)
		c.Eligible(nfs.MaxPath)
	case nfs.ProcMknod:
		walkDirOp(c)
		switch nfs.FileType(c.Uint32()) {
		case nfs.TypeChr, nfs.TypeBlk:
			walkSetAttributes(c)
			c.Skip(8) // specdata3
		case nfs.TypeSock, nfs.TypeFifo:
			walkSetAttributes(c)
		}
	case nfs.ProcRename:
		walkDirOp(c)
		walkDirOp(c)
	case nfs.ProcLink:
		c.Opaque(nfs.MaxFH)
		walkDirOp(c)
	case nfs.ProcReaddir:
		c.Opaque(nfs.MaxFH)
		c.Skip(8 + 8 + 4) // cookie, cookieverf, count
	case nfs.ProcReaddirplus:
		c.Opaque(nfs.MaxFH)
		c.Skip(8 + 8 + 4 + 4) // cookie, cookieverf, dircount, maxcount
	default:
		c.Rest()
	}
	return c.Err()
}

// WalkReply goes through the results of a call: see [payload.Binding].
func (V3) WalkReply(proc uint32, c *payload.Cursor) error {
	p := nfs.Proc(proc)
	if p != nfs.ProcRead && p != nfs.ProcReadlink {
		c.Rest()
		return c.Err()
	}
	stat := nfs.Stat(c.Uint32())
	if c.Bool() { // post_op_attr
		c.Skip(fattr3)
	}
	switch {
	case c.Err() != nil || stat != nfs.OK:
	case p == nfs.ProcRead:
		c.Skip(4 + 4) // count, eof
		c.Eligible(nfs.MaxData)
	default:
		c.Eligible(nfs.MaxPath)
	}
	return c.Err()
}

// MaxReply bounds the reply to a call: see [payload.Binding]. Of what READ,
// READDIR and READDIRPLUS ask for, no more than [MaxData] counts.
func (V3) MaxReply(proc uint32, c *payload.Cursor) payload.ReplyBound {
	p := nfs.Proc(proc)
	header := new(oncrpc.Reply).Len()
	bound := payload.ReplyBound{Fixed: header + p.MaxResults()}
	switch p {
	case nfs.ProcRead:
		c.Opaque(nfs.MaxFH)
		c.Skip(8) // offset
		bound.Items = []int{maxCount(c)}
	case nfs.ProcReadlink:
		bound.Items = []int{nfs.MaxPath}
	case nfs.ProcReaddir, nfs.ProcReaddirplus:
		c.Opaque(nfs.MaxFH)
		c.Skip(8 + 8) // cookie, cookieverf
		if p == nfs.ProcReaddirplus {
			c.Skip(4) // dircount
		}
		// RFC 1813 §3.3.16 has the count bound all of the result; Linux's server
		// bounds the entries by it, and what is before them comes on top.
		bound.Fixed += maxCount(c)
	default:
		if p > nfs.ProcCommit {
			bound.Fixed = -1
		}
	}
	return bound
}

// ReadRead permits replies to be fetched from Read chunks. RFC 5667 §3 finds
// them unnecessary and does not forbid them; they take two peers that are
// configured for RFC 5666.
func (V3) ReadRead(uint32) bool { return true }

// maxCount takes the count that an argument asks for.
func maxCount(c *payload.Cursor) int { return int(min(c.Uint32(), nfs.MaxData)) }

// walkDirOp passes over a diropargs3.
func walkDirOp(c *payload.Cursor) {
	c.Opaque(nfs.MaxFH)
	c.Opaque(nfs.MaxName)
}

// walkSetAttributes passes over a sattr3.
func walkSetAttributes(c *payload.Cursor) {
	for _, n := range [...]int{4, 4, 4, 8} { // mode, uid, gid, size
		if c.Bool() {
			c.Skip(n)
		}
	}
	for range 2 { // atime, mtime
		switch how := nfs.TimeHow(c.Uint32()); how {
		case nfs.DontChange, nfs.SetToServerTime:
		case nfs.SetToClientTime:
			c.Skip(8)
		default:
			c.Fail("%v, want 0 to 2", how)
		}
	}
}

// fattr3 is the octets of attributes.
const fattr3 = 84
