// This file holds the upper-layer binding of NFS version 3 (RFC 8267 §4, RFC
// 5667 §4).

package nfs

import (
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/payload"
)

// BindingV3 is the upper-layer binding of NFS version 3. Data of WRITE and READ,
// and paths of SYMLINK and READLINK may travel in chunks of their own; nothing
// else (RFC 8267 §4).
//
// Results that have no such item are not looked at. Arguments of procedures that
// there are not have no items.
type BindingV3 struct{}

var _ payload.Binding = BindingV3{}

// WalkCall goes through the arguments of a call: see [payload.Binding].
func (BindingV3) WalkCall(proc uint32, c *payload.Cursor) error {
	switch Proc(proc) {
	case ProcNull:
	case ProcGetattr, ProcReadlink, ProcFsstat, ProcFsinfo, ProcPathconf:
		c.Opaque(MaxFH)
	case ProcSetattr:
		c.Opaque(MaxFH)
		walkSetAttributes(c)
		if c.Bool() { // sattrguard3
			c.Skip(8)
		}
	case ProcLookup, ProcRemove, ProcRmdir:
		walkDirOp(c)
	case ProcAccess:
		c.Opaque(MaxFH)
		c.Skip(4)
	case ProcRead, ProcCommit:
		c.Opaque(MaxFH)
		c.Skip(8 + 4) // offset, count
	case ProcWrite:
		c.Opaque(MaxFH)
		c.Skip(8 + 4 + 4) // offset, count, stable
		c.Eligible(MaxData)
	case ProcCreate:
		walkDirOp(c)
		switch mode := CreateMode(c.Uint32()); mode {
		case Unchecked, Guarded:
			walkSetAttributes(c)
		case Exclusive:
			c.Skip(8) // createverf3
		default:
			c.Fail("%v, want 0 to 2", mode)
		}
	case ProcMkdir:
		walkDirOp(c)
		walkSetAttributes(c)
	case ProcSymlink:
		walkDirOp(c)
		walkSetAttributes(c)
		c.Eligible(MaxPath)
	case ProcMknod:
		walkDirOp(c)
		switch FileType(c.Uint32()) {
		case TypeChr, TypeBlk:
			walkSetAttributes(c)
			c.Skip(8) // specdata3
		case TypeSock, TypeFifo:
			walkSetAttributes(c)
		}
	case ProcRename:
		walkDirOp(c)
		walkDirOp(c)
	case ProcLink:
		c.Opaque(MaxFH)
		walkDirOp(c)
	case ProcReaddir:
		c.Opaque(MaxFH)
		c.Skip(8 + 8 + 4) // cookie, cookieverf, count
	case ProcReaddirplus:
		c.Opaque(MaxFH)
		c.Skip(8 + 8 + 4 + 4) // cookie, cookieverf, dircount, maxcount
	default:
		c.Rest()
	}
	return c.Err()
}

// WalkReply goes through the results of a call: see [payload.Binding].
func (BindingV3) WalkReply(proc uint32, c *payload.Cursor) error {
	p := Proc(proc)
	if p != ProcRead && p != ProcReadlink {
		c.Rest()
		return c.Err()
	}
	stat := Stat(c.Uint32())
	if c.Bool() { // post_op_attr
		c.Skip(fattrLen)
	}
	switch {
	case c.Err() != nil || stat != OK:
	case p == ProcRead:
		c.Skip(4 + 4) // count, eof
		c.Eligible(MaxData)
	default:
		c.Eligible(MaxPath)
	}
	return c.Err()
}

// MaxReply bounds the reply to a call: see [payload.Binding]. Of what READ,
// READDIR and READDIRPLUS ask for, no more than [MaxData] counts.
func (BindingV3) MaxReply(proc uint32, c *payload.Cursor) payload.ReplyBound {
	p := Proc(proc)
	header := new(oncrpc.Reply).Len()
	bound := payload.ReplyBound{Fixed: header + p.MaxResults()}
	switch p {
	case ProcRead:
		c.Opaque(MaxFH)
		c.Skip(8) // offset
		bound.Items = []int{maxCount(c)}
	case ProcReadlink:
		bound.Items = []int{MaxPath}
	case ProcReaddir, ProcReaddirplus:
		c.Opaque(MaxFH)
		c.Skip(8 + 8) // cookie, cookieverf
		if p == ProcReaddirplus {
			c.Skip(4) // dircount
		}
		// RFC 1813 §3.3.16 has the count bound all of the result; Linux's server
		// bounds the entries by it, and what is before them comes on top.
		bound.Fixed += maxCount(c)
	default:
		if p > ProcCommit {
			bound.Fixed = -1
		}
	}
	return bound
}

// ReadRead permits replies to be fetched from Read chunks. RFC 5667 §3 finds
// them unnecessary and does not forbid them; they take two peers that are
// configured for RFC 5666.
func (BindingV3) ReadRead(uint32) bool { return true }

// maxCount takes the count that an argument asks for.
func maxCount(c *payload.Cursor) int { return int(min(c.Uint32(), MaxData)) }

// walkDirOp passes over a diropargs3.
func walkDirOp(c *payload.Cursor) {
	c.Opaque(MaxFH)
	c.Opaque(MaxName)
}

// walkSetAttributes passes over a sattr3.
func walkSetAttributes(c *payload.Cursor) {
	for _, n := range [...]int{4, 4, 4, 8} { // mode, uid, gid, size
		if c.Bool() {
			c.Skip(n)
		}
	}
	for range 2 { // atime, mtime
		switch how := TimeHow(c.Uint32()); how {
		case DontChange, SetToServerTime:
		case SetToClientTime:
			c.Skip(8)
		default:
			c.Fail("%v, want 0 to 2", how)
		}
	}
}
