// This file holds the procedures that give files other names: RENAME and LINK
// (RFC 1813 §3.3.14, §3.3.15). REMOVE and RMDIR have DirOpArgs and WccRes.

package nfs

import "github.com/weft-rdma/weft/oncrpc"

// RenameArgs are the arguments of RENAME.
type RenameArgs struct{ From, To DirOpArgs }

func (a *RenameArgs) fields(c *coder) {
	a.From.fields(c)
	a.To.fields(c)
}

// Encode appends a to e.
func (a *RenameArgs) Encode(e *oncrpc.Encoder) { a.fields(encoderTo(e)) }

// Decode reads a from d.
func (a *RenameArgs) Decode(d *oncrpc.Decoder) {
	*a = RenameArgs{}
	a.fields(decoderFrom(d))
}

// RenameRes are the results of RENAME.
type RenameRes struct {
	Stat           Stat
	FromWcc, ToWcc WccData // of the directories
}

func (r *RenameRes) fields(c *coder) {
	c.stat(&r.Stat)
	r.FromWcc.fields(c)
	r.ToWcc.fields(c)
}

// Encode appends r to e.
func (r *RenameRes) Encode(e *oncrpc.Encoder) { r.fields(encoderTo(e)) }

// Decode reads r from d.
func (r *RenameRes) Decode(d *oncrpc.Decoder) {
	*r = RenameRes{}
	r.fields(decoderFrom(d))
}

// LinkArgs are the arguments of LINK.
type LinkArgs struct {
	File FH
	Link DirOpArgs // the new name
}

func (a *LinkArgs) fields(c *coder) {
	a.File.fields(c)
	a.Link.fields(c)
}

// Encode appends a to e.
func (a *LinkArgs) Encode(e *oncrpc.Encoder) { a.fields(encoderTo(e)) }

// Decode reads a from d.
func (a *LinkArgs) Decode(d *oncrpc.Decoder) {
	*a = LinkArgs{}
	a.fields(decoderFrom(d))
}

// LinkRes are the results of LINK.
type LinkRes struct {
	Stat   Stat
	Attr   PostOpAttr // of the file
	DirWcc WccData    // of the link's directory
}

func (r *LinkRes) fields(c *coder) {
	c.stat(&r.Stat)
	r.Attr.fields(c)
	r.DirWcc.fields(c)
}

// Encode appends r to e.
func (r *LinkRes) Encode(e *oncrpc.Encoder) { r.fields(encoderTo(e)) }

// Decode reads r from d.
func (r *LinkRes) Decode(d *oncrpc.Decoder) {
	*r = LinkRes{}
	r.fields(decoderFrom(d))
}
