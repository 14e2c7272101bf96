// This file holds the upper-layer binding of NFS version 2 (RFC 8267 §4; RFC
// 1094 has the messages).

package binding

import (
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/payload"
)

// Procedures of NFS version 2 (RFC 1094 §2.2). ROOT and WRITECACHE are obsolete
// and have no arguments and results.
const (
	v2Null = iota
	v2Getattr
	v2Setattr
	v2Root
	v2Lookup
	v2Readlink
	v2Read
	v2WriteCache
	v2Write
	v2Create
	v2Remove
	v2Rename
	v2Link
	v2Symlink
	v2Mkdir
	v2Rmdir
	v2Readdir
	v2Statfs
)

// Sizes in octets (RFC 1094 §2.3).
const (
	v2FH      = 32 // fhandle, of fixed length
	v2MaxData = 8192
	v2MaxPath = 1024
	v2MaxName = 255
	v2Fattr   = 68
	v2Sattr   = 32
)

// v2Results has for each procedure the most octets of its results without data,
// paths and entries.
var v2Results = [...]int{
	v2Null:       0,
	v2Getattr:    4 + v2Fattr,
	v2Setattr:    4 + v2Fattr,
	v2Root:       0,
	v2Lookup:     4 + v2FH + v2Fattr,
	v2Readlink:   4 + 4,
	v2Read:       4 + v2Fattr + 4,
	v2WriteCache: 0,
	v2Write:      4 + v2Fattr,
	v2Create:     4 + v2FH + v2Fattr,
	v2Remove:     4,
	v2Rename:     4,
	v2Link:       4,
	v2Symlink:    4,
	v2Mkdir:      4 + v2FH + v2Fattr,
	v2Rmdir:      4,
	v2Readdir:    4 + 4 + 4,
	v2Statfs:     4 + 5*4,
}

// V2 is the upper-layer binding of NFS version 2. Data of WRITE and READ,
// and paths of SYMLINK and READLINK may travel in chunks of their own; nothing
// else (RFC 8267 §4).
//
// Results that have no such item are not looked at. Arguments of procedures that
// there are not have no items.
type V2 struct{}

var _ payload.Binding = V2{}

// WalkCall goes through the arguments of a call: see [payload.Binding].
func (V2) WalkCall(proc uint32, c *payload.Cursor) error {
	dirOp := func() {
		c.Skip(v2FH)
		c.Opaque(v2MaxName)
	}
	switch proc {
	case v2Null, v2Root, v2WriteCache:
	case v2Getattr, v2Readlink, v2Statfs:
		c.Skip(v2FH)
	case v2Setattr:
		c.Skip(v2FH + v2Sattr)
	case v2Lookup, v2Remove, v2Rmdir:
		dirOp()
	case v2Read:
		c.Skip(v2FH + 4 + 4 + 4) // offset, count, totalcount
	case v2Write:
		c.Skip(v2FH + 4 + 4 + 4) // beginoffset, offset, totalcount
		c.Eligible(v2MaxData)
	case v2Create, v2Mkdir:
		dirOp()
		c.Skip(v2Sattr)
	case v2Rename:
		dirOp()
		dirOp()
	case v2Link:
		c.Skip(v2FH)
		dirOp()
	case v2Symlink:
		dirOp()
		c.Eligible(v2MaxPath)
		c.Skip(v2Sattr)
	case v2Readdir:
		c.Skip(v2FH + 4 + 4) // cookie, count
	default:
		c.Rest()
	}
	return c.Err()
}

// WalkReply goes through the results of a call: see [payload.Binding].
func (V2) WalkReply(proc uint32, c *payload.Cursor) error {
	if proc != v2Read && proc != v2Readlink {
		c.Rest()
		return c.Err()
	}
	stat := nfs.Stat(c.Uint32())
	switch {
	case c.Err() != nil || stat != nfs.OK:
	case proc == v2Read:
		c.Skip(v2Fattr)
		c.Eligible(v2MaxData)
	default:
		c.Eligible(v2MaxPath)
	}
	return c.Err()
}

// MaxReply bounds the reply to a call: see [payload.Binding].
func (V2) MaxReply(proc uint32, c *payload.Cursor) payload.ReplyBound {
	if proc > v2Statfs {
		return payload.ReplyBound{Fixed: -1}
	}
	bound := payload.ReplyBound{Fixed: new(oncrpc.Reply).Len() + v2Results[proc]}
	switch proc {
	case v2Read:
		c.Skip(v2FH + 4) // offset
		bound.Items = []int{int(min(c.Uint32(), v2MaxData))}
	case v2Readlink:
		bound.Items = []int{v2MaxPath}
	case v2Readdir:
		c.Skip(v2FH + 4) // cookie
		// RFC 1094 §2.2.17: count is the octets of results, and leaves open of which.
		bound.Fixed += atMost(c.Uint32())
	}
	return bound
}

// ReadRead permits replies to be fetched from Read chunks, as [V3] does.
func (V2) ReadRead(uint32) bool { return true }
