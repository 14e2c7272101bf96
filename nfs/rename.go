// This file holds the procedures that give files other names: RENAME and LINK
// (RFC 1813 §3.3.14, §3.3.15). REMOVE and RMDIR have DirOpArgs and WccRes.

package nfs

import "github.com/weft-rdma/weft/oncrpc"

// RenameArgs are the arguments of RENAME.
type RenameArgs struct{ From, To DirOpArgs }

// Encode appends a to e.
func (a *RenameArgs) Encode(e *oncrpc.Encoder) {
	a.From.Encode(e)
	a.To.Encode(e)
}

// Decode reads a from d.
func (a *RenameArgs) Decode(d *oncrpc.Decoder) {
	a.From.Decode(d)
	a.To.Decode(d)
}

// RenameRes are the results of RENAME.
type RenameRes struct {
	Stat           Stat
	FromWcc, ToWcc WccData // of the directories
}

// Encode appends r to e.
func (r *RenameRes) Encode(e *oncrpc.Encoder) {
	e.Uint32(uint32(r.Stat))
	r.FromWcc.Encode(e)
	r.ToWcc.Encode(e)
}

// Decode reads r from d.
func (r *RenameRes) Decode(d *oncrpc.Decoder) {
	r.Stat = Stat(d.Uint32())
	r.FromWcc.Decode(d)
	r.ToWcc.Decode(d)
}

// LinkArgs are the arguments of LINK.
type LinkArgs struct {
	File FH
	Link DirOpArgs // the new name
}

// Encode appends a to e.
func (a *LinkArgs) Encode(e *oncrpc.Encoder) {
	a.File.Encode(e)
	a.Link.Encode(e)
}

// Decode reads a from d.
func (a *LinkArgs) Decode(d *oncrpc.Decoder) {
	a.File.Decode(d)
	a.Link.Decode(d)
}

// LinkRes are the results of LINK.
type LinkRes struct {
	Stat   Stat
	Attr   PostOpAttr // of the file
	DirWcc WccData    // of the link's directory
}

// Encode appends r to e.
func (r *LinkRes) Encode(e *oncrpc.Encoder) {
	e.Uint32(uint32(r.Stat))
	r.Attr.Encode(e)
	r.DirWcc.Encode(e)
}

// Decode reads r from d.
func (r *LinkRes) Decode(d *oncrpc.Decoder) {
	r.Stat = Stat(d.Uint32())
	r.Attr.Decode(d)
	r.DirWcc.Decode(d)
}
