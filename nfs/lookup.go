// This file holds the procedures that look at names and rights: LOOKUP, ACCESS
// and READLINK (RFC 1813 §3.3.3 to §3.3.5).

package nfs

import "github.com/weft-rdma/weft/oncrpc"

// LookupRes are the results of LOOKUP, whose arguments are DirOpArgs.
type LookupRes struct {
	Stat    Stat
	Object  FH         // if OK
	Attr    PostOpAttr // of the object, if OK
	DirAttr PostOpAttr
}

// Encode appends r to e.
func (r *LookupRes) Encode(e *oncrpc.Encoder) {
	e.Uint32(uint32(r.Stat))
	if r.Stat == OK {
		r.Object.Encode(e)
		r.Attr.Encode(e)
	}
	r.DirAttr.Encode(e)
}

// Decode reads r from d.
func (r *LookupRes) Decode(d *oncrpc.Decoder) {
	*r = LookupRes{Stat: Stat(d.Uint32())}
	if r.Stat == OK {
		r.Object.Decode(d)
		r.Attr.Decode(d)
	}
	r.DirAttr.Decode(d)
}

// An Access is a set of rights (ACCESS3_READ and so on).
type Access uint32

const (
	AccessRead    Access = 0x01 // read data, or a directory
	AccessLookup  Access = 0x02 // look up a name in a directory
	AccessModify  Access = 0x04 // change data or entries that there are
	AccessExtend  Access = 0x08 // write new data or entries
	AccessDelete  Access = 0x10 // delete an entry of a directory
	AccessExecute Access = 0x20 // execute a file
)

// AccessArgs are the arguments of ACCESS.
type AccessArgs struct {
	Object FH
	Access Access // the rights asked about
}

// Encode appends a to e.
func (a *AccessArgs) Encode(e *oncrpc.Encoder) {
	a.Object.Encode(e)
	e.Uint32(uint32(a.Access))
}

// Decode reads a from d.
func (a *AccessArgs) Decode(d *oncrpc.Decoder) {
	a.Object.Decode(d)
	a.Access = Access(d.Uint32())
}

// AccessRes are the results of ACCESS.
type AccessRes struct {
	Stat   Stat
	Attr   PostOpAttr
	Access Access // the rights there are, if OK
}

// Encode appends r to e.
func (r *AccessRes) Encode(e *oncrpc.Encoder) {
	e.Uint32(uint32(r.Stat))
	r.Attr.Encode(e)
	if r.Stat == OK {
		e.Uint32(uint32(r.Access))
	}
}

// Decode reads r from d.
func (r *AccessRes) Decode(d *oncrpc.Decoder) {
	*r = AccessRes{Stat: Stat(d.Uint32())}
	r.Attr.Decode(d)
	if r.Stat == OK {
		r.Access = Access(d.Uint32())
	}
}

// ReadlinkArgs are the arguments of READLINK.
type ReadlinkArgs struct{ Symlink FH }

// Encode appends a to e.
func (a *ReadlinkArgs) Encode(e *oncrpc.Encoder) { a.Symlink.Encode(e) }

// Decode reads a from d.
func (a *ReadlinkArgs) Decode(d *oncrpc.Decoder) { a.Symlink.Decode(d) }

// ReadlinkRes are the results of READLINK.
type ReadlinkRes struct {
	Stat Stat
	Attr PostOpAttr
	Path string // if OK; at most MaxPath octets
}

// Encode appends r to e.
func (r *ReadlinkRes) Encode(e *oncrpc.Encoder) {
	e.Uint32(uint32(r.Stat))
	r.Attr.Encode(e)
	if r.Stat == OK {
		e.String(r.Path, MaxPath)
	}
}

// Decode reads r from d.
func (r *ReadlinkRes) Decode(d *oncrpc.Decoder) {
	*r = ReadlinkRes{Stat: Stat(d.Uint32())}
	r.Attr.Decode(d)
	if r.Stat == OK {
		r.Path = d.String(MaxPath)
	}
}
